//! What can be installed, by name, and of which files it consists.

use crate::files::{
    ADMISSION_POLICY, APPSET_PLACEMENT, ARGOCD_CM, ARGOCD_RBAC, CM_PLUGIN, DEPLOY_ARGOCD_AGENT, DEPLOY_CLUSTER_SECRETS,
    DEPLOY_CMP, DEPLOY_CONTROLLER, DEPLOY_GITOPSCLUSTER, DEPLOY_POLICY, DEPLOY_PULL, DEPLOY_REPORT, DEPLOY_SHARDS,
    DEPLOY_UI, GITOPSCLUSTER_CRD, POLICY_CM, PROJ, REPORT_CRD,
};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// Something that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Feature {
    /// The sidecar of argocd-repo-server that wraps manifests into works, with its policy, and the health of works
    Plugin,
    /// The AppProject managed-clusters, whose Applications may write works and nothing else
    Project,
    /// What AppProjects may deliver: the policy of the sidecar, also where an installation has none yet
    Policy,
    /// What lets ApplicationSets ask Placements for their clusters
    #[value(name = "applicationset")]
    ApplicationSet,
    /// Argo CD's right to write works, where it was installed without rights for the whole cluster
    ArgocdRbac,
    /// The controller: how works fare, in conditions and Events of Applications
    #[value(alias = "application-status")]
    Controller,
    /// The Leases by which the controller's replicas divide the work among them
    Shards,
    /// The controller's basic pull model: Applications that run in the Argo CD of the managed clusters
    Pull,
    /// A cluster Secret of Argo CD's for each managed cluster
    ClusterSecrets,
    /// A report for each ApplicationSet
    #[value(alias = "application-set-report")]
    Report,
    /// GitOpsClusters: the clusters of a Placement, registered in Argo CD
    #[value(name = "gitopscluster")]
    GitOpsCluster,
    /// argocd-agent on the clusters of GitOpsClusters
    ArgocdAgent,
    /// The extension of Argo CD's pages
    Ui,
}

impl Feature {
    /// All of them, in the order in which their files are applied.
    pub const ALL: &[Self] = &[
        Self::Plugin,
        Self::Project,
        Self::Policy,
        Self::ApplicationSet,
        Self::ArgocdRbac,
        Self::Controller,
        Self::Shards,
        Self::Pull,
        Self::ClusterSecrets,
        Self::Report,
        Self::GitOpsCluster,
        Self::ArgocdAgent,
        Self::Ui,
    ];

    /// What it does not do without.
    fn implies(self) -> &'static [Self] {
        match self {
            Self::Plugin => &[Self::Policy],
            Self::Policy => &[Self::Plugin],
            Self::Shards | Self::ClusterSecrets | Self::Report | Self::GitOpsCluster => &[Self::Controller],
            // Not cluster Secrets, which need the right to read all Secrets of Argo CD's namespace.
            Self::Pull => &[Self::Controller, Self::Report],
            Self::ArgocdAgent => &[Self::GitOpsCluster],
            Self::Project | Self::ApplicationSet | Self::ArgocdRbac | Self::Controller | Self::Ui => &[],
        }
    }

    /// The files it consists of.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Plugin => &[CM_PLUGIN, ARGOCD_CM, DEPLOY_CMP],
            Self::Project => &[PROJ],
            Self::Policy => &[POLICY_CM, DEPLOY_POLICY],
            Self::ApplicationSet => &[APPSET_PLACEMENT],
            Self::ArgocdRbac => &[ARGOCD_RBAC],
            Self::Controller => &[DEPLOY_CONTROLLER, ADMISSION_POLICY],
            Self::Shards => &[DEPLOY_SHARDS],
            Self::Pull => &[DEPLOY_PULL],
            Self::ClusterSecrets => &[DEPLOY_CLUSTER_SECRETS],
            Self::Report => &[REPORT_CRD, DEPLOY_REPORT],
            Self::GitOpsCluster => &[GITOPSCLUSTER_CRD, DEPLOY_GITOPSCLUSTER],
            Self::ArgocdAgent => &[DEPLOY_ARGOCD_AGENT],
            // The panel counts by the health of works.
            Self::Ui => &[ARGOCD_CM, DEPLOY_UI],
        }
    }

    /// The promise of the controller that it is.
    pub(super) fn promise(self) -> Option<&'static str> {
        match self {
            Self::Controller => Some("application-status"),
            Self::Pull => Some("pull"),
            Self::ClusterSecrets => Some("cluster-secrets"),
            Self::Report => Some("application-set-report"),
            Self::GitOpsCluster => Some("gitopscluster"),
            Self::ArgocdAgent => Some("argocd-agent"),
            Self::Plugin
            | Self::Project
            | Self::Policy
            | Self::ApplicationSet
            | Self::ArgocdRbac
            | Self::Shards
            | Self::Ui => None,
        }
    }
}

/// Features with all that they imply.
#[must_use]
pub fn with_implied(asked: impl IntoIterator<Item = Feature>) -> BTreeSet<Feature> {
    let mut all = BTreeSet::new();
    let mut open: Vec<_> = asked.into_iter().collect();
    while let Some(feature) = open.pop() {
        if all.insert(feature) {
            open.extend(feature.implies());
        }
    }
    all
}
