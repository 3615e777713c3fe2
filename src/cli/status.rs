//! The command line of `status`.

use super::{Color, HubArgs};
use clap::{Args, ValueEnum};
use ocm::duration;
use std::time::Duration;

/// The arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// The Application: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace
    #[arg(value_name = "APP")]
    pub application: String,

    /// The namespace of Argo CD
    #[arg(long, short, value_name = "NAME", default_value = "argocd")]
    pub namespace: String,

    /// Only the works for these managed clusters
    #[arg(long, visible_alias = "cluster", value_name = "NAMES", value_delimiter = ',')]
    pub clusters: Vec<String>,

    /// The hub to read.
    #[command(flatten)]
    pub hub: HubArgs,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: Format,

    /// Wait until it is healthy
    #[arg(long)]
    pub wait: bool,

    /// Print it again whenever it changes
    #[arg(long, short)]
    pub watch: bool,

    /// How long to wait, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time, requires = "wait")]
    pub timeout: Duration,

    /// Whether the table has colours
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: those that fare worst first.
    Table,
    /// One JSON object on a line.
    Json,
    /// A YAML document.
    Yaml,
}

const EXAMPLES: &str = "\
Exit code: 0 when it is healthy, 1 when it is not, 2 when that cannot be told.

Examples:
  # What is wrong with it, and where?
  argocd-ocm-cmp status guestbook --context hub

  # In a pipeline, after the sync
  argocd-ocm-cmp status guestbook --wait --timeout 10m

  # With the right to read the works of one managed cluster
  argocd-ocm-cmp status team-a/shop --clusters eu1

  # The objects that are not healthy
  argocd-ocm-cmp status guestbook -o json | jq '.works[].objects[] | select(.health != \"Healthy\")'";

/// Parses a duration in one unit, as kubectl does.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|_| format!("{text:?} is not a time: give a whole number and s, m or h, such as 90s"))
}
