//! The flags of the promise `pull`.

use crate::pull::Dialect;
use clap::{ArgAction, Args};

/// How the promise `pull` keeps its word. What a dialect does by itself can be said otherwise.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of 'pull'")]
pub struct PullArgs {
    /// Whose labels, names and habits the works have
    #[arg(
        long,
        env = "OCM_PULL_DIALECT",
        hide_env_values = true,
        value_enum,
        value_name = "NAME",
        default_value = "argocd-pull-integration"
    )]
    pub pull_dialect: Dialect,

    /// Deliver the Namespace of an Application with it [default: only with 'acm']
    #[arg(
        long,
        env = "OCM_PULL_NAMESPACE",
        hide_env_values = true,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_namespace: Option<bool>,

    /// Deliver the AppProject of an Application with it [default: only with 'acm']
    #[arg(
        long,
        env = "OCM_PULL_PROJECT",
        hide_env_values = true,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_project: Option<bool>,

    /// Only to clusters that a Placement in the namespace of the Application selects [default: only with 'acm']
    #[arg(
        long,
        env = "OCM_PULL_PLACEMENT",
        hide_env_values = true,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_placement: Option<bool>,

    /// Make every work read-only and delete nothing, so that something else can take the Applications over
    #[arg(long, env = "OCM_PULL_READ_ONLY", hide_env_values = true)]
    pub pull_read_only: bool,
}
