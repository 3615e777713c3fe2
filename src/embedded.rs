//! The YAML files that install the program, embedded in this version. Each describes itself at its start.

use hub_state::json::Written;
use manifest::yaml;
use serde_json::{Value, json};

/// The shipped files by their paths in the repository, sorted.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Returns the text of a shipped file: `deploy/holds.yaml`.
///
/// # Panics
///
/// Panics if there is no such file.
pub(crate) fn text(path: &str) -> &'static str {
    let at = FILES.binary_search_by_key(&path, |(path, _)| path);
    FILES[at.unwrap_or_else(|_| panic!("{path} is no shipped file"))].1
}

/// Returns the objects of a shipped file.
///
/// # Panics
///
/// Panics if there is no such file.
pub(crate) fn shipped(path: &str) -> Vec<Value> {
    objects(text(path))
}

/// Returns the objects in a text; none if it is not YAML.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let documents: Result<Vec<_>, _> = yaml::documents(text).collect();
    let documents = documents.unwrap_or_default();
    let values = documents.iter().map(|document| &document.value);
    values.map(|value| json!(Written::whole(value))).collect()
}
