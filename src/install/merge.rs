//! Merges two objects with the same identity. If they were applied one after the other with one field manager, the second would
//! remove the fields of the first.

use serde_json::Value;

/// Merges `more` into `into`; a field in both gets the value of `more`. Items of lists match by Kubernetes' merge keys, for the
/// lists that our files contain.
pub(super) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) => {
            for item in more {
                let same = key_of(&item);
                match into.iter_mut().find(|held| same.is_some() && key_of(held) == same) {
                    Some(held) => merge(held, item),
                    None => into.push(item),
                }
            }
        }
        (into, more) => *into = more,
    }
}

/// Returns the merge key of an item: the path of mounts, the name of all others.
fn key_of(item: &Value) -> Option<&str> {
    item["mountPath"].as_str().or(item["name"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_list_items_by_key() {
        let read = |text| serde_json::from_str::<Value>(text).expect("JSON");
        let mut one = read(
            r#"{"a":1,"containers":[{"name":"x","image":"i","volumeMounts":[{"mountPath":"/a","name":"v"}]}],"volumes":[{"name":"v"}]}"#,
        );
        let other = r#"{"a":2,"containers":[{"name":"x","env":[{"name":"E"}],"volumeMounts":[{"mountPath":"/b","name":"v"}]},{"name":"y"}]}"#;
        merge(&mut one, read(other));
        let expected = r#"{"a":2,"containers":[{"name":"x","image":"i","env":[{"name":"E"}],
            "volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v"}]},{"name":"y"}],"volumes":[{"name":"v"}]}"#;
        assert_eq!(one, read(expected));
        let before = one.clone();
        merge(&mut one, before.clone());
        assert_eq!(one, before, "equal items are not duplicated");
    }
}
