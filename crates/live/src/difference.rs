//! Compares an object as sent with the live object. Fields that were not sent belong to others and do not count.

use crate::limits::DIFFERENCES;
use manifest::quantity;
use serde::Serialize;
use serde_json::Value;

/// A field with another live value than the one that was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// The path, such as `spec.replicas`.
    pub(crate) path: String,
    /// The value as sent.
    pub(crate) sent: Value,
    /// The live value; null if there is none.
    pub(crate) live: Value,
}

/// The fields whose values are quantities, which the API server writes in its own form.
const QUANTITIES: [&str; 5] = ["limits", "requests", "capacity", "hard", "overhead"];

/// The fields at the root of an object that say nothing about the desired state.
const IGNORED: [&str; 2] = ["apiVersion", "status"];

/// Returns the differences, at most [`DIFFERENCES`].
pub(crate) fn differences(sent: &Value, live: &Value) -> Vec<Difference> {
    let mut changes = Vec::new();
    for (key, value) in sent.as_object().into_iter().flatten() {
        if !IGNORED.contains(&&**key) {
            compare(key, value, &live[key], &mut changes);
        }
    }
    // The API server sets the creation time itself.
    changes.retain(|difference| difference.path != "metadata.creationTimestamp");
    changes.truncate(DIFFERENCES);
    changes
}

fn compare(path: &str, sent: &Value, live: &Value, changes: &mut Vec<Difference>) {
    if changes.len() > DIFFERENCES {
        return;
    }
    match (sent, live) {
        (Value::Object(fields), Value::Object(_)) => {
            for (key, value) in fields {
                compare(&below(path, key), value, &live[key], changes);
            }
        }
        (Value::Array(items), Value::Array(live_items)) if has_names(items) && has_names(live_items) => {
            for item in items {
                let live = live_items.iter().find(|live_item| live_item["name"] == item["name"]);
                let name = item["name"].as_str().unwrap_or_default();
                compare(&format!("{path}[{name}]"), item, live.unwrap_or(&Value::Null), changes);
            }
        }
        (Value::Array(items), Value::Array(live_items)) if items.len() == live_items.len() => {
            for (at, (item, live)) in items.iter().zip(live_items).enumerate() {
                compare(&format!("{path}[{at}]"), item, live, changes);
            }
        }
        _ if is_same(path, sent, live) => {}
        _ => changes.push(Difference {
            path: path.to_owned(),
            sent: sent.clone(),
            live: live.clone(),
        }),
    }
}

/// Returns the path of a field; a key with a dot is in brackets.
fn below(path: &str, key: &str) -> String {
    if key.contains(['.', '/']) {
        format!("{path}[{key}]")
    } else {
        format!("{path}.{key}")
    }
}

/// Returns true if a list is a map of objects by name, as the lists of containers and variables are.
fn has_names(items: &[Value]) -> bool {
    let names = |at: usize| items[at]["name"].as_str();
    !items.is_empty()
        && (0..items.len()).all(|at| names(at).is_some() && (0..at).all(|other| names(other) != names(at)))
}

fn is_same(path: &str, sent: &Value, live: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let is_quantity = QUANTITIES
        .iter()
        .any(|name| path.contains(&format!("{name}.")) || path.contains(&format!("{name}[")));
    sent == live
        || is_empty(sent) && is_empty(live)
        || matches!((sent.as_f64(), live.as_f64()), (Some(sent), Some(live)) if sent.total_cmp(&live).is_eq())
        || is_quantity
            && matches!((amount(sent), amount(live)), (Some(sent), Some(live)) if (sent - live).abs() <= sent.abs() * 1e-12)
}

/// Returns the value of a quantity such as `500m` or `1Gi`.
fn amount(value: &Value) -> Option<f64> {
    let Some(text) = value.as_str() else {
        return value.as_f64();
    };
    let end = text.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (factor, exponent) = quantity::suffix(suffix)?;
    #[expect(clippy::cast_precision_loss, reason = "a factor is a power of two")]
    let factor = factor as f64 * 10_f64.powi(exponent);
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(sent: &Value, live: &Value) -> Vec<String> {
        differences(sent, live)
            .into_iter()
            .map(|difference| difference.path)
            .collect()
    }

    #[test]
    fn reports_sent_fields_with_other_live_values() {
        let container =
            |image: &str, cpu: &str| json!({"name": "web", "image": image, "resources": {"limits": {"cpu": cpu}}});
        let sent = json!({
            "apiVersion": "apps/v1", "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}},
            "spec": {"replicas": 2, "template": {"containers": [container("a:1", "1000m"), {"name": "log"}]}, "args": ["a", "b"]},
            "status": {"replicas": 2},
        });
        let live = json!({
            "apiVersion": "apps/v1", "metadata": {"name": "web", "uid": "1", "labels": {"app.kubernetes.io/name": "other"}},
            "spec": {"replicas": 5, "template": {"containers": [{"name": "injected"}, container("a:2", "1")]}, "args": ["a"], "paused": true},
            "status": {"replicas": 1},
        });
        let mut changes = paths(&sent, &live);
        changes.sort_unstable();
        let expected = [
            "metadata.labels[app.kubernetes.io/name]",
            "spec.args",
            "spec.replicas",
            "spec.template.containers[log]",
            "spec.template.containers[web].image",
        ];
        assert_eq!(changes, expected);
        let replicas = differences(&sent, &live)
            .into_iter()
            .find(|difference| difference.path == "spec.replicas");
        let expected = Difference {
            path: "spec.replicas".to_owned(),
            sent: json!(2),
            live: json!(5),
        };
        assert_eq!(replicas, Some(expected));
    }

    #[test]
    fn equal_values_in_another_form_are_no_difference() {
        for (sent, live) in [
            (json!({"spec": {"a": null, "b": {}, "c": []}}), json!({"spec": {}})),
            (json!({"spec": {"a": 1}}), json!({"spec": {"a": 1.0}})),
            (
                json!({"spec": {"limits": {"memory": "1Gi"}}}),
                json!({"spec": {"limits": {"memory": "1024Mi"}}}),
            ),
            (
                json!({"spec": {"requests": {"cpu": 1}}}),
                json!({"spec": {"requests": {"cpu": "1"}}}),
            ),
            (
                json!({"metadata": {"creationTimestamp": null}}),
                json!({"metadata": {"creationTimestamp": "x"}}),
            ),
        ] {
            assert_eq!(paths(&sent, &live), [""; 0], "{sent}");
        }
        assert_eq!(
            paths(&json!({"data": {"a": "1"}}), &json!({"data": {"a": "1.0"}})),
            ["data.a"]
        );
    }

    #[test]
    fn missing_object_and_large_objects_are_bounded() {
        assert_eq!(paths(&json!({"spec": {"a": 1}}), &Value::Null), ["spec"]);
        let many = Value::Object((0..1_000).map(|at| (format!("k{at}"), json!(at))).collect());
        assert_eq!(
            differences(&json!({"data": many}), &json!({"data": {}})).len(),
            DIFFERENCES
        );
    }
}
