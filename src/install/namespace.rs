//! Moves an object of our files to the namespace of another Argo CD.

use super::object::is_admission_policy;
use super::{SHIPPED_NAMESPACE, ShippedObject};
use serde_json::Value;

/// Replaces the shipped namespace in an object: in its metadata and in that of manifests for clusters, subjects of bindings and of
/// FlowSchemas, the namespaces of a FlowSchema, permissions on that namespace, and names and expressions of admission policies.
pub(super) fn relocate(object: &mut ShippedObject, namespace: &str) {
    if is_admission_policy(object.kind()) {
        policy(&mut object.value, namespace);
    } else if object.kind() != "CustomResourceDefinition" {
        // Text in a schema or in data is not the namespace.
        walk(&mut object.value, namespace);
    }
}

fn walk(value: &mut Value, namespace: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, namespace)),
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
                    (_, value) => walk(value, namespace),
                }
            }
        }
        _ => {}
    }
}

/// The texts before and after the namespace in expressions of admission policies.
const IN_EXPRESSIONS: [(&str, &str); 2] = [
    ("'system:serviceaccount:", ":"),
    ("'gitopscluster.argocd-ocm-cmp.github.io/", "'"),
];

/// Renames an admission policy and its binding: their names end in the namespace, because they are cluster-scoped.
fn policy(value: &mut Value, namespace: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| policy(item, namespace)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let moved = value.as_str().and_then(|text| match key.as_str() {
                    "name" | "policyName" => {
                        let stem = text.strip_suffix(SHIPPED_NAMESPACE)?.strip_suffix('.')?;
                        Some(format!("{stem}.{namespace}"))
                    }
                    // Of the parameters of a binding.
                    "namespace" => (text == SHIPPED_NAMESPACE).then(|| namespace.to_owned()),
                    "expression" => Some(IN_EXPRESSIONS.iter().fold(text.to_owned(), |text, (before, after)| {
                        let shipped = format!("{before}{SHIPPED_NAMESPACE}{after}");
                        text.replace(&shipped, &format!("{before}{namespace}{after}"))
                    })),
                    _ => None,
                });
                match moved {
                    Some(text) => *value = text.into(),
                    None => policy(value, namespace),
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
