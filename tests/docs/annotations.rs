//! Compares the table of Argo CD's annotations on docs/updates.md with the code, and the code with that of Argo CD.

use crate::generated::compare_parts;
use anyhow::{Context, Result, ensure};
use generate::annotations::{Effect, KNOWN};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use testbed::Parts;

/// The annotations that Argo CD writes, or reads from its own objects, such as Applications.
const OF_ARGO_CD: [&str; 4] = [
    "argocd.argoproj.io/application-set-refresh",
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/tracking-id",
];

#[test]
fn updates_page_lists_the_annotations_of_argo_cd() {
    let mut table = "| Annotation | Option | Effect |\n|---|---|---|\n".to_owned();
    for known in KNOWN {
        let option = known.option.map_or("–".to_owned(), |option| format!("`{option}`"));
        let effect = match known.effect {
            Effect::Honoured(how) => format!("✓ {how}"),
            Effect::None(why) => format!("none: {why}"),
        };
        let _ = writeln!(table, "| `{}` | {option} | {effect} |", known.annotation);
    }
    compare_parts("docs/updates.md", &[table]);
}

/// Returns the texts in quotes on the lines that define a constant whose name contains `constant`.
fn literals<'t>(code: &'t str, constant: &str) -> BTreeSet<&'t str> {
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let definitions = lines
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| name.contains(constant));
    definitions
        .filter_map(|(_, value)| value.trim().strip_prefix('"')?.split('"').next())
        .collect()
}

#[test]
fn every_annotation_of_argo_cd_has_an_effect_or_a_reason() -> Result<()> {
    let manifests = Parts::ensure()?.argocd_manifests();
    let argo_cd = manifests.parent().context("Argo CD's module")?;
    let version = argo_cd.file_name().context("a version")?;
    let engine = argo_cd.with_file_name("gitops-engine").join(version);
    let read = |file: std::path::PathBuf| fs::read_to_string(&file).with_context(|| file.display().to_string());
    let common = read(argo_cd.join("common/common.go"))?;
    let types = read(engine.join("pkg/sync/common/types.go"))?;
    let annotations = literals(&common, "Annotation")
        .into_iter()
        .chain(literals(&types, "Annotation"));
    let annotations: BTreeSet<_> = annotations
        .filter(|name| name.contains("argocd.argoproj.io/"))
        .collect();
    ensure!(annotations.len() > 12, "{annotations:?}");
    for name in annotations {
        let is_known = KNOWN.iter().any(|known| known.annotation == name) || OF_ARGO_CD.contains(&name);
        ensure!(is_known, "{name} is not in the table of annotations");
    }
    let options: BTreeSet<_> = literals(&types, "SyncOption")
        .into_iter()
        .filter(|option| option.contains('='))
        .collect();
    ensure!(options.len() > 8, "{options:?}");
    for option in options {
        let is_known = KNOWN.iter().any(|known| known.option == Some(option));
        ensure!(is_known, "the sync option {option} is not in the table of annotations");
    }
    Ok(())
}
