//! Masks the values of Secrets, as Argo CD does: equal values have equal masks, so that a difference is visible without its content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The mask of a value, and of the live value if it is another one.
const MASKS: [&str; 2] = ["++++++++", "+++++++++"];

/// The annotation in which kubectl keeps the object that it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The prefixes of annotations in which others keep copies of objects.
const COPIES: [&str; 2] = [LAST_APPLIED, "argocd.argoproj.io/"];

/// Prepares an object as sent and the live object to be shown: masks the values of Secrets, also of those within other objects, and removes
/// the record of field managers.
pub(crate) fn prepare(sent: &mut Value, live: Option<&mut Value>) {
    let live = match live {
        Some(live) => {
            if let Some(metadata) = live.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            live
        }
        None => &mut Value::Null,
    };
    if mask_secrets(sent, live) {
        for object in [sent, live] {
            remove_copies(object);
        }
    }
}

/// Masks the Secrets in two versions of a value, and returns true if there are any.
fn mask_secrets(sent: &mut Value, live: &mut Value) -> bool {
    let is_secret = |object: &Value| object["kind"] == "Secret" && object["apiVersion"] == "v1";
    let are_secrets = [is_secret(sent), is_secret(live)];
    if are_secrets.contains(&true) {
        mask_secret(sent, live);
        // What is in the place of a Secret in the other version may contain others.
        for (object, is_secret) in [sent, live].into_iter().zip(are_secrets) {
            if !is_secret {
                mask_secrets(object, &mut Value::Null);
            }
        }
        return true;
    }
    let mut has_secret = false;
    match sent {
        Value::Object(fields) => {
            for (key, value) in fields {
                has_secret |= mask_secrets(value, live.get_mut(key).unwrap_or(&mut Value::Null));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                has_secret |= mask_secrets(item, live.get_mut(at).unwrap_or(&mut Value::Null));
            }
        }
        _ => {}
    }
    // Those that only the live value has; the others are masked.
    match live {
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut().filter(|(key, _)| sent.get(key.as_str()).is_none()) {
                has_secret |= mask_secrets(&mut Value::Null, value);
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut().skip(sent.as_array().map_or(0, Vec::len)) {
                has_secret |= mask_secrets(&mut Value::Null, item);
            }
        }
        _ => {}
    }
    has_secret
}

fn mask_secret(sent: &mut Value, live: &mut Value) {
    for object in [&mut *sent, &mut *live] {
        merge_string_data(object);
        remove_copies(object);
    }
    let values = sent["data"].as_object().cloned().unwrap_or_default();
    mask(live, |key, value| {
        MASKS[usize::from(values.get(key).is_some_and(|sent| sent != value))]
    });
    mask(sent, |_, _| MASKS[0]);
}

/// Removes the annotations in which others keep copies of an object.
fn remove_copies(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !COPIES.iter().any(|copy| key.starts_with(copy)));
    }
}

/// Moves the texts of a Secret to its data, as the API server does.
fn merge_string_data(object: &mut Value) {
    let Some(texts) = object.as_object_mut().and_then(|object| object.remove("stringData")) else {
        return;
    };
    let Value::Object(texts) = texts else { return };
    let encoded = texts.into_iter().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (key, Value::String(STANDARD.encode(text)))
    });
    let encoded: Map<String, Value> = encoded.collect();
    match object.get_mut("data").and_then(Value::as_object_mut) {
        Some(data) => data.extend(encoded),
        None => object["data"] = Value::Object(encoded),
    }
}

fn mask(object: &mut Value, mask_of: impl Fn(&str, &Value) -> &'static str) {
    let Some(data) = object.get_mut("data") else { return };
    match data {
        Value::Object(data) => {
            for (key, value) in data.iter_mut() {
                *value = mask_of(key, value).into();
            }
        }
        // No Secret has such data: a cluster may send anything.
        other => *other = Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Such as in an Object of Crossplane.
    #[test]
    fn masks_secrets_within_other_objects() {
        let object = |text: &str| {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": text}});
            json!({
                "kind": "Object", "metadata": {"annotations": {LAST_APPLIED: text}},
                "spec": {"forProvider": {"manifest": secret}, "more": [secret]},
            })
        };
        let (mut sent, mut live) = (object("czM="), object("b3RoZXI="));
        live["status"] = live["spec"].clone();
        prepare(&mut sent, Some(&mut live));
        for (value, secret) in [(&sent, "czM="), (&live, "b3RoZXI=")] {
            assert!(!value.to_string().contains(secret), "{value}");
        }
        assert_eq!(sent["spec"]["more"][0]["data"]["password"], MASKS[0]);
        assert_eq!(live["spec"]["more"][0]["data"]["password"], MASKS[1]);
    }

    #[test]
    fn masks_a_secret_in_what_is_in_the_place_of_a_secret() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aGlkZGVu"}});
        let wrapper = json!({"kind": "Object", "spec": {"manifest": secret}});
        for (first, second) in [(&secret, &wrapper), (&wrapper, &secret)] {
            let [mut sent, mut live] = [first, second].map(|object| json!({"items": [object]}));
            prepare(&mut sent, Some(&mut live));
            assert!(!format!("{sent}{live}").contains("aGlkZGVu"), "{sent} {live}");
        }
    }

    #[test]
    fn masks_values_and_shows_which_differ() {
        let annotations = json!({LAST_APPLIED: "{\"data\":{\"a\":\"c2VjcmV0\"}}", "team": "a"});
        let mut sent = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2VjcmV0"}, "stringData": {"b": "hidden", "c": 7}});
        let mut live = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": annotations, "managedFields": [{}]},
            "data": {"a": "c2VjcmV0", "b": "b3RoZXI=", "d": "bW9yZQ=="}});
        prepare(&mut sent, Some(&mut live));
        assert_eq!(sent["data"], json!({"a": MASKS[0], "b": MASKS[0], "c": MASKS[0]}));
        assert_eq!(live["data"], json!({"a": MASKS[0], "b": MASKS[1], "d": MASKS[0]}));
        assert_eq!(live["metadata"], json!({"annotations": {"team": "a"}}));
        let text = format!("{sent}{live}");
        for secret in ["c2VjcmV0", "hidden", "b3RoZXI", "bW9yZ", "stringData"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn masks_a_secret_that_a_cluster_sends_for_another_kind() {
        let mut sent = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}});
        let mut live = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2VjcmV0"}});
        prepare(&mut sent, Some(&mut live));
        assert_eq!(live["data"]["a"], MASKS[1]);
        let mut live = json!({"apiVersion": "v1", "kind": "Secret", "data": ["c2VjcmV0"], "stringData": "x"});
        prepare(&mut json!({"apiVersion": "v1", "kind": "Secret"}), Some(&mut live));
        assert!(!live.to_string().contains("c2VjcmV0"), "{live}");
    }

    #[test]
    fn other_kinds_keep_their_data() {
        let mut sent = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}});
        let (before, mut live) = (sent.clone(), sent.clone());
        prepare(&mut sent, Some(&mut live));
        prepare(&mut sent, None);
        assert_eq!((&sent, &live), (&before, &before));
    }
}
