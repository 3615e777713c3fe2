//! Compares the table of Argo CD's options on docs/sources.md with the code, and the code with the types of Argo CD.

use crate::generated::compare_parts;
use anyhow::{Context, Result, ensure};
use generate::settings::{Counterpart, OPTIONS, SETTINGS};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use testbed::Parts;

#[test]
fn sources_page_lists_the_options_of_argo_cd() {
    let mut table = "| Argo CD | Here |\n|---|---|\n".to_owned();
    for (option, counterpart) in OPTIONS {
        let counterpart = match counterpart {
            Counterpart::Setting(name, "") => format!("`{name}`"),
            Counterpart::Setting(name, more) => format!("`{name}`, {more}"),
            Counterpart::None(why) => format!("– ({why})"),
        };
        let option = match option.strip_prefix("argocd-cm: ") {
            Some(key) => format!("`{key}` of `argocd-cm`"),
            None => format!("`{option}`"),
        };
        let _ = writeln!(table, "| {option} | {counterpart} |");
    }
    compare_parts("docs/sources.md", &[table]);
}

#[test]
fn counterparts_are_settings() {
    for (option, counterpart) in OPTIONS {
        if let Counterpart::Setting(name, _) = counterpart {
            assert!(SETTINGS.iter().any(|setting| setting.name == *name), "{option}: {name}");
        }
    }
}

/// Returns the names of the fields of a Go struct, as its JSON tags say.
fn fields(code: &str, name: &str) -> Result<Vec<String>> {
    let start = format!("type {name} struct {{");
    let (_, body) = code.split_once(&start).with_context(|| format!("no type {name}"))?;
    let body = body.split("\n}").next().unwrap_or_default();
    let tags = body.lines().filter_map(|line| line.split_once("json:\""));
    let names = tags.filter_map(|(_, tag)| tag.split(['"', ',']).next());
    Ok(names.map(str::to_owned).collect())
}

#[test]
fn every_option_of_argo_cd_has_a_counterpart_or_a_reason() -> Result<()> {
    let manifests = Parts::ensure()?.argocd_manifests();
    let argo_cd = manifests.parent().context("Argo CD's module")?;
    let read = |file: &str| fs::read_to_string(argo_cd.join(file)).with_context(|| file.to_owned());
    let types = read("pkg/apis/application/v1alpha1/types.go")?;
    let mut options = BTreeSet::new();
    for (source, name) in [
        ("helm", "ApplicationSourceHelm"),
        ("kustomize", "ApplicationSourceKustomize"),
        ("directory", "ApplicationSourceDirectory"),
        ("plugin", "ApplicationSourcePlugin"),
    ] {
        options.extend(fields(&types, name)?.iter().map(|field| format!("{source}.{field}")));
    }
    let settings = read("util/settings/settings.go")?;
    let literals = settings.split('"').skip(1).step_by(2);
    let is_of_rendering = |key: &&str| {
        let prefixes = ["kustomize.", "helm.", "jsonnet."];
        prefixes.iter().any(|prefix| key.starts_with(prefix))
            && key.bytes().all(|byte| byte == b'.' || byte.is_ascii_alphabetic())
    };
    options.extend(literals.filter(is_of_rendering).map(|key| format!("argocd-cm: {key}")));
    ensure!(options.len() > 45, "{options:?}");
    let known: BTreeSet<String> = OPTIONS.iter().map(|(option, _)| (*option).to_owned()).collect();
    ensure!(
        options == known,
        "missing: {:?}, not in Argo CD: {:?}",
        options.difference(&known),
        known.difference(&options)
    );
    Ok(())
}
