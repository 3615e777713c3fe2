//! Moves an object of our files to the namespace of another Argo CD.

use super::object::is_admission_policy;
use super::{SHIPPED_NAMESPACE, ShippedObject};
use manifest::value::{Map, Value};

/// Replaces the shipped namespace in an object: in its metadata and in that of manifests for clusters, subjects of bindings and of
/// FlowSchemas, the namespaces of a FlowSchema, permissions on that namespace, and names and expressions of admission policies.
pub(super) fn relocate(object: &mut ShippedObject, namespace: &str) {
    if is_admission_policy(object.kind()) {
        policy(object.value_mut(), namespace);
    } else if object.kind() != "CustomResourceDefinition" {
        // Text in a schema or in data is not the namespace.
        walk(object.value_mut(), namespace);
    }
}

fn walk(value: &mut Value<'static>, namespace: &str) {
    match value {
        Value::List(items) => {
            for item in items {
                walk(item, namespace);
            }
        }
        Value::Map(map) => {
            let is_right = is_right_on_namespaces(map);
            map.retain(|key, value| {
                match (key, &mut *value) {
                    ("namespace" | "agentInstallNamespace", value) => rename(value, namespace),
                    ("namespaces", Value::List(names)) => rename_all(names, namespace),
                    ("resourceNames", Value::List(names)) if is_right => rename_all(names, namespace),
                    ("data", _) => {}
                    (_, value) => walk(value, namespace),
                }
                true
            });
        }
        _ => {}
    }
}

/// The texts before and after the namespace in expressions of admission policies.
const IN_EXPRESSIONS: [(&str, &str); 2] = [
    ("'system:serviceaccount:", ":argocd-ocm-cmp-controller'"),
    ("'gitopscluster.argocd-ocm-cmp.github.io/", "'"),
];

/// Renames an admission policy and its binding: their names end in the namespace, because they are cluster-scoped.
fn policy(value: &mut Value<'static>, namespace: &str) {
    match value {
        Value::List(items) => items.iter_mut().for_each(|item| policy(item, namespace)),
        Value::Map(map) => map.retain(|key, value| {
            let moved = value.as_str().and_then(|text| match key {
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
                Some(text) => *value = Value::from_text(text),
                None => policy(value, namespace),
            }
            true
        }),
        _ => {}
    }
}

fn rename_all(names: &mut [Value<'static>], namespace: &str) {
    for name in names {
        rename(name, namespace);
    }
}

fn rename(value: &mut Value<'static>, namespace: &str) {
    match value.as_str() {
        Some(SHIPPED_NAMESPACE) => *value = Value::from_text(namespace),
        // A denied destination of an AppProject.
        Some(text) if text.strip_prefix('!') == Some(SHIPPED_NAMESPACE) => {
            *value = Value::from_text(format!("!{namespace}"));
        }
        _ => {}
    }
}

fn is_right_on_namespaces(rule: &Map<'_>) -> bool {
    matches!(rule.get("resources"), Some(Value::List(of)) if of.iter().any(|value| value.as_str() == Some("namespaces")))
}
