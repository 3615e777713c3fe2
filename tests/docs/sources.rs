//! Compares the table of Argo CD's options on docs/sources.md with the code, and the code with the types of Argo CD.

use crate::generated::compare_parts;
use anyhow::{Context, Result, ensure};
use generate::settings::SETTINGS;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use testbed::Parts;

/// The fields of a source of an Application, and the keys of `argocd-cm`, that change how Argo CD 3.6 renders. Each has the setting that does
/// the same, and what else there is to know, or the reason why there is none.
const OPTIONS: &str = include_str!("options.txt");

/// Returns the options with their settings, and the rest of their lines.
fn rows() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    OPTIONS.lines().map(|line| {
        if let Some((option, counterpart)) = line.split_once(" = ") {
            let (setting, more) = counterpart.split_once(", ").unwrap_or((counterpart, ""));
            return (option, Some(setting), more);
        }
        let (option, why) = line.split_once(" – ").expect(line);
        (option, None, why)
    })
}

#[test]
fn sources_page_lists_the_options_of_argo_cd() {
    let mut table = "| Argo CD | Here |\n|---|---|\n".to_owned();
    for (option, setting, more) in rows() {
        let counterpart = match (setting, more) {
            (Some(name), "") => format!("`{name}`"),
            (Some(name), more) => format!("`{name}`, {more}"),
            (None, why) => format!("– ({why})"),
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
    for (option, setting, _) in rows() {
        let is_setting = |name| SETTINGS.iter().any(|setting| setting.name == name);
        assert!(setting.is_none_or(is_setting), "{option}");
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
    let known: BTreeSet<String> = rows().map(|(option, ..)| option.to_owned()).collect();
    ensure!(
        options == known,
        "missing: {:?}, not in Argo CD: {:?}",
        options.difference(&known),
        known.difference(&options)
    );
    Ok(())
}
