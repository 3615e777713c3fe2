//! Reads YAML as the program does.

use anyhow::Result;
use manifest::{json, value, yaml};
use serde_json::Value;

/// Returns the documents of a text.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    yaml::documents(text)
        .map(|document| in_json(&document?.value))
        .collect()
}

pub(crate) fn in_json(value: &value::Value<'_>) -> Result<Value> {
    let mut text = String::new();
    json::write(value, &mut text)?;
    Ok(serde_json::from_str(&text)?)
}
