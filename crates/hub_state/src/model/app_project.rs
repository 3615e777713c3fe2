//! The model of an AppProject.

use super::parse;
use runtime::invalid_object::InvalidObject;
use serde_json::Value;

/// The delivered fields of an AppProject.
#[derive(Clone, Debug, PartialEq)]
pub struct AppProject(pub Value);

impl AppProject {
    /// Reads an AppProject from its JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON is invalid.
    pub fn from_json(text: &str) -> Result<Self, InvalidObject> {
        let mut project: Value = parse(text)?;
        if let Some(project) = project.as_object_mut() {
            project.retain(|key, _| key != "status");
            if let Some(metadata) = project.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&&**key));
            }
        }
        Ok(Self(project))
    }
}
