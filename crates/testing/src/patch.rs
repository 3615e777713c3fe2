use serde_json::{Map, Value, json};

/// Applies a merge patch (RFC 7396) like an API server.
pub fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        object.clone_from(patch);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Returns the merge patch that turns one value into another. No patch sets a value to null: [`merge`] removes it.
pub fn create_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (key, value) in after {
        let previous = before.get(key);
        if previous != Some(value) {
            patch.insert(key.clone(), create_patch(previous.unwrap_or(&Value::Null), value));
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}
