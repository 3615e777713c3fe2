//! What all pods have in common.

use super::super::labels;
use serde_json::{Map, Value, json};

/// The user of Argo CD's, argocd-agent's and Redis's images.
const USER: u32 = 999;

/// What a container may, which is what the strictest Pod Security Standard (`restricted`) lets one do, and less.
pub(super) fn security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// A container with the least that it needs.
pub(super) fn container(name: &str, image: Option<&str>, (cpu, memory): (&str, &str)) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "securityContext": security(),
    })
}

/// A probe by HTTP.
pub(super) fn probe(path: &str, port: u16, period_seconds: u32) -> Value {
    json!({"httpGet": {"path": path, "port": port}, "periodSeconds": period_seconds, "timeoutSeconds": 5})
}

/// A setting.
pub(super) fn env(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

/// A setting that is in a Secret.
pub(super) fn secret_env(name: &str, secret: &str, key: &str) -> Value {
    json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

/// A setting that whoever runs the cluster may give in a ConfigMap, which need not be there.
pub(super) fn given_env((name, config_map, key): (&str, &str, &str)) -> Value {
    json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": key, "optional": true}}})
}

/// A setting that is known only where the pod runs.
pub(super) fn field_env(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// A folder in a container.
pub(super) fn mount(volume: &str, path: &str) -> Value {
    json!({"name": volume, "mountPath": path})
}

/// A folder that is empty when the pod starts.
pub(super) fn scratch(volume: &str) -> Value {
    json!({"name": volume, "emptyDir": {}})
}

/// The selector of the pods of this name.
pub(super) fn selector(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name})
}

/// The template of the pods of this name, which is also that of their ServiceAccount.
pub(super) fn template(name: &str, has_token: bool, init: &[Value], container: &Value, volumes: &[Value]) -> Value {
    let mut pod_labels = selector(name);
    let ours: Map<String, Value> = labels().as_object().cloned().unwrap_or_default();
    pod_labels.as_object_mut().expect("a selector").extend(ours);
    let mut spec = json!({
        "serviceAccountName": name,
        "automountServiceAccountToken": has_token,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    });
    if !init.is_empty() {
        spec["initContainers"] = init.into();
    }
    json!({"metadata": {"labels": pod_labels}, "spec": spec})
}
