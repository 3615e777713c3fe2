//! The flags of the controller `argocd-agent`.

use clap::Args;
use hub_state::model::shipped::{ARGOCD, OPERATOR, REDIS};

/// The default images for managed clusters; a GitOpsCluster can set others.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of 'argocd-agent'")]
pub struct ImageArgs {
    /// The image of argocd-agent [default: that of the hub's principal]
    #[arg(long, env = "ARGOCD_OCM_CMP_AGENT_IMAGE", value_name = "IMAGE")]
    pub agent_image: Option<String>,

    /// The image of Argo CD beside argocd-agent
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_AGENT_ARGOCD_IMAGE",
        value_name = "IMAGE",
        default_value = ARGOCD
    )]
    pub agent_argocd_image: String,

    /// The image of Redis beside argocd-agent
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_AGENT_REDIS_IMAGE",
        value_name = "IMAGE",
        default_value = REDIS
    )]
    pub agent_redis_image: String,

    /// The image of argocd-operator, for GitOpsClusters that use it
    #[arg(
        long,
        env = "ARGOCD_OCM_CMP_AGENT_OPERATOR_IMAGE",
        value_name = "IMAGE",
        default_value = OPERATOR
    )]
    pub agent_operator_image: String,

    /// The image of this program that restarts argocd-agent when its certificate is renewed [default: no restarts]
    #[arg(long, env = "ARGOCD_OCM_CMP_AGENT_SUPERVISOR_IMAGE", value_name = "IMAGE")]
    pub agent_supervisor_image: Option<String>,
}
