//! The canonical form of an object: the form that the API server and kubectl's apply, which Argo CD uses, do not change.

use super::object::{ObjectFault, wrong_type};
use base64::engine::{Engine, general_purpose::STANDARD as BASE64};
use manifest::value::{Map, Value};
use std::borrow::Cow;

/// The fields of `metadata` that the API server sets; exported manifests contain them.
pub(super) const SERVER_SET: [&str; 9] = [
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

/// The fields of `metadata` that manifests may set.
pub(super) const METADATA: [&str; 6] = [
    "annotations",
    "finalizers",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
];

/// The annotations that kubectl and the Deployment controller write; exported manifests contain them. Server-side apply would
/// conflict with the owner of the second.
pub(super) const SET_BY_OTHERS: [&str; 2] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
];

/// Removes null fields at any depth. Null items of lists stay, because their removal would shift other items.
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

/// Removes the descriptions of fields from a CRD.
pub(super) fn strip_descriptions(fields: &mut Map<'_>) {
    if fields.get("kind").and_then(Value::as_str) != Some("CustomResourceDefinition") {
        return;
    }
    let spec = fields.map_at_mut(&["spec"]);
    if let Some(Value::List(versions)) = spec.and_then(|spec| spec.get_mut("versions")) {
        for version in versions.iter_mut().filter_map(Value::as_map_mut) {
            let schema = version.map_at_mut(&["schema"]);
            if let Some(schema) = schema.and_then(|schema| schema.get_mut("openAPIV3Schema")) {
                strip_schema(schema);
            }
        }
    }
}

/// Removes the descriptions from a schema. A field may have the name `description`, too.
fn strip_schema(schema: &mut Value<'_>) {
    match schema {
        Value::List(schemas) => schemas.iter_mut().for_each(strip_schema),
        Value::Map(schema) => schema.retain(|key, value| {
            match (key, &mut *value) {
                ("description", Value::String(_)) => return false,
                ("properties" | "patternProperties" | "definitions", Value::Map(schemas)) => {
                    schemas.retain(|_, schema| {
                        strip_schema(schema);
                        true
                    });
                }
                ("items" | "additionalProperties" | "not" | "allOf" | "anyOf" | "oneOf", schema) => {
                    strip_schema(schema);
                }
                _ => {}
            }
            true
        }),
        _ => {}
    }
}

/// Merges the `stringData` of a Secret into `data`, as the API server does on every write. Otherwise server-side apply could not
/// track which keys of `data` belong to the manifest, and a key removed in Git would stay.
///
/// Values that the API server would reject are left unchanged, so that it reports them.
pub(super) fn fold_string_data(fields: &mut Map<'_>) {
    let texts = match fields.get("stringData") {
        Some(Value::Map(texts)) if texts.iter().all(|(_, text)| text.as_str().is_some()) => texts,
        _ => return,
    };
    let encoded: Vec<(Cow<'_, str>, Value<'_>)> = texts
        .iter()
        .filter_map(|(key, text)| Some((key.to_owned().into(), Value::from_text(BASE64.encode(text.as_str()?)))))
        .collect();
    let mut data = match fields.remove("data") {
        None => Map::default(),
        Some(Value::Map(data)) => data,
        Some(other) => return fields.insert("data", other),
    };
    data.extend(encoded);
    fields.insert("data", Value::Map(data));
    fields.remove("stringData");
}

/// Removes the fields of an object's `metadata` that the API server does not keep.
pub(super) fn metadata(metadata: &mut Map<'_>) -> Result<(), ObjectFault> {
    let mut fault = None;
    // Exported Pods have a name and the `generateName` from which the API server made it.
    let has_name = metadata.get("name").is_some_and(|name| name.as_str() != Some(""));
    metadata.retain(|key, value| {
        if SERVER_SET.contains(&key) || has_name && key == "generateName" {
            return false;
        }
        if let Err(problem) = check(key, value) {
            fault.get_or_insert(problem);
        }
        if let ("annotations", Value::Map(annotations)) = (key, &mut *value) {
            annotations.retain(|name, _| !SET_BY_OTHERS.contains(&name));
        }
        // An empty collection as name or namespace is a mistake: keep it, so that parsing the field reports it.
        matches!(key, "name" | "namespace") || !value.is_empty_collection()
    });
    fault.map_or(Ok(()), Err)
}

fn check(key: &str, value: &Value<'_>) -> Result<(), ObjectFault> {
    match (key, value) {
        ("labels" | "annotations", Value::Map(texts)) => only_texts(key, texts),
        ("labels" | "annotations", other) => Err(wrong_type(&format!("metadata.{key}"), other, "a mapping")),
        ("finalizers" | "ownerReferences", Value::List(_)) | ("name" | "namespace", _) => Ok(()),
        ("finalizers" | "ownerReferences", other) => Err(wrong_type(&format!("metadata.{key}"), other, "a list")),
        ("generateName", _) => Err(ObjectFault::GenerateName),
        _ => Err(ObjectFault::UnknownMetadata(key.to_owned())),
    }
}

/// Checks that labels or annotations are strings.
fn only_texts(field: &str, texts: &Map<'_>) -> Result<(), ObjectFault> {
    match texts.iter().find(|(_, value)| !matches!(value, Value::String(_))) {
        None => Ok(()),
        Some((key, other)) => Err(wrong_type(&format!("metadata.{field}[{key}]"), other, "text")),
    }
}
