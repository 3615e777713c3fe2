//! Checks that the rules, the dashboard and their page name metrics that the program exposes.

mod dashboard;
mod exposed;
mod expression;
mod page;
mod rules;
mod scraped;

use manifest::{json, yaml};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Returns the path of a file of the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read_file(name: &str) -> String {
    fs::read_to_string(path(name)).expect(name)
}

/// Reads the only document of a YAML file.
fn document(name: &str) -> Value {
    let text = read_file(name);
    let documents: Vec<_> = yaml::documents(&text).collect();
    let [Ok(document)] = documents.as_slice() else {
        panic!("{name}: not one document");
    };
    let mut text = String::new();
    json::write(&document.value, &mut text).expect("JSON");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the items of a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Returns a text.
fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}
