//! Differences between desired and current objects.

use serde_json::{Map, Value};

/// Returns the JSON merge patch from the current object to the desired one, or `None` if there is no difference. Keeps fields
/// that the desired object does not have, such as labels that others added; `null` in the desired object removes a field.
/// Compares lists as a whole, because a merge patch replaces them: the desired list must contain the fields that the API server
/// adds as defaults. An empty object equals a missing one, because the API server may drop it.
#[must_use]
pub fn difference(wanted: &Value, there: &Value) -> Option<Value> {
    let Value::Object(fields) = wanted else {
        return (wanted != there).then(|| wanted.clone());
    };
    let nothing = Map::new();
    let present = match there {
        Value::Object(present) => present,
        Value::Null => &nothing,
        _ => return Some(wanted.clone()),
    };
    let part = |(key, wanted): (&String, &Value)| {
        let there = present.get(key).unwrap_or(&Value::Null);
        Some((key.clone(), difference(wanted, there)?))
    };
    let patch: Map<_, _> = fields.iter().filter_map(part).collect();
    (!patch.is_empty()).then(|| patch.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Applies a merge patch (RFC 7396) like an API server.
    fn merge(object: &mut Value, patch: &Value) {
        let Value::Object(fields) = patch else {
            *object = patch.clone();
            return;
        };
        if !object.is_object() {
            *object = json!({});
        }
        let object = object.as_object_mut().expect("just made");
        for (key, value) in fields {
            if value.is_null() {
                object.remove(key);
            } else {
                merge(object.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }

    fn values() -> Vec<Value> {
        vec![
            json!({}),
            json!({"a": 1}),
            json!({"a": 2, "b": {"c": [1, 2]}}),
            json!({"a": null, "b": {"c": [1]}}),
            json!({"b": {"c": [{"x": 1}, {"y": {}}], "d": "t"}}),
            json!({"b": {}, "metadata": {"labels": {"mine": "1"}}}),
            json!({"b": "text", "metadata": {"labels": {"theirs": "1"}, "uid": "u"}}),
            json!({"b": {"c": {"deep": {"er": true}}}}),
        ]
    }

    #[test]
    fn a_patch_leads_to_what_is_wanted_and_then_there_is_none() {
        for wanted in values() {
            for there in values() {
                let mut after = there.clone();
                if let Some(patch) = difference(&wanted, &there) {
                    merge(&mut after, &patch);
                    assert_ne!(after, there, "{patch} of {wanted} does nothing to {there}");
                }
                assert_eq!(difference(&wanted, &after), None, "{wanted} of {there} gave {after}");
            }
        }
    }

    #[test]
    fn what_others_have_added_stays() {
        let wanted = json!({"metadata": {"labels": {"mine": "1"}}, "spec": {"list": [1]}});
        let there = json!({
            "metadata": {"labels": {"theirs": "1"}, "uid": "u"},
            "spec": {"list": [1, 2], "default": true},
        });
        assert_eq!(
            difference(&wanted, &there),
            Some(json!({"metadata": {"labels": {"mine": "1"}}, "spec": {"list": [1]}}))
        );
        assert_eq!(difference(&json!({"spec": {"empty": {}}}), &there), None);
        assert_eq!(
            difference(&json!({"spec": {"default": null}}), &there),
            Some(json!({"spec": {"default": null}}))
        );
    }
}
