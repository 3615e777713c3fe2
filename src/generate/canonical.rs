//! The canonical form of an object: what the API server and kubectl's apply, which Argo CD uses, leave as it is.

use super::object::{Fault, wrong_type};
use crate::value::{Map, Value};

/// What the API server sets itself, in `metadata`; manifests taken from a cluster have them.
const SERVER_SET: [&str; 9] = [
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Takes out the fields that are null, at any depth; null items of lists stay, because taking them out would move the others.
pub(super) fn drop_nulls(fields: &mut Map<'_>) {
    fields.retain(|_, value| {
        drop_nulls_within(value);
        *value != Value::Null
    });
}

fn drop_nulls_within(value: &mut Value<'_>) {
    match value {
        Value::Map(fields) => drop_nulls(fields),
        Value::List(items) => items.iter_mut().for_each(drop_nulls_within),
        _ => {}
    }
}

/// Leaves in an object's `metadata` what the API server keeps.
///
/// # Errors
/// When a field is none of Kubernetes', or holds what it must not.
pub(super) fn metadata(metadata: &mut Map<'_>) -> Result<(), Fault> {
    let mut fault = None;
    metadata.retain(|key, value| {
        if SERVER_SET.contains(&key) {
            return false;
        }
        if let Err(found) = check(key, value) {
            fault.get_or_insert(found);
        }
        // An empty collection as name or namespace is a mistake, which its reader tells; nobody may guess another for it.
        matches!(key, "name" | "namespace") || !value.is_empty_collection()
    });
    fault.map_or(Ok(()), Err)
}

fn check(key: &str, value: &Value<'_>) -> Result<(), Fault> {
    match (key, value) {
        ("labels" | "annotations", Value::Map(texts)) => only_texts(key, texts),
        ("labels" | "annotations", other) => Err(wrong_type(&format!("metadata.{key}"), other, "a mapping")),
        ("finalizers" | "ownerReferences", Value::List(_)) | ("name" | "namespace", _) => Ok(()),
        ("finalizers" | "ownerReferences", other) => Err(wrong_type(&format!("metadata.{key}"), other, "a list")),
        ("generateName", _) => Err(Fault::GenerateName),
        _ => Err(Fault::UnknownMetadata(key.to_owned())),
    }
}

/// Labels and annotations hold text only.
fn only_texts(field: &str, texts: &Map<'_>) -> Result<(), Fault> {
    match texts.iter().find(|(_, value)| !matches!(value, Value::String(_))) {
        None => Ok(()),
        Some((key, other)) => Err(wrong_type(&format!("metadata.{field}[{key}]"), other, "text")),
    }
}
