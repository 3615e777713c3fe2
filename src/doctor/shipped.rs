//! The files that give rights, and what is in files of ours.

use crate::{files, json, yaml};
use serde_json::Value;

/// A file that gives rights to somebody.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// What Argo CD's application controller needs.
pub(super) static ARGO_CD: File = File {
    name: "argocd_rbac.yaml",
    text: files::ARGOCD_RBAC,
};
/// What the companion needs for whatever it does.
pub(super) static CONTROLLER: File = File {
    name: "deploy_controller.yaml",
    text: files::DEPLOY_CONTROLLER,
};
/// What it needs in addition for cluster Secrets.
pub(super) static CLUSTER_SECRETS: File = File {
    name: "deploy_cluster_secrets.yaml",
    text: files::DEPLOY_CLUSTER_SECRETS,
};
/// What it needs in addition for reports.
pub(super) static REPORT: File = File {
    name: "deploy_report.yaml",
    text: files::DEPLOY_REPORT,
};
/// What it needs in addition for the basic pull model.
pub(super) static PULL: File = File {
    name: "deploy_pull.yaml",
    text: files::DEPLOY_PULL,
};
/// What it needs in addition for GitOpsClusters.
pub(super) static GITOPS_CLUSTER: File = File {
    name: "deploy_gitopscluster.yaml",
    text: files::DEPLOY_GITOPSCLUSTER,
};
/// What it needs in addition for argocd-agent.
pub(super) static AGENT: File = File {
    name: "deploy_argocd_agent.yaml",
    text: files::DEPLOY_ARGOCD_AGENT,
};
/// What it needs in addition where the work is divided.
pub(super) static SHARDS: File = File {
    name: "deploy_shards.yaml",
    text: files::DEPLOY_SHARDS,
};

/// The objects of a file of ours, or the value of a text that somebody has written; of one that is no YAML there are none.
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
