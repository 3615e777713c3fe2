//! The program as a user runs it, and the files that are shipped with it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like and say what they found"
)]

mod agent;
mod diff;
mod folders;
mod gitopscluster;
mod policy;
mod program;
mod robustness;
mod shell;
mod shipped_files;
mod status;
mod summary;
