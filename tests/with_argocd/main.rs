//! Tests of the program between the real Argo CD and the real OCM: all tests share a hub and a managed cluster.
//!
//! If the testbed is not available (no Go, no Redis …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

mod account;
mod actions;
#[path = "../common/agent_rules.rs"]
mod agent_rules;
mod api_server;
mod app;
#[path = "../common/application_source.rs"]
mod application_source;
mod controller;
#[path = "../common/conversation.rs"]
mod conversation;
mod deletion;
mod delivery;
mod desk;
mod diagnosis;
mod diff;
mod directory_source;
mod doctor;
#[path = "../common/documents.rs"]
mod documents;
mod drift;
mod executor;
mod feedback;
mod fleet;
mod growth;
mod health;
mod health_check;
mod health_rules;
mod holds;
mod isolation;
mod kinds;
mod names;
mod order;
mod parameters;
#[path = "../common/peers.rs"]
mod peers;
mod policy;
mod pull;
mod quick_start;
mod rbac;
mod size;
mod sources;
mod stage;
mod status;
mod terminal;
mod tracking;
mod updates;
mod values;
