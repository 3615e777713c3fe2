//! The parameters of the manifests for a managed cluster, and what several of them have in common.

use super::pod::selector;
use crate::argocd_agent::{Images, Mode, labels};
use serde_json::{Value, json};

pub(super) const REDIS: &str = "argocd-redis";
pub(super) const REPO_SERVER: &str = "argocd-repo-server";

/// The annotation of objects that OCM keeps on the cluster when it uninstalls the add-on.
pub(super) const STAYS: &str = "addon.open-cluster-management.io/deletion-orphan";

/// The parameters of the manifests.
pub(super) struct TemplateContext<'a> {
    pub(super) namespace: &'a str,
    pub(super) mode: Mode,
    pub(super) images: &'a Images,
}

impl TemplateContext<'_> {
    /// Returns the metadata of an object in the namespace.
    pub(super) fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace, "labels": labels()})
    }
}

/// Returns a Deployment with at most one Pod at a time, so that no leader election is needed.
pub(super) fn deployment_of(context: &TemplateContext<'_>, name: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(name),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector(name)},
            "template": pod,
        },
    })
}
