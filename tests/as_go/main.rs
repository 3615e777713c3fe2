//! Whatever the program reads or prints, Go's libraries — those of Kubernetes and Argo CD — read the same.
//!
//! The tests ask them: the program in `tests/oracle` is built with Go when a test starts. Without Go a local run says so and
//! skips; with `CI=true` that is a failure.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the walls are around the program; tests read what they like and say what they found"
)]

mod answer;
mod corpus;
mod fuzz;
mod globs;
mod limits;
mod make;
mod oracle;
mod output;
mod real_files;
mod stack;
