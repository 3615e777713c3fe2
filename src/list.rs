//! Lists in the formats of `-o`.

use crate::cli::ListFormat;
use hub_state::json::borrowed;
use manifest::{json, yaml};
use serde_json::Value;

/// Something that `-o` prints.
pub(crate) trait List {
    /// Returns a table for people, with more columns if `wide` and if there are more.
    fn table(&self, wide: bool) -> String;

    /// Returns the value for JSON and YAML.
    fn to_json(&self) -> Value;

    /// Returns the names of the items.
    fn names(&self) -> Vec<String>;
}

/// Formats a list.
pub(crate) fn format_list(list: &impl List, format: ListFormat) -> Result<String, String> {
    match format {
        ListFormat::Table => Ok(list.table(false)),
        ListFormat::Wide => Ok(list.table(true)),
        ListFormat::Json => {
            let mut text = String::new();
            json::write(&borrowed(&list.to_json()), &mut text).map_err(|error| error.to_string())?;
            Ok(json::escape_unprintable(&text) + "\n")
        }
        ListFormat::Yaml => Ok(yaml::write(&borrowed(&list.to_json()))),
        ListFormat::Name => Ok(list.names().into_iter().map(|name| name + "\n").collect()),
    }
}
