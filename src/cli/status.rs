//! The command line of `status`.

use super::namespace::name;
use super::{ArgoCdNamespace, Color, HubArgs, ListFormat};
use crate::completion;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::engine::ArgValueCompleter;
use ocm::duration;
use ocm::health::HealthStatus;
use std::time::Duration;

/// The arguments of `status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// The Application: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace
    #[arg(
        value_name = "APP",
        required_unless_present_any = ["all", "clusters"],
        add = ArgValueCompleter::new(completion::applications)
    )]
    pub application: Option<String>,

    /// List all Applications that are delivered to managed clusters
    #[arg(long, conflicts_with_all = ["application", "clusters"])]
    pub all: bool,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    /// Show only the works for these managed clusters; without APP, list the Applications there
    #[arg(
        long,
        visible_alias = "cluster",
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = name,
        add = ArgValueCompleter::new(completion::clusters)
    )]
    pub clusters: Vec<String>,

    /// List only those with this health, such as degraded,progressing
    #[arg(
        long,
        value_name = "HEALTH",
        value_delimiter = ',',
        ignore_case = true,
        value_parser = PossibleValuesParser::new(HealthStatus::ALL.map(|health| health.name())).try_map(|name| health(&name)),
        conflicts_with = "application"
    )]
    pub health: Vec<HealthStatus>,

    /// List only those of this AppProject
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "application")]
    pub project: Vec<String>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: ListFormat,

    /// Wait until the Application is healthy
    #[arg(long, requires = "application")]
    pub wait: bool,

    /// Print the status again when it changes
    #[arg(long, short, requires = "application")]
    pub watch: bool,

    /// Time to wait before giving up, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse, requires = "wait")]
    pub timeout: Duration,

    /// When to colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// Parses the name of a health in any case.
fn health(name: &str) -> Result<HealthStatus, String> {
    let known = HealthStatus::ALL.into_iter();
    let mut matches = known.filter(|health| health.name().eq_ignore_ascii_case(name));
    matches.next().ok_or_else(|| "no such health".to_owned())
}

const EXAMPLES: &str = "\
Exit code: 0 when all that is shown is healthy, 1 when it is not, 2 on errors.

Examples:
  # Show what is wrong, and where
  argocd-ocm-cmp status guestbook --context hub

  # In a pipeline, after the sync
  argocd-ocm-cmp status guestbook --wait --timeout 10m

  # With permission to read the works of one managed cluster only
  argocd-ocm-cmp status team-a/shop --clusters eu1

  # What runs on a managed cluster, and what is broken on any
  argocd-ocm-cmp status --clusters eu1
  argocd-ocm-cmp status --all --health degraded,missing

  # The objects that are not healthy
  argocd-ocm-cmp status guestbook -o json | jq '.works[].objects[] | select(.health != \"Healthy\")'";
