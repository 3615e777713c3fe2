//! `agent`: commands that run beside Argo CD's agent on a managed cluster.

mod install;
mod prepare;
mod restart;
mod run;

use super::Exit;
use crate::cli::AgentCommand;
use manifest::problem::Problems;

pub(super) fn run(command: &AgentCommand) -> Result<Exit, Problems> {
    match command {
        AgentCommand::Run(args) => run::run(args),
        AgentCommand::Restart(args) => restart::run(args),
        AgentCommand::Prepare(args) => prepare::run(args),
        AgentCommand::Install(args) => install::run(args),
    }
}
