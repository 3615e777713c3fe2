//! Tests of the documentation, README.md and docs/: its links have targets, its commands run and print the shown output, and it
//! contains every message of the program.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the environment, and print"
)]

mod annotations;
mod applications;
mod cli;
mod commands;
mod differences;
mod doctor;
#[path = "../common/expected.rs"]
mod expected;
mod form;
mod generated;
mod health;
mod here;
mod hub;
mod kind;
mod links;
mod messages;
mod page;
mod picture;
mod pictures;
mod promises;
mod quick_start;
mod remediations;
mod settings;
mod shell;
mod shown;
mod sources;
