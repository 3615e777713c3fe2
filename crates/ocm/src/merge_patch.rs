//! JSON merge patches (RFC 7396).

use serde_json::{Map, Value};

/// Returns the merge patch from one value to the other. Lists are replaced. `None` if they are equal.
pub fn between(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let part = match old.get(key) {
            Some(before) => between(before, value),
            None => Some(value.clone()),
        };
        if let Some(part) = part {
            patch.insert(key.clone(), part);
        }
    }
    (!patch.is_empty()).then(|| patch.into())
}
