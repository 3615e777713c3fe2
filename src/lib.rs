//! GitOps by pull: Argo CD on a hub delivers Applications to managed clusters as Open Cluster Management ManifestWorks.
//!
//! # Architecture
//!
//! This package is the binary: [`cli`] holds the arguments, [`commands`] calls a library and prints its output. The libraries are
//! crates, so that Cargo refuses a cycle between them:
//!
//! - [`manifest`]: values, Kubernetes' YAML dialect, canonical JSON.
//! - [`ocm`]: the objects that the program reads and writes on a hub, and their rules: works, their health, names, tracking.
//! - [`generate`]: the Argo CD Config Management Plugin, stage by stage. It knows neither Kubernetes clients nor an
//!   async runtime.
//! - [`pki`]: keys, certificates and certificate requests.
//! - [`hub`]: the client of an API server.
//! - [`controller`]: the controllers that run on a hub, one folder each.
//! - [`live`]: the read-only view into managed clusters, behind Argo CD's proxy extensions.
//!
//! This package also contains the larger commands: [`diff`], [`status`], [`doctor`], [`view`], which show what [`fetch`] reads from a hub
//! ([`diagnosis`] explains why an Application delivers nothing),
//! [`install`] with the embedded files, and the parts that run on a managed cluster beside argocd-agent: [`restart_on_change`]
//! and [`bootstrap_secrets`]. [`manual`] and [`completion`] are derived from the command line.
//!
//! # Tests
//!
//! `tests/go_parity` compares our parsers with Go's libraries. `tests/command` runs the program as a user does,
//! `tests/generate_cases` runs it over one folder per case. `tests/with_argocd` runs it as the plugin of a real Argo CD, and as
//! the controller beside it, with a real OCM agent; `tests/with_faults` runs the controller against a real API server behind a
//! proxy that injects faults; `tests/with_agents` runs it beside OCM's own controllers, with clusters that have joined, from the
//! first agent of a fleet to the last. `tests/with_live` runs the view into the clusters
//! behind argocd-server and cluster-proxy. `tests/with_argocd_agent` runs the real argocd-agent, by hand. `tests/docs` runs the commands
//! that the documentation shows. `tests/testbed` starts these processes, and can also be used by hand.

pub mod bootstrap_secrets;
pub mod cli;
pub mod commands;
pub mod completion;
mod diagnosis;
mod diff;
pub mod doctor;
pub mod download;
mod embedded;
mod fetch;
pub mod hold;
pub mod install;
mod list;
pub mod manual;
pub mod peers;
pub mod restart_on_change;
mod rollout;
mod runtime;
mod status;
mod summary;
mod table;
pub mod view;
mod workload;
