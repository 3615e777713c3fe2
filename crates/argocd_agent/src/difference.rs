//! Differences between desired and current objects.

use serde_json::{Map, Value};

/// Returns the JSON merge patch from the current object to the desired one, or `None` if there is no difference. Keeps fields
/// that the desired object does not have, such as labels that others added; `null` in the desired object removes a field.
/// Compares lists as a whole, because a merge patch replaces them: the desired list must contain the fields that the API server
/// adds as defaults. An empty object equals a missing one, because the API server may drop it.
pub fn difference(desired: &Value, existing: &Value) -> Option<Value> {
    let Value::Object(fields) = desired else {
        return (desired != existing).then(|| desired.clone());
    };
    let nothing = Map::new();
    let present = match existing {
        Value::Object(present) => present,
        Value::Null => &nothing,
        _ => return Some(desired.clone()),
    };
    let part = |(key, desired): (&String, &Value)| {
        let existing = present.get(key).unwrap_or(&Value::Null);
        Some((key.clone(), difference(desired, existing)?))
    };
    let patch: Map<_, _> = fields.iter().filter_map(part).collect();
    (!patch.is_empty()).then(|| patch.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use testing::merge;

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
    fn patch_reaches_the_desired_state_in_one_step() {
        for desired in values() {
            for existing in values() {
                let mut after = existing.clone();
                if let Some(patch) = difference(&desired, &existing) {
                    merge(&mut after, &patch);
                    assert_ne!(after, existing, "{patch} of {desired} does nothing to {existing}");
                }
                assert_eq!(
                    difference(&desired, &after),
                    None,
                    "{desired} of {existing} gave {after}"
                );
            }
        }
    }

    #[test]
    fn patch_keeps_fields_that_others_added() {
        let desired = json!({"metadata": {"labels": {"mine": "1"}}, "spec": {"list": [1]}});
        let existing = json!({
            "metadata": {"labels": {"theirs": "1"}, "uid": "u"},
            "spec": {"list": [1, 2], "default": true},
        });
        assert_eq!(
            difference(&desired, &existing),
            Some(json!({"metadata": {"labels": {"mine": "1"}}, "spec": {"list": [1]}}))
        );
        assert_eq!(difference(&json!({"spec": {"empty": {}}}), &existing), None);
        assert_eq!(
            difference(&json!({"spec": {"default": null}}), &existing),
            Some(json!({"spec": {"default": null}}))
        );
    }
}
