//! `agent`: commands that run beside Argo CD's agent on a managed cluster.

mod install;
mod prepare;
mod restart;
mod run;

use super::{Exit, fail};
use crate::cli::AgentCommand;
use manifest::text::one_line;

pub(super) fn run(command: &AgentCommand) -> Exit {
    let ended = match command {
        AgentCommand::Run(args) => run::run(args),
        AgentCommand::Restart(args) => restart::run(args),
        AgentCommand::Prepare(args) => prepare::run(args),
        AgentCommand::Install(args) => install::run(args),
    };
    ended.unwrap_or_else(|line| fail(&format!("error: {}\n", one_line(&line))))
}
