//! The common parts of all Pods.

use super::super::labels;
use serde_json::{Map, Value, json};

/// Returns the security context of a container: stricter than the Pod Security Standard `restricted`.
pub(super) fn security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// Returns a container with minimal settings.
pub(super) fn container(name: &str, image: Option<&str>, (cpu, memory): (&str, &str)) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "securityContext": security(),
    })
}

/// Returns an HTTP probe.
pub(super) fn probe(path: &str, port: u16, period_seconds: u32) -> Value {
    json!({"httpGet": {"path": path, "port": port}, "periodSeconds": period_seconds, "timeoutSeconds": 5})
}

/// Returns an environment variable.
pub(super) fn env(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

/// Returns an environment variable from a Secret.
pub(super) fn secret_env(name: &str, secret: &str, key: &str) -> Value {
    json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

/// Returns an environment variable from an optional ConfigMap, which the cluster's administrator may create.
pub(super) fn given_env((name, config_map, key): (&str, &str, &str)) -> Value {
    json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": key, "optional": true}}})
}

/// Returns an environment variable from a field of the Pod.
pub(super) fn field_env(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// Returns a volume mount.
pub(super) fn mount(volume: &str, path: &str) -> Value {
    json!({"name": volume, "mountPath": path})
}

/// Returns a volume that is empty when the Pod starts.
pub(super) fn scratch(volume: &str) -> Value {
    json!({"name": volume, "emptyDir": {}})
}

/// Returns the selector of the Pods with this name.
pub(super) fn selector(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name})
}

/// Returns the template of the Pods with this name, which is also the name of their ServiceAccount.
pub(super) fn template(name: &str, has_token: bool, init: &[Value], container: &Value, volumes: &[Value]) -> Value {
    let mut pod_labels = selector(name);
    let ours: Map<String, Value> = labels().as_object().cloned().unwrap_or_default();
    pod_labels.as_object_mut().expect("a selector").extend(ours);
    let mut spec = json!({
        "serviceAccountName": name,
        "automountServiceAccountToken": has_token,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            // The images name their users, and OpenShift assigns others.
            "runAsNonRoot": true,
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
