//! The shipped files that grant permissions, and the objects of shipped files.

use crate::embedded;
pub(super) use crate::embedded::objects;

/// A file that grants permissions.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

impl File {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }
}

/// Permissions of Argo CD's application controller.
pub(super) static ARGO_CD: File = File::new("deploy/argocd_rbac.yaml", embedded::ARGOCD_RBAC);
/// Permissions of the controller, whichever controllers are enabled.
pub(super) static CONTROLLER: File = File::new("deploy/deploy_controller.yaml", embedded::DEPLOY_CONTROLLER);
/// Further permissions for cluster Secrets.
pub(super) static CLUSTER_SECRETS: File =
    File::new("deploy/deploy_cluster_secrets.yaml", embedded::DEPLOY_CLUSTER_SECRETS);
/// Further permissions for reports.
pub(super) static REPORT: File = File::new("deploy/deploy_report.yaml", embedded::DEPLOY_REPORT);
/// Further permissions for the basic pull model.
pub(super) static PULL: File = File::new("deploy/deploy_pull.yaml", embedded::DEPLOY_PULL);
/// Further permissions for GitOpsClusters.
pub(super) static GITOPS_CLUSTER: File = File::new("deploy/deploy_gitopscluster.yaml", embedded::DEPLOY_GITOPSCLUSTER);
/// Further permissions for argocd-agent.
pub(super) static AGENT: File = File::new("deploy/deploy_argocd_agent.yaml", embedded::DEPLOY_ARGOCD_AGENT);
