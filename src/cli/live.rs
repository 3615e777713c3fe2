//! The command line of `live`.

use super::process::{LogArgs, ProcessNamespace};
use super::{ClusterProxyArgs, HubArgs};
use clap::Args;
use live::tunnel::CLUSTER_ACCOUNT;
use std::net::SocketAddr;

/// The arguments of `live`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LiveArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,

    #[command(flatten)]
    pub(crate) argo_cd: ProcessNamespace,

    #[command(flatten)]
    pub(crate) cluster_proxy: ClusterProxyArgs,

    /// ServiceAccount in Argo CD's namespace whose tokens are sent to managed clusters
    #[arg(long, value_name = "NAME", default_value = CLUSTER_ACCOUNT)]
    pub cluster_account: String,

    /// Address that serves argocd-server
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:8443"
    )]
    pub bind_address: SocketAddr,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

const EXAMPLES: &str = "\
Examples:
  # In a cluster
  kubectl apply -f deploy/live.yaml -f deploy/live_admission.yaml";
