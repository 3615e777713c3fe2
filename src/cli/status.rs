//! The command line of `status`.

use super::{ArgoCdNamespace, Color, HubArgs, ListFormat};
use crate::completion;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use ocm::duration;
use std::time::Duration;

/// The arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// The Application: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub application: String,

    /// The namespace of Argo CD.
    #[command(flatten)]
    pub argo_cd: ArgoCdNamespace,

    /// Show only the works for these managed clusters
    #[arg(
        long,
        visible_alias = "cluster",
        value_name = "NAMES",
        value_delimiter = ',',
        add = ArgValueCompleter::new(completion::clusters)
    )]
    pub clusters: Vec<String>,

    /// The hub to read.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: ListFormat,

    /// Wait until the Application is healthy
    #[arg(long)]
    pub wait: bool,

    /// Print the status again when it changes
    #[arg(long, short)]
    pub watch: bool,

    /// Time to wait before giving up, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse, requires = "wait")]
    pub timeout: Duration,

    /// When to colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

const EXAMPLES: &str = "\
Exit code: 0 when the Application is healthy, 1 when it is not, 2 on errors.

Examples:
  # Show what is wrong, and where
  argocd-ocm-cmp status guestbook --context hub

  # In a pipeline, after the sync
  argocd-ocm-cmp status guestbook --wait --timeout 10m

  # With permission to read the works of one managed cluster only
  argocd-ocm-cmp status team-a/shop --clusters eu1

  # The objects that are not healthy
  argocd-ocm-cmp status guestbook -o json | jq '.works[].objects[] | select(.health != \"Healthy\")'";
