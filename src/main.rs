//! The program.

use argocd_ocm_cmp::cli::Cli;
use argocd_ocm_cmp::{commands, yaml};
use clap::Parser;
use std::process::ExitCode;
use std::thread;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let failure = commands::failure(&command);
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    // Deeply nested documents are handled by recursion, for which the first thread's stack may be too small.
    let run = thread::Builder::new()
        .stack_size(yaml::STACK)
        .spawn(move || commands::run(command, &env));
    match run.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => failure,
        Err(error) => commands::fail(&format!("error: no thread can be started: {error}\n")),
    }
}
