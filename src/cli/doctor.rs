//! The command line of `doctor`.

use super::gitopscluster::name;
use super::{Color, HubArgs};
use clap::{Args, ValueEnum};

/// The arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The namespace of Argo CD
    #[arg(
        long,
        short,
        visible_alias = "argocd-namespace",
        value_name = "NAME",
        default_value = "argocd",
        value_parser = name
    )]
    pub namespace: String,

    /// The hub to check.
    #[command(flatten)]
    pub hub: HubArgs,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: DoctorFormat,

    /// Whether the table has colours
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For people: a line for each finding, errors first.
    Table,
    /// One JSON object on a line.
    Json,
}

const EXAMPLES: &str = "\
Exit code: 0 when nothing is wrong, 1 when something is, 2 when nothing is found wrong but not all could be looked at.
Warnings alone leave it at 0. Nothing is written to the hub.

Examples:
  # What is wrong with this hub, and what can be done about it?
  argocd-ocm-cmp doctor --context hub

  # With Argo CD in another namespace
  argocd-ocm-cmp doctor --namespace openshift-gitops

  # In a pipeline: only what is wrong
  argocd-ocm-cmp doctor -o json | jq -r '.findings[] | select(.result == \"error\") | .message + \": \" + .remediation'";
