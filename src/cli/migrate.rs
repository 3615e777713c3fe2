//! The command line of `migrate`.

use super::HubArgs;
use super::namespace::name;
use super::process::ProcessNamespace;
use super::pull::PullArgs;
use clap::{Args, Subcommand};

/// The commands for a migration from another controller.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Show what the controllers would create, change and delete on a hub, without writing anything
    Plan(Box<MigratePlanArgs>),
}

/// The arguments of `migrate plan`. They are flags of `controller`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MigratePlanArgs {
    /// Controllers that would run: names as for 'controller', or '*' for all
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "pull,cluster-secrets,application-set-report"
    )]
    pub controllers: Vec<String>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    #[command(flatten)]
    pub(crate) argo_cd: ProcessNamespace,

    /// Name of the ManagedCluster that is the hub itself, or 'none'; labels do not count
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub hub_cluster: Option<String>,

    #[command(flatten)]
    pub(crate) pull: PullArgs,
}

const EXAMPLES: &str = "\
Lines 'to stop' name the controllers of other software that still write these objects.
Exit code: 0 when everything can be taken over, 1 when something cannot, 2 on errors.

Examples:
  # From argocd-pull-integration
  argocd-ocm-cmp migrate plan --context hub

  # From Red Hat ACM
  argocd-ocm-cmp migrate plan --pull-dialect acm --argocd-namespace openshift-gitops \\
    --controllers pull,gitopscluster,application-set-report";
