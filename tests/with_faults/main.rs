//! Tests of the controller on a real API server with faults: a proxy between the two counts requests and injects faults. The tests
//! simulate Argo CD and the agents: they write the Applications, the works, and their status.
//!
//! If the testbed is not available (no Go …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the clock, and print"
)]

mod admission;
mod agent_operator;
mod agent_prepare;
mod agent_template;
mod cluster_secrets;
mod conformance;
#[path = "../common/documents.rs"]
mod documents;
mod faults;
mod gitopscluster;
mod gitopscluster_crd;
mod gitopscluster_refused;
mod gitopscluster_status;
mod holds;
mod idle;
mod inputs;
mod install;
mod notifications;
mod pull;
mod replicas;
mod restore;
mod schema;
mod stage;
