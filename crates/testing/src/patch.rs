use serde_json::{Value, json};

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
