//! Reads objects of the hub, of which the agent of a managed cluster may have written a part.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use serde_json::{Result, Value};
use std::collections::BTreeMap;

/// An object of the hub. Its `managedFields` are left out if their writer has nested them more deeply than serde_json parses: one object
/// of a managed cluster must not make a list unreadable.
#[derive(Debug)]
pub struct HubObject(pub Value);

impl<'de> Deserialize<'de> for HubObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let object = serde_json::from_str(text.get()).or_else(|_| {
            parse_fields(text.get(), |name, value| match name {
                "metadata" => parse_metadata(value),
                _ => serde_json::from_str(value),
            })
        });
        object.map(Self).map_err(de::Error::custom)
    }
}

/// Parses the `metadata` of an object without `managedFields`. Fails also if another field is nested too deeply.
pub fn parse_metadata(text: &str) -> Result<Value> {
    parse_fields(text, |name, value| match name {
        "managedFields" => Ok(Value::Null),
        _ => serde_json::from_str(value),
    })
}

fn parse_fields(text: &str, parse: impl Fn(&str, &str) -> Result<Value>) -> Result<Value> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)?;
    fields
        .into_iter()
        .map(|(name, value)| parse(&name, value.get()).map(|value| (name, value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn deep_managed_fields_hide_no_object() {
        let deep = format!("{}1{}", r#"{"f:a":"#.repeat(1000), "}".repeat(1000));
        let read = |managed: &str, spec: &str| {
            let text = format!(r#"[{{"metadata":{{"name":"a","managedFields":[{managed}]}},"spec":{spec}}}]"#);
            serde_json::from_str::<Vec<HubObject>>(&text).map(|mut objects| objects.remove(0).0)
        };
        let with = |managed: Value| json!({"metadata": {"name": "a", "managedFields": managed}, "spec": {}});
        assert_eq!(read("1", "{}").expect("an object"), with(json!([1])));
        assert_eq!(read(&deep, "{}").expect("an object"), with(Value::Null));
        read("1", &deep).expect_err("another field");
    }
}
