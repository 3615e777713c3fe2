//! Tests that works are those of the release before, so that an upgrade rewrites no work.

use crate::expected::compare;
use crate::program::program_with;
use crate::upgrades::{Case, OBJECTS, cases, recorded};
use anyhow::{Context, Result};
use std::fs;
use tempfile::TempDir;

/// Returns the works of an Application, one a line.
fn works(case: &Case) -> Result<String> {
    let folder = TempDir::new()?;
    fs::write(folder.path().join("all.yaml"), &case.manifests)?;
    let setting = case.setting.map(|(name, value)| format!("--{name}={value}"));
    let name = format!("--name={}", case.name);
    let words = [
        "generate",
        &name,
        "--namespace=default",
        "--cluster=cluster1",
        "--output=json",
    ];
    let output = program_with(folder.path(), words.into_iter().chain(setting.as_deref())).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// If works change on purpose, docs/upgrade.md and CHANGELOG.md name the kinds, and REWRITE=1 records the works.
#[test]
fn works_are_those_of_the_release_before() -> Result<()> {
    let waves = Case {
        name: "waves".to_owned(),
        manifests: format!(
            "{OBJECTS}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: late, annotations: {{argocd.argoproj.io/sync-wave: \
             '1'}}}}}}\n"
        ),
        setting: None,
    };
    for case in cases().iter().chain([&waves]) {
        compare(&recorded(&case.name), &works(case)?).with_context(|| case.name.clone())?;
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
