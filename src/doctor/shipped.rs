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
/// The files with further permissions, with the controllers that need them.
pub(super) static OF_CONTROLLERS: [(&[&str], File); 5] = [
    (&["pull"], File::new("deploy/deploy_pull.yaml", embedded::DEPLOY_PULL)),
    (
        &["cluster-secrets"],
        File::new("deploy/deploy_cluster_secrets.yaml", embedded::DEPLOY_CLUSTER_SECRETS),
    ),
    (
        &["application-set-report"],
        File::new("deploy/deploy_report.yaml", embedded::DEPLOY_REPORT),
    ),
    (
        &["gitopscluster", "argocd-agent"],
        File::new("deploy/deploy_gitopscluster.yaml", embedded::DEPLOY_GITOPSCLUSTER),
    ),
    (
        &["argocd-agent"],
        File::new("deploy/deploy_argocd_agent.yaml", embedded::DEPLOY_ARGOCD_AGENT),
    ),
];
