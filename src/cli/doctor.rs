//! The command line of `doctor`.

use super::{ArgoCdNamespace, Color, HubArgs, ListFormat};
use crate::doctor::CHECKS;
use clap::Args;
use clap::builder::PossibleValuesParser;

/// The arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Checks to run [default: all]
    #[arg(value_name = "CHECK", value_parser = PossibleValuesParser::new(CHECKS.iter().map(|check| check.name)))]
    pub checks: Vec<String>,

    /// Check whether a hub is ready for `install`: only what is there before it
    #[arg(long, conflicts_with = "checks")]
    pub pre: bool,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

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
Exit code: 0 without errors, 1 with errors, 2 without errors if not everything could be read.
Warnings do not change it. Nothing is written to the hub.

Examples:
  # Before an installation
  argocd-ocm-cmp doctor --pre --context hub

  # Check a hub
  argocd-ocm-cmp doctor --context hub

  # Only what the plugin and the works need
  argocd-ocm-cmp doctor ocm plugin works

  # With Argo CD in another namespace
  argocd-ocm-cmp doctor --namespace openshift-gitops

  # In a pipeline: print only errors
  argocd-ocm-cmp doctor -o json | jq -r '.findings[] | select(.result == \"error\") | .message + \": \" + .remediation'";
