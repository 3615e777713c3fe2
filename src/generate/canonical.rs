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

/// Annotations that kubectl and the Deployment controller write, and manifests taken from a cluster have. Server-side apply
/// would contend for the second with its owner.
const SET_BY_OTHERS: [&str; 2] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
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

/// Turns the `stringData` of a Secret into `data`, as the API server does on every write. Server-side apply would not know
/// afterwards which keys of `data` were the manifest's, and a key removed in Git would stay.
///
/// Values that the API server would refuse are left as they are, for it to say so.
pub(super) fn fold_string_data(fields: &mut Map<'_>) {
    let texts = match fields.get("stringData") {
        Some(Value::Map(texts)) if texts.iter().all(|(_, text)| text.as_str().is_some()) => texts,
        _ => return,
    };
    let encoded: Vec<(String, String)> = texts
        .iter()
        .filter_map(|(key, text)| Some((key.to_owned(), base64(text.as_str()?.as_bytes()))))
        .collect();
    match fields.get("data") {
        None => fields.insert("data", Value::Map(Map::from_entries(Vec::new()))),
        Some(Value::Map(_)) => {}
        Some(_) => return,
    }
    if let Some(Value::Map(data)) = fields.get_mut("data") {
        for (key, text) in encoded {
            data.insert(key, Value::String(text.into()));
        }
    }
    fields.remove("stringData");
}

/// Base64 with padding (RFC 4648, section 4), as Kubernetes has it for bytes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let known = digit <= chunk.len();
            text.push(if known {
                char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
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
        if let ("annotations", Value::Map(annotations)) = (key, &mut *value) {
            annotations.retain(|name, _| !SET_BY_OTHERS.contains(&name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foo\u{ff}>", "Zm9vw78+"),
        ] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
