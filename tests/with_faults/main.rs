//! The controller on a real API server that fails: between the two stands a proxy that counts what is asked and does what goes
//! wrong. The tests themselves are Argo CD and the agents: they write the Applications, the works, and what is said of them.
//!
//! Where the parts cannot run (no Go …) a local run says so and skips; with `CI=true` that is a failure.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like, and say what they measure"
)]

mod admission;
mod agent_operator;
mod agent_prepare;
mod agent_template;
mod cluster_secrets;
mod conformance;
mod fairness;
mod faults;
mod gitopscluster;
mod gitopscluster_crd;
mod gitopscluster_owners;
mod gitopscluster_refused;
mod gitopscluster_status;
mod idle;
mod inputs;
mod install;
mod pull;
mod replicas;
mod reports;
mod shards;
mod stage;
