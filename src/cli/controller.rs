//! The command line of `controller`.

use super::HubArgs;
use super::images::ImageArgs;
use super::namespace::name;
use super::process::{LogArgs, ProcessNamespace};
use super::pull::PullArgs;
use clap::{ArgAction, Args};
use controller::controllers::CONTROLLERS;
use std::net::SocketAddr;

/// The arguments of `controller`. Each has an environment variable, for a Deployment that is patched rather than written.
#[derive(Debug, Args)]
#[command(after_help = controllers_and_examples())]
pub struct ControllerArgs {
    /// Controllers to run: names, or '*' for all
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_CONTROLLERS",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "application-status"
    )]
    pub controllers: Vec<String>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// The namespace of Argo CD.
    #[command(flatten)]
    pub argo_cd: ProcessNamespace,

    /// Name of the ManagedCluster that is the hub itself, or 'none'; labels do not count
    #[arg(long, env = "ARGOCD_OCM_CMP_HUB_CLUSTER", value_name = "NAME", value_parser = name_or_empty)]
    pub hub_cluster: Option<String>,

    /// Write only while holding the Lease argocd-ocm-cmp-controller
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_LEADER_ELECT",
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value = "true"
    )]
    pub leader_elect: bool,

    /// Namespace of the Lease [default: the Pod's namespace, or that of Argo CD]
    #[arg(long, env = "ARGOCD_OCM_CMP_LEADER_ELECTION_NAMESPACE", value_name = "NAME")]
    pub leader_election_namespace: Option<String>,

    /// Address that serves /healthz, /readyz and /metrics
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:8080"
    )]
    pub bind_address: SocketAddr,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// Log the writes instead of sending them
    #[arg(long, env = "ARGOCD_OCM_CMP_DRY_RUN")]
    pub dry_run: bool,

    /// Maximum number of concurrent writes
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_CONCURRENT_WRITES",
        value_name = "NUMBER",
        default_value = "48",
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub concurrent_writes: u16,

    #[command(flatten)]
    pub(crate) pull: PullArgs,

    #[command(flatten)]
    pub(crate) images: ImageArgs,
}

/// Returns a line for each controller, and examples.
fn controllers_and_examples() -> String {
    let mut lines: Vec<_> = CONTROLLERS
        .iter()
        .map(|controller| format!("  {}  {}\n", controller.name, controller.about))
        .collect();
    lines.dedup();
    format!(
        "Controllers:\n{}
Examples:
  # Log the writes without sending them, from a workstation
  argocd-ocm-cmp controller --dry-run --context hub

  # In a cluster
  kubectl apply -n argocd -f deploy/deploy_controller.yaml",
        lines.concat()
    )
}

/// Parses the name of a cluster. Empty is none, as a variable without a value is.
fn name_or_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { name(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, CommandFactory};

    #[test]
    fn every_flag_has_a_variable_and_is_documented() {
        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            args: ControllerArgs,
        }
        let command = Only::command();
        let flags = command
            .get_arguments()
            .filter(|argument| argument.get_long() != Some("help"));
        let rows: Vec<String> = flags.map(row).collect();
        let table = rows.concat();
        let page = include_str!("../../docs/controller.md");
        assert!(page.contains(&table), "docs/controller.md lacks this table:\n{table}");
    }

    /// Returns the row of the page's table for a flag.
    fn row(argument: &Arg) -> String {
        let flag = argument.get_long().expect("a flag");
        let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
        let default: Vec<_> = argument
            .get_default_values()
            .iter()
            .map(|text| text.to_string_lossy())
            .collect();
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        // kubectl's rules have their own variable.
        let is_hub = ["kubeconfig", "context"].contains(&flag);
        let expected = format!("ARGOCD_OCM_CMP_{}", flag.replace('-', "_").to_uppercase());
        assert_eq!(variable, (!is_hub).then_some(expected), "--{flag}");
        let code = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                format!("`{text}`")
            }
        };
        let (variable, default) = (code(&variable.unwrap_or_default()), code(&default.concat()));
        format!("| `--{flag}` | {variable} | {default} | {help} |\n")
    }
}
