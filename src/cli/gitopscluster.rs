//! The command line of `gitopscluster`.

use super::namespace::name;
use super::{ArgoCdNamespace, Color, HubArgs, ListFormat};
use crate::completion;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

/// The commands for GitOpsClusters.
#[derive(Debug, Subcommand)]
pub enum GitOpsClusterCommand {
    /// Show the state of GitOpsClusters, and of the agent on each managed cluster
    Status(GitOpsClusterStatusArgs),
}

/// The arguments of `gitopscluster status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("namespace", |flag| flag.help("The namespace of Argo CD, or of other GitOpsClusters")))]
pub struct GitOpsClusterStatusArgs {
    /// GitOpsCluster to show: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace [default: all in the namespace]
    #[arg(value_name = "NAME", value_parser = qualified_name, add = ArgValueCompleter::new(completion::gitops_clusters))]
    pub name: Option<String>,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    /// Show the GitOpsClusters of all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["name", "namespace"])]
    pub all_namespaces: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: ListFormat,

    /// When to colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

const EXAMPLES: &str = "\
Exit code: 0 when everything is healthy, 1 when something is not, 2 on errors.

Examples:
  # Show which agents are not connected, and why
  argocd-ocm-cmp gitopscluster status fleet --context hub

  # Show when each agent's certificate expires
  argocd-ocm-cmp gitopscluster status fleet -o wide

  # The clusters whose agents are not connected
  argocd-ocm-cmp gitopscluster status fleet -o json | jq -r '.agents[] | select(.state != \"Connected\").cluster'";

/// Parses `NAME` or `NAMESPACE/NAME`.
fn qualified_name(text: &str) -> Result<String, String> {
    text.splitn(2, '/').try_for_each(|part| name(part).map(drop))?;
    Ok(text.to_owned())
}
