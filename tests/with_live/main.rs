//! Checks the view into the clusters with real components: Argo CD, OCM's work agent, and OCM's cluster-proxy, whose tunnel carries
//! each request.
//!
//! If the testbed is not available (no Go …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the clock"
)]

mod access;
mod argocd_server;
mod command_line;
mod stage;
mod view;
