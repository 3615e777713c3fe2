//! The features that can be installed by name, and their files.

use super::argo_cd::{APPLICATION_CONTROLLER, APPLICATION_SET_CONTROLLER, REPO_SERVER, SERVER};
use crate::embedded::{
    ADMISSION_POLICY, AGENT_ADMISSION, APPSET_PLACEMENT, ARGOCD_ACTIONS, ARGOCD_ADDON, ARGOCD_CM, ARGOCD_RBAC,
    CM_PLUGIN, DEPLOY_ARGOCD_AGENT, DEPLOY_CLUSTER_SECRETS, DEPLOY_CMP, DEPLOY_CONTROLLER, DEPLOY_GITOPSCLUSTER,
    DEPLOY_POLICY, DEPLOY_PRINCIPAL, DEPLOY_PULL, DEPLOY_REPORT, DEPLOY_UI, GITOPSCLUSTER_CRD, HOLDS, LIVE,
    LIVE_ARGOCD, PLUGIN_SOURCES, POLICY_CM, PROJ, REDIS_PROXY, REPORT_CRD,
};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// A feature that can be installed, in the order in which their files are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Feature {
    /// The sidecar of argocd-repo-server that wraps manifests into works, its policies, and the health checks for works
    Plugin,
    /// The AppProject managed-clusters, whose Applications may write works and nothing else
    Project,
    /// The policy of the sidecar, which limits what AppProjects may deliver; also for an installation without one
    Policy,
    /// The settings and permissions that ApplicationSets need to generate from Placements
    #[value(name = "applicationset")]
    ApplicationSet,
    /// Permissions for actions on works, and for an Argo CD without permissions for the whole cluster to write works
    ArgocdRbac,
    /// The controller, which reports the health of works as conditions and Events on Applications, and the policy for holds
    #[value(alias = "application-status")]
    Controller,
    /// Limits on what the agents of managed clusters may change on the hub
    AgentAdmission,
    /// The controller's basic pull model: Applications that run in the Argo CD of the managed clusters
    Pull,
    /// The OCM add-on argocd, which installs Argo CD on managed clusters, for the basic pull model
    #[value(name = "argocd-addon")]
    ArgocdAddOn,
    /// An Argo CD cluster Secret for each managed cluster
    ClusterSecrets,
    /// A report for each ApplicationSet
    #[value(alias = "application-set-report")]
    Report,
    /// GitOpsClusters: the clusters of a Placement, registered in Argo CD
    #[value(name = "gitopscluster")]
    GitOpsCluster,
    /// argocd-agent on the clusters of GitOpsClusters, and its principal on the hub
    ArgocdAgent,
    /// The extension of Argo CD's UI
    Ui,
    /// The view into the clusters: live objects, Pods, Events and logs in Argo CD's UI, through OCM's cluster-proxy
    Live,
}

/// The files of the principal, which are left out on a hub that has one.
pub(super) const PRINCIPAL_FILES: [&str; 2] = [DEPLOY_PRINCIPAL, REDIS_PROXY];

impl Feature {
    fn implies(self) -> &'static [Self] {
        match self {
            Self::Plugin => &[Self::Policy],
            Self::Policy => &[Self::Plugin],
            Self::ClusterSecrets | Self::Report | Self::GitOpsCluster => &[Self::Controller],
            // Without cluster Secrets: they need permission to read all Secrets of Argo CD's namespace.
            Self::Pull => &[Self::Controller, Self::Report],
            Self::ArgocdAddOn => &[Self::Pull],
            Self::ArgocdAgent => &[Self::GitOpsCluster],
            // Its tabs are in the extension.
            Self::Live => &[Self::Ui],
            _ => &[],
        }
    }

    /// Returns the component of Argo CD that the feature extends.
    pub(super) fn component(self) -> Option<&'static str> {
        match self {
            Self::Plugin | Self::Policy => Some(REPO_SERVER),
            Self::ApplicationSet => Some(APPLICATION_SET_CONTROLLER),
            Self::ArgocdRbac => Some(APPLICATION_CONTROLLER),
            Self::ArgocdAgent | Self::Ui | Self::Live => Some(SERVER),
            _ => None,
        }
    }

    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Plugin => &[CM_PLUGIN, ARGOCD_CM, DEPLOY_CMP, PLUGIN_SOURCES],
            Self::Project => &[PROJ],
            Self::Policy => &[POLICY_CM, DEPLOY_POLICY],
            Self::ApplicationSet => &[APPSET_PLACEMENT],
            Self::ArgocdRbac => &[ARGOCD_RBAC, ARGOCD_ACTIONS],
            Self::Controller => &[DEPLOY_CONTROLLER, ADMISSION_POLICY, HOLDS],
            Self::AgentAdmission => &[AGENT_ADMISSION],
            Self::Pull => &[DEPLOY_PULL],
            Self::ArgocdAddOn => &[ARGOCD_ADDON],
            Self::ClusterSecrets => &[DEPLOY_CLUSTER_SECRETS],
            Self::Report => &[REPORT_CRD, DEPLOY_REPORT],
            Self::GitOpsCluster => &[GITOPSCLUSTER_CRD, DEPLOY_GITOPSCLUSTER],
            Self::ArgocdAgent => &[DEPLOY_ARGOCD_AGENT, DEPLOY_PRINCIPAL, REDIS_PROXY],
            // The panel counts by the health of works.
            Self::Ui => &[ARGOCD_CM, DEPLOY_UI],
            Self::Live => &[LIVE, LIVE_ARGOCD],
        }
    }

    pub(super) fn controller(self) -> Option<&'static str> {
        match self {
            Self::Controller => Some("application-status"),
            Self::Pull => Some("pull"),
            Self::ClusterSecrets => Some("cluster-secrets"),
            Self::Report => Some("application-set-report"),
            Self::GitOpsCluster => Some("gitopscluster"),
            Self::ArgocdAgent => Some("argocd-agent"),
            _ => None,
        }
    }
}

/// Returns the features with all features that they imply.
pub fn with_implied(requested: impl IntoIterator<Item = Feature>) -> BTreeSet<Feature> {
    let mut all = BTreeSet::new();
    let mut open: Vec<_> = requested.into_iter().collect();
    while let Some(feature) = open.pop() {
        if all.insert(feature) {
            open.extend(feature.implies());
        }
    }
    all
}
