//! Lists in the formats of `-o`.

use crate::cli::ListFormat;
use hub_state::json::borrowed;
use manifest::{json, yaml};
use serde_json::Value;

/// Something that `-o` prints.
pub(crate) trait List {
    /// Returns a table for people, with more columns if `wide` and with `colours`, if it has these.
    fn table(&self, wide: bool, colours: bool) -> String;

    /// Returns the value for JSON and YAML.
    fn to_json(&self) -> Value;

    /// Returns the names of the items.
    fn names(&self) -> Vec<String>;
}

/// Formats a list whose table has no colours.
pub(crate) fn format_list(list: &(impl List + ?Sized), format: ListFormat) -> Result<String, String> {
    format_coloured(list, format, false)
}

/// Formats a list, with colours in a table if `colours` is set.
pub(crate) fn format_coloured(
    list: &(impl List + ?Sized),
    format: ListFormat,
    colours: bool,
) -> Result<String, String> {
    match format {
        ListFormat::Table => Ok(list.table(false, colours)),
        ListFormat::Wide => Ok(list.table(true, colours)),
        ListFormat::Json => {
            let mut text = String::new();
            json::write(&borrowed(&list.to_json()), &mut text).map_err(|error| error.to_string())?;
            Ok(json::escape_unprintable(&text) + "\n")
        }
        ListFormat::Yaml => Ok(yaml::write(&borrowed(&list.to_json()))),
        ListFormat::Name => Ok(list.names().into_iter().map(|name| name + "\n").collect()),
    }
}
