//! Fields without a value, which programs in Go drop from objects, or add.

use serde_json::Value;

/// Removes the fields without a value.
pub fn remove_zeros(value: &mut Value) {
    let is_zero = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_zeros),
        Value::Object(fields) => {
            fields.values_mut().for_each(remove_zeros);
            fields.retain(|_, value| !is_zero(value));
        }
        _ => {}
    }
}
