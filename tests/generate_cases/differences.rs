//! Prints works as differences from the objects that they are generated from.

use anyhow::{Context, Result, ensure};
use manifest::{json, yaml};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use testing::{create_patch, merge};
use walkdir::WalkDir;

/// The length from which a line is broken.
const WIDTH: usize = 150;

/// Returns the kinds and names of printed works and of their objects, each with a merge patch: for a work to [`usual_work`], for
/// an object to that of its kind and name in the folder `input`. The patch of an object that is not in the folder is all of it.
pub(crate) fn print_differences(works: &str, input: &Path, with_configs: bool) -> Result<String> {
    let mut out = String::new();
    if works.is_empty() {
        return Ok(out);
    }
    let objects = read_objects(input)?;
    for document in yaml::documents(works) {
        let mut work = to_json(&document?.value)?;
        let template = if work["kind"] == "ManifestWork" {
            "/spec"
        } else {
            "/spec/manifestWorkTemplate"
        };
        let manifests = work.pointer_mut(&format!("{template}/workload/manifests"));
        let manifests = manifests.context("a work has no manifests")?.take();
        if !with_configs
            && let Some(configs) = work.pointer_mut("/spec/manifestConfigs")
            && configs[0].is_object()
        {
            configs.take();
        }
        print_object(&mut out, "", &work, usual_work(&work["kind"]))?;
        for manifest in manifests.as_array().context("manifests are not a list")? {
            let is_source = |object: &&Value| {
                object["kind"] == manifest["kind"] && object["metadata"]["name"] == manifest["metadata"]["name"]
            };
            let source = objects.iter().find(is_source).cloned().unwrap_or_default();
            print_object(&mut out, "  ", manifest, source)?;
        }
    }
    Ok(out)
}

/// Returns the fields that most works have. Lists that are printed elsewhere are null.
fn usual_work(kind: &Value) -> Value {
    let (version, spec) = if kind == "ManifestWork" {
        ("v1", json!({"manifestConfigs": null, "workload": {"manifests": null}}))
    } else {
        let template = json!({"workload": {"manifests": null}});
        (
            "v1alpha1",
            json!({"cascadeDeletionPolicy": "Foreground", "manifestWorkTemplate": template}),
        )
    };
    json!({
        "apiVersion": format!("work.open-cluster-management.io/{version}"),
        "kind": kind,
        "metadata": {
            "annotations": {"argocd.argoproj.io/sync-options": "PruneLast=true"},
            "labels": {
                "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                "argocd-ocm-cmp.github.io/application": "shop",
            },
        },
        "spec": spec,
    })
}

/// Returns the objects in the files of a folder, and ignores all other documents and files.
fn read_objects(folder: &Path) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        // A folder or a dangling link has no bytes.
        let Ok(bytes) = fs::read(entry?.path()) else { continue };
        let Ok(text) = yaml::decode(&bytes) else { continue };
        for document in yaml::documents(&text).filter_map(Result::ok) {
            objects.push(to_json(&document.value)?);
        }
    }
    Ok(objects)
}

fn to_json(value: &manifest::value::Value<'_>) -> Result<Value> {
    let mut text = String::new();
    json::write(value, &mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Appends the kind, namespace and name of an object, and its other differences from `source`.
fn print_object(out: &mut String, indent: &str, object: &Value, mut source: Value) -> Result<()> {
    let mut title = format!("{indent}{} ", object["kind"].as_str().context("an object has no kind")?);
    for (field, separator) in [("namespace", "/"), ("name", "")] {
        if let Some(text) = object["metadata"][field].as_str() {
            title.extend([text, separator]);
            source["metadata"][field] = text.into();
        }
    }
    let patch = create_patch(&source, object);
    merge(&mut source, &patch);
    ensure!(source == *object, "no merge patch can set the null values of {object}");
    if patch == json!({}) {
        writeln!(out, "{title}")?;
    } else {
        print_value(out, &title, &patch)?;
    }
    Ok(())
}

/// Appends a value as JSON: in the line that `start` begins, or with a line for each field or item if that is too long.
fn print_value(out: &mut String, start: &str, value: &Value) -> Result<()> {
    let line = format!("{start} {value}");
    let indent = " ".repeat(start.len() - start.trim_start().len() + 2);
    match value {
        Value::Object(fields) if line.len() > WIDTH => {
            writeln!(out, "{start}")?;
            for (key, value) in fields {
                print_value(out, &format!("{indent}{key}:"), value)?;
            }
        }
        Value::Array(items) if line.len() > WIDTH => {
            writeln!(out, "{start}")?;
            for item in items {
                print_value(out, &format!("{indent}-"), item)?;
            }
        }
        _ => writeln!(out, "{line}")?,
    }
    Ok(())
}
