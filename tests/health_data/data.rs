//! Reads the data of Argo CD's tests of health checks: `GROUP/KIND/health_test.yaml` and the objects that it names.

use anyhow::{Context, Result, ensure};
use manifest::value::Value as Parsed;
use manifest::{json, yaml};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// An object, and the health that Argo CD's check assigns to it.
pub(crate) struct Case {
    /// The folder of the check, `GROUP/KIND`; `_` stands for any group or kind.
    pub(crate) folder: String,
    pub(crate) file: String,
    pub(crate) health: String,
    pub(crate) object: Value,
}

/// Returns the cases of all checks in the folder.
pub(crate) fn read_cases(checks: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in walkdir::WalkDir::new(checks).sort_by_file_name() {
        let entry = entry?;
        if entry.file_name() != "health_test.yaml" {
            continue;
        }
        let folder = entry.path().parent().context("a folder")?;
        let tests = document(entry.path())?;
        for test in tests["tests"].as_array().context("tests")? {
            // Argo CD reads the keys in any case.
            let file = test["inputPath"].as_str().or(test["inputpath"].as_str());
            let file = file.with_context(|| format!("{}: a test without a file", folder.display()))?;
            let health = test["healthStatus"]["status"].as_str().unwrap_or_default();
            cases.push(Case {
                folder: folder.strip_prefix(checks)?.display().to_string(),
                file: file.to_owned(),
                health: health.to_owned(),
                object: as_stored(document(&folder.join(file))?, health)?,
            });
        }
    }
    Ok(cases)
}

/// Returns the first document of a YAML file.
fn document(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for document in yaml::documents(&text) {
        let document = document.map_err(|error| anyhow::anyhow!("{}: {}", path.display(), error.message))?;
        if let Parsed::Map(fields) = document.value {
            let mut text = String::new();
            json::write_map(&fields, &mut text).map_err(|error| anyhow::anyhow!("{}: {error:?}", path.display()))?;
            return Ok(serde_json::from_str(&text)?);
        }
    }
    anyhow::bail!("{} has no document", path.display())
}

/// Returns the object as an API server stores it: with metadata, without nulls, and with strings as the status of conditions.
/// Argo CD does not ask its checks about an object that is being deleted: it is progressing.
fn as_stored(mut object: Value, health: &str) -> Result<Value> {
    clean(&mut object);
    let fields = object.as_object_mut().context("an object")?;
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let metadata = metadata.as_object_mut().context("metadata")?;
    if health != "Progressing" {
        metadata.remove("deletionTimestamp");
    }
    ensure!(fields["kind"].is_string(), "an object without a kind");
    Ok(object)
}

fn clean(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            if let (true, Some(Value::Bool(status))) = (fields.contains_key("type"), fields.get("status")) {
                let status = if *status { "True" } else { "False" };
                fields.insert("status".to_owned(), json!(status));
            }
            fields.values_mut().for_each(clean);
        }
        _ => {}
    }
}
