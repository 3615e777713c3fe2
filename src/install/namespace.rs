//! Moves an object of our files to the namespace of another Argo CD.

use super::{SHIPPED_NAMESPACE, ShippedObject};
use serde_json::Value;

/// The texts before and after the namespace in expressions of admission policies.
const IN_EXPRESSIONS: [(&str, &str); 2] = [
    ("'system:serviceaccount:", ":"),
    ("'gitopscluster.argocd-ocm-cmp.github.io/", "'"),
];

/// Replaces the shipped namespace in an object: in its metadata and in that of manifests for clusters, subjects of bindings and of
/// FlowSchemas, the namespaces of a FlowSchema, permissions on that namespace, and names and expressions of admission policies.
pub(super) fn relocate(object: &mut ShippedObject, namespace: &str) {
    let is_policy = object.is_admission_policy();
    // Text in a schema or in data is not the namespace.
    if object.kind() != "CustomResourceDefinition" {
        walk(&mut object.value, namespace, is_policy);
    }
}

fn walk(value: &mut Value, namespace: &str, is_policy: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, namespace, is_policy)),
        Value::Object(fields) => {
            let resources = fields.get("resources").and_then(Value::as_array);
            let is_right = resources.is_some_and(|resources| resources.iter().any(|resource| resource == "namespaces"));
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("namespace" | "agentInstallNamespace", value) => rename(value, namespace),
                    ("namespaces", Value::Array(names)) => names.iter_mut().for_each(|name| rename(name, namespace)),
                    ("resourceNames", Value::Array(names)) if is_right => {
                        for name in names {
                            rename(name, namespace);
                        }
                    }
                    ("data", _) => {}
                    // The names of cluster-scoped objects end in the namespace.
                    ("name" | "policyName", Value::String(text)) if is_policy => {
                        let stem = text.strip_suffix(SHIPPED_NAMESPACE).filter(|stem| stem.ends_with('.'));
                        if let Some(stem) = stem {
                            *text = format!("{stem}{namespace}");
                        }
                    }
                    ("expression", Value::String(text)) if is_policy => {
                        for (before, after) in IN_EXPRESSIONS {
                            let shipped = format!("{before}{SHIPPED_NAMESPACE}{after}");
                            *text = text.replace(&shipped, &format!("{before}{namespace}{after}"));
                        }
                    }
                    (_, value) => walk(value, namespace, is_policy),
                }
            }
        }
        _ => {}
    }
}

fn rename(value: &mut Value, namespace: &str) {
    match value.as_str() {
        Some(SHIPPED_NAMESPACE) => *value = namespace.into(),
        // A denied destination of an AppProject.
        Some(text) if text.strip_prefix('!') == Some(SHIPPED_NAMESPACE) => *value = format!("!{namespace}").into(),
        _ => {}
    }
}
