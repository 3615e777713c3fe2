//! Users of the hub with few permissions.

use crate::stage::Stage;
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;

/// Creates the kubeconfig of a ServiceAccount with these verbs for these kinds of work in the namespace of `cluster1`.
pub(crate) fn account(stage: &Stage, name: &str, resources: &[&str], verbs: &[&str]) -> Result<PathBuf> {
    let api = "rbac.authorization.k8s.io/v1";
    let place = json!({"name": name, "namespace": "cluster1"});
    let permissions = json!({
        "apiGroups": ["work.open-cluster-management.io"],
        "resources": resources,
        "verbs": verbs,
    });
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": "default"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}),
        json!({"apiVersion": api, "kind": "Role", "metadata": place, "rules": [permissions]}),
        json!({"apiVersion": api, "kind": "RoleBinding", "metadata": place, "subjects": [subject], "roleRef": role}),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    stage.hub.apply_yaml(&list.to_string())?;
    stage.hub.service_account_kubeconfig("default", name)
}
