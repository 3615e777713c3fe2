//! Lists in the formats of `-o`.

use crate::cli::ListFormat;
use manifest::value::{Map, Value};
use manifest::{json, yaml};
use std::borrow::Cow;

/// Something that `-o` prints.
pub(crate) trait List {
    /// Returns a table for people, with more columns if `wide` and if there are more.
    fn table(&self, wide: bool) -> String;

    /// Returns the value for JSON and YAML.
    fn to_value(&self) -> Value<'_>;

    /// Returns the names of the items.
    fn names(&self) -> Vec<String>;
}

/// Converts JSON.
pub(crate) fn from_json(json: &serde_json::Value) -> Value<'static> {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from_text(text),
        Json::Array(items) => Value::List(items.iter().map(from_json).collect()),
        Json::Object(fields) => {
            let entries = fields
                .iter()
                .map(|(key, value)| (Cow::Owned(key.clone()), from_json(value)));
            Value::Map(Map::from_entries(entries.collect()))
        }
    }
}

/// Formats a list.
pub(crate) fn format_list(list: &impl List, format: ListFormat) -> Result<String, String> {
    match format {
        ListFormat::Table => Ok(list.table(false)),
        ListFormat::Wide => Ok(list.table(true)),
        ListFormat::Json => {
            let mut text = String::new();
            json::write(&list.to_value(), &mut text).map_err(|error| error.to_string())?;
            Ok(json::escape_unprintable(&text) + "\n")
        }
        ListFormat::Yaml => Ok(yaml::write(&list.to_value())),
        ListFormat::Name => Ok(list.names().into_iter().map(|name| name + "\n").collect()),
    }
}
