//! The program as a user runs it, and the files that are shipped with it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like and say what they found"
)]

mod agent;
mod chart;
mod confinement;
mod diff;
mod doctor;
mod folders;
mod gitopscluster;
mod hostile_sources;
mod install;
mod monitoring;
mod policy;
mod program;
mod release;
mod robustness;
mod shell;
mod shipped_files;
mod status;
mod summary;
