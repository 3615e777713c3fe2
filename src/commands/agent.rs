//! `agent`: commands that run beside Argo CD's agent on a managed cluster.

mod install;
mod prepare;
mod restart;
mod run;

use super::{Exit, fail};
use crate::cli::AgentCommand;
use manifest::text::one_line;
use std::io;
use tokio::runtime::{Builder, Runtime};

pub(super) fn run(command: &AgentCommand) -> Exit {
    let ended = match command {
        AgentCommand::Run(args) => run::run(args),
        AgentCommand::Restart(args) => restart::run(args),
        AgentCommand::Prepare(args) => prepare::run(args),
        AgentCommand::Install(args) => install::run(args),
    };
    ended.unwrap_or_else(|line| fail(&format!("error: {}\n", one_line(&line))))
}

/// Creates a runtime with one thread: the commands only wait.
fn runtime() -> Result<Runtime, String> {
    let cannot = |error: io::Error| format!("nothing can be started: {error}");
    Builder::new_current_thread().enable_all().build().map_err(cannot)
}
