//! Checks that Go's libraries — those of Kubernetes and Argo CD — parse every input and output of the program as the program
//! does.
//!
//! The program in `tests/oracle` calls these libraries; a test builds it with Go when it starts. Without Go, the
//! tests fail.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the environment, and print"
)]

mod agent;
mod answer;
mod corpus;
mod expressions;
mod fuzz;
mod globs;
mod limits;
mod make;
mod manifests;
mod oracle;
mod output;
mod paths;
mod real_files;
mod stack;
mod texts;
mod variables;
