//! The command lines of `hold` and `release`.

use super::namespace::name;
use super::{ArgoCdNamespace, HubArgs, ListFormat};
use crate::completion;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

/// The maximum length of a reason in characters: it is a part of every message about the hold.
const REASON_MAX: usize = 300;

/// The arguments of `hold`.
#[derive(Debug, Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub struct HoldArgs {
    /// The managed clusters to hold [default: list the clusters on hold]
    #[arg(value_name = "CLUSTERS", value_parser = name, add = ArgValueCompleter::new(completion::clusters))]
    pub clusters: Vec<String>,

    /// The end of the hold: a time such as 2026-12-01T06:00:00Z, or a duration such as 8h [default: until `release`]
    #[arg(long, value_name = "TIME", requires = "clusters")]
    pub until: Option<String>,

    /// The reason, for all who meet the hold
    #[arg(long, value_name = "TEXT", requires = "clusters", value_parser = reason)]
    pub reason: Option<String>,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Output format of the list
    #[arg(long, short, value_enum, default_value = "table", conflicts_with = "clusters")]
    pub output: ListFormat,
}

const HOLD_EXAMPLES: &str = "\
While a managed cluster is on hold, the hub refuses changes of its works, whoever makes them, and what runs on the cluster stays.
Required permissions: to patch the namespaces of the clusters on the hub, to list ManagedClusters, to get ValidatingAdmissionPolicies and
their bindings, and with --until the controller's Lease.

Examples:
  # Freeze a cluster for a night
  argocd-ocm-cmp hold eu1 --until 8h --reason 'storage migration'

  # Which clusters are on hold, and why?
  argocd-ocm-cmp hold";

/// The arguments of `release`.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub struct ReleaseArgs {
    /// The managed clusters to release
    #[arg(
        value_name = "CLUSTERS",
        required = true,
        value_parser = name,
        add = ArgValueCompleter::new(completion::clusters)
    )]
    pub clusters: Vec<String>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

const RELEASE_EXAMPLES: &str = "\
Examples:
  # End a hold before its time
  argocd-ocm-cmp release eu1";

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        text if text.contains(char::is_control) => Err("use one line".to_owned()),
        text if text.chars().count() > REASON_MAX => Err(format!("use at most {REASON_MAX} characters")),
        text => Ok(text.to_owned()),
    }
}
