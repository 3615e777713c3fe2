//! Lists in the formats of `-o`.

use crate::cli::ListFormat;
use manifest::value::Value;
use manifest::{json, yaml};

/// Something that `-o` prints.
pub trait List {
    /// Returns a table for people, with more columns if `wide` and if there are more.
    fn table(&self, wide: bool) -> String;

    /// Returns the value for JSON and YAML.
    fn to_value(&self) -> Value<'_>;

    /// Returns the names of the items.
    fn names(&self) -> Vec<String>;
}

/// Formats a list.
///
/// # Errors
/// One line, if the value is too large or nested too deeply for JSON.
pub fn format_list(list: &impl List, format: ListFormat) -> Result<String, String> {
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
