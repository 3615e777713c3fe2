//! The command line of `gitopscluster`.

use super::{Color, HubArgs};
use clap::{Args, Subcommand, ValueEnum};

/// What can be done with GitOpsClusters.
#[derive(Debug, Subcommand)]
pub enum GitOpsClusterCommand {
    /// Show how a GitOpsCluster fares, with the agent of each of its managed clusters
    Status(GitOpsClusterStatusArgs),
}

/// The arguments of `gitopscluster status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GitOpsClusterStatusArgs {
    /// The GitOpsCluster [default: all of the namespace]
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: Option<String>,

    /// The namespace of the GitOpsCluster
    #[arg(long, short, value_name = "NAME", default_value = "argocd", value_parser = name)]
    pub namespace: String,

    /// Those of all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["name", "namespace"])]
    pub all_namespaces: bool,

    /// The hub to read.
    #[command(flatten)]
    pub hub: HubArgs,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: FleetFormat,

    /// Whether the table has colours
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FleetFormat {
    /// For people: the clusters whose agents fare worst first.
    Table,
    /// The same, and until when each agent has a certificate.
    Wide,
    /// One JSON object on a line: the GitOpsCluster, or a list of them where none is named.
    Json,
    /// The same as a YAML document.
    Yaml,
}

const EXAMPLES: &str = "\
Exit code: 0 when all is well, 1 when it is not, 2 when that cannot be told.

Examples:
  # Which agents are not connected, and why?
  argocd-ocm-cmp gitopscluster status fleet --context hub

  # Until when is every agent's certificate good?
  argocd-ocm-cmp gitopscluster status fleet -o wide

  # The clusters whose agents are not connected
  argocd-ocm-cmp gitopscluster status fleet -o json | jq -r '.agents[] | select(.state != \"Connected\").cluster'";

/// Parses a name, which becomes a part of a path.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_of_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_of_name) {
        Ok(text.to_owned())
    } else {
        Err("Kubernetes has no such names: give one of small letters, digits, '-' and '.'".to_owned())
    }
}
