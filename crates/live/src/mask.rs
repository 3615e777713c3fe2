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

/// Prepares an object as sent and the live object to be shown: masks the values of Secrets, and removes the record of field managers.
pub(crate) fn prepare(sent: &mut Value, live: Option<&mut Value>) {
    let is_secret = |object: &Value| object["kind"] == "Secret" && object["apiVersion"] == "v1";
    let live = match live {
        Some(live) => {
            if let Some(metadata) = live.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            live
        }
        None => &mut Value::Null,
    };
    if !is_secret(sent) && !is_secret(live) {
        return;
    }
    for object in [&mut *sent, &mut *live] {
        merge_string_data(object);
        let annotations = object.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !COPIES.iter().any(|copy| key.starts_with(copy)));
        }
    }
    let values = sent["data"].as_object().cloned().unwrap_or_default();
    mask(live, |key, value| {
        MASKS[usize::from(values.get(key).is_some_and(|sent| sent != value))]
    });
    mask(sent, |_, _| MASKS[0]);
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
