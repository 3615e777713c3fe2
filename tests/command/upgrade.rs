//! Tests that works are those of the release before, so that an upgrade rewrites no work and no Application becomes OutOfSync.

use crate::expected::compare;
use crate::program::program_with;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// An object of each kind that the hub evaluates.
const OBJECTS: &str = include_str!("../data/upgrade/objects.yaml");

const EVERYDAY: &str = include_str!("../data/objects/everyday.yaml");

/// Compares the works of an Application with those that the release before generated, one a line.
fn compare_works(name: &str, manifests: &str, setting: Option<&str>) -> Result<()> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("all.yaml"), manifests)?;
    let name_flag = format!("--name={name}");
    let words = [
        "generate",
        &name_flag,
        "--namespace=default",
        "--cluster=cluster1",
        "--output=json",
    ];
    let output = program_with(folder.path(), words.into_iter().chain(setting)).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/upgrade/works/{name}.jsonl"));
    compare(&recorded, &String::from_utf8(output.stdout)?).with_context(|| name.to_owned())
}

/// Compares each object alone, with either kind of feedback, and several objects together.
///
/// If works change on purpose, docs/upgrade.md and CHANGELOG.md name the kinds, and REWRITE=1 records the works.
#[test]
fn works_are_those_of_the_release_before() -> Result<()> {
    let watch = Some("--feedback=watch");
    let late = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: '1'}}}\n";
    for (name, manifests, setting) in [
        ("everyday", EVERYDAY, None),
        ("everyday-watched", EVERYDAY, watch),
        ("together", OBJECTS, None),
        ("together-updated", OBJECTS, Some("--update-strategy=Update")),
        ("waves", &format!("{OBJECTS}{late}"), None),
    ] {
        compare_works(name, manifests, setting)?;
    }
    for object in OBJECTS.split("---\n") {
        let name = object.split("name: ").nth(1).and_then(|rest| rest.split('}').next());
        let name = name.context("a name")?;
        compare_works(name, object, None)?;
        compare_works(&format!("{name}-watched"), object, watch)?;
    }
    Ok(())
}

#[test]
fn every_kind_that_the_hub_evaluates_is_upgraded() {
    for verdicts in ocm::verdicts::kinds() {
        let is_there = OBJECTS.split("---\n").any(|object| {
            let has = |start: String| object.lines().any(|line| line.starts_with(&start));
            has(format!("apiVersion: {}", verdicts.group)) && has(format!("kind: {}", verdicts.kind))
        });
        assert!(
            is_there,
            "{} of {:?} is not in tests/data/upgrade",
            verdicts.kind, verdicts.group
        );
    }
}
