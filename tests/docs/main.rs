//! The documentation: README.md and docs/. Its links lead somewhere, its commands run and print what it shows, and every message of the
//! program is in it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like and say what they found"
)]

mod commands;
mod form;
mod here;
mod hub;
mod kubelet;
mod links;
mod messages;
mod page;
mod shell;
mod shown;
mod ways_out;
