//! Reads the metadata of any object.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of `metadata` that controllers read, without `managedFields`, which is larger than all of them. Missing texts are empty.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    #[serde(default)]
    pub namespace: Box<str>,
    #[serde(default)]
    pub uid: Box<str>,
    #[serde(default)]
    pub resource_version: Box<str>,
    #[serde(default)]
    pub generation: i64,
    /// Present while the object is being deleted.
    pub deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    pub finalizers: Vec<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// The owner references, whole, because patches repeat them.
    #[serde(default)]
    pub owner_references: Vec<Value>,
}

impl Metadata {
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}
