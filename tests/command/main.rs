//! Tests of the program as a user runs it, and of the shipped files.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the environment, and print"
)]

mod agent;
mod chart;
mod chart_values;
mod confinement;
mod diff;
mod doctor;
#[path = "../common/documents.rs"]
mod documents;
#[path = "../common/expected.rs"]
mod expected;
mod fake_hub;
mod fetching;
mod health_rules;
mod hold;
mod hostile_sources;
mod install;
mod layers;
mod manifest_configs;
mod modules;
mod monitoring;
mod policy;
mod program;
mod release;
mod remedies;
mod rights;
mod robustness;
mod rollout;
mod secrets;
mod shell;
mod shipped_files;
mod status;
mod summary;
mod supply_chain;
mod tracked_files;
mod upgrade;
#[path = "../common/upgrade.rs"]
mod upgrades;
#[path = "../common/works.rs"]
mod works;
