//! The shipped files that grant permissions, and the objects of shipped files.

use crate::embedded;
use manifest::{json, yaml};
use serde_json::Value;

/// A file that grants permissions.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// Permissions of Argo CD's application controller.
pub(super) static ARGO_CD: File = File {
    name: "deploy/argocd_rbac.yaml",
    text: embedded::ARGOCD_RBAC,
};
/// Permissions of the controller, whichever controllers are enabled.
pub(super) static CONTROLLER: File = File {
    name: "deploy/deploy_controller.yaml",
    text: embedded::DEPLOY_CONTROLLER,
};
/// Further permissions for cluster Secrets.
pub(super) static CLUSTER_SECRETS: File = File {
    name: "deploy/deploy_cluster_secrets.yaml",
    text: embedded::DEPLOY_CLUSTER_SECRETS,
};
/// Further permissions for reports.
pub(super) static REPORT: File = File {
    name: "deploy/deploy_report.yaml",
    text: embedded::DEPLOY_REPORT,
};
/// Further permissions for the basic pull model.
pub(super) static PULL: File = File {
    name: "deploy/deploy_pull.yaml",
    text: embedded::DEPLOY_PULL,
};
/// Further permissions for GitOpsClusters.
pub(super) static GITOPS_CLUSTER: File = File {
    name: "deploy/deploy_gitopscluster.yaml",
    text: embedded::DEPLOY_GITOPSCLUSTER,
};
/// Further permissions for argocd-agent.
pub(super) static AGENT: File = File {
    name: "deploy/deploy_argocd_agent.yaml",
    text: embedded::DEPLOY_ARGOCD_AGENT,
};

/// Returns the objects of a shipped file, or of a text from a user; none if it is not YAML.
pub(super) fn objects(text: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for document in yaml::documents(text) {
        let Ok(document) = document else { return Vec::new() };
        let mut object = String::new();
        let written = json::write(&document.value, &mut object);
        let Some(object) = written.ok().and_then(|()| serde_json::from_str(&object).ok()) else {
            return Vec::new();
        };
        objects.push(object);
    }
    objects
}
