//! The command lines of `rollout`.

use super::namespace::name;
use super::{ArgoCdNamespace, HubArgs, ListFormat};
use crate::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

/// The commands for the rollouts of Placements.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show which clusters a rollout has reached, and what it waits for
    Status(RolloutStatusArgs),
    /// Let a stopped rollout go on without the clusters that stop it
    Resume(RolloutArgs),
    /// Give all clusters the content again that the rollout has replaced
    Undo(RolloutUndoArgs),
}

/// The arguments of all commands.
#[derive(Debug, Args)]
pub struct RolloutArgs {
    /// The Application with a Placement: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub application: String,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

/// The arguments of `rollout status`.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct RolloutStatusArgs {
    #[command(flatten)]
    pub(crate) of: RolloutArgs,

    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: ListFormat,
}

const STATUS_EXAMPLES: &str = "\
Exit code: 0 when all clusters have the current version, 1 when some have not, none is selected or a sync is due, 2 on errors.

Examples:
  # Which clusters has the rollout reached, and why does it wait?
  argocd-ocm-cmp rollout status shop";

/// The arguments of `rollout undo`.
#[derive(Debug, Args)]
#[command(after_help = UNDO_EXAMPLES)]
pub struct RolloutUndoArgs {
    #[command(flatten)]
    pub(crate) of: RolloutArgs,

    /// The managed cluster whose content the others get [default: the content of all clusters that the rollout has not reached]
    #[arg(long, value_name = "CLUSTER", value_parser = name, add = ArgValueCompleter::new(completion::clusters))]
    pub like: Option<String>,
}

const UNDO_EXAMPLES: &str = "\
Git does not change: the Application is OutOfSync until a commit follows.
The hub must enforce the policy of the feature agent-admission: otherwise an agent could have written the earlier content.
Required permissions: to patch ManifestWorkReplicaSets in the namespace of the Placement, and to get ValidatingAdmissionPolicies and
their bindings.

Examples:
  # The canary is broken: take the change back
  argocd-ocm-cmp rollout undo shop";
