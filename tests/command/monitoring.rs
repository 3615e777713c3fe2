//! Checks that the rules, the dashboard and their page name metrics that the program exposes.

mod dashboard;
mod exposed;
mod expression;
mod page;
mod rules;
mod scraped;

use crate::shipped_files::{read_document, read_file, root};
use serde_json::Value;

/// Returns the items of a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Returns a text.
fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}
