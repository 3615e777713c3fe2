//! The flags of the controller `pull`.

use clap::Args;
use hub_state::pull::{Dialect, FeedbackMode};

/// The settings of the controller `pull`. A dialect has defaults, which other flags override.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of 'pull'")]
pub struct PullArgs {
    /// Conventions of the works: labels, names and defaults
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_PULL_DIALECT",
        value_enum,
        value_name = "NAME",
        default_value = "argocd-pull-integration"
    )]
    pub pull_dialect: Dialect,

    /// Deliver the Namespace of an Application with it [default: only with 'acm']
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_PULL_NAMESPACE",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_namespace: Option<bool>,

    /// Deliver the AppProject of an Application with it [default: only with 'acm']
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_PULL_PROJECT",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_project: Option<bool>,

    /// Deliver only to clusters that a Placement in the namespace of the Application selects [default: only with 'acm']
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_PULL_PLACEMENT",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub pull_placement: Option<bool>,

    /// Let agents 'watch' Applications on their clusters, or 'poll' them; agents before OCM 1.2 always poll
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_PULL_FEEDBACK",
        value_enum,
        value_name = "MODE",
        default_value = "watch",
        hide_possible_values = true
    )]
    pub pull_feedback: FeedbackMode,

    /// Make every work read-only and delete nothing, to hand the Applications over to another controller
    #[arg(long, env = "ARGOCD_OCM_CMP_PULL_READ_ONLY")]
    pub pull_read_only: bool,
}
