//! The settings of kustomizations.

use super::Env;
use super::sources::Sources;
use super::table::{self, Setting};
use super::values::expanded;
use crate::source::{Edit, FolderKind, KustomizeSettings, check_patches};
use std::str::FromStr as _;

pub(crate) const COMMON_LABELS: &str = table::KUSTOMIZE_COMMON_LABELS.name;

/// Returns the settings of kustomizations, with the edits in the order of Argo CD.
pub(super) fn settings(sources: &mut Sources<'_>, env: &Env) -> KustomizeSettings {
    let options = sources.any_text(&table::KUSTOMIZE_OPTIONS).unwrap_or_default();
    KustomizeSettings {
        given: sources.origin_for_folders(FolderKind::Kustomize),
        options: options.split_whitespace().map(str::to_owned).collect(),
        edits: edits(sources, env),
        patches: sources.read_optional(&table::KUSTOMIZE_PATCHES, |text| {
            check_patches(text).map(|()| text.to_owned())
        }),
        components: sources.list(&table::KUSTOMIZE_COMPONENTS, false, String::from_str),
        ignore_missing_components: sources.flag(&table::KUSTOMIZE_IGNORE_MISSING_COMPONENTS),
        kube_version: sources.any_text(&table::KUSTOMIZE_KUBE_VERSION),
        api_versions: sources.list(&table::KUSTOMIZE_API_VERSIONS, true, String::from_str),
    }
}

fn edits(sources: &mut Sources<'_>, env: &Env) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut edit = |setting: &Setting, command: &[&'static str], values: Vec<String>| {
        if !values.is_empty() {
            let arguments = ["edit"].iter().chain(command).map(|&word| word.to_owned());
            edits.push(Edit {
                setting: setting.name,
                // Values may begin with a dash.
                arguments: arguments.chain(["--".to_owned()]).chain(values).collect(),
            });
        }
    };
    for (setting, field) in [
        (&table::KUSTOMIZE_NAME_PREFIX, "nameprefix"),
        (&table::KUSTOMIZE_NAME_SUFFIX, "namesuffix"),
    ] {
        edit(
            setting,
            &["set", field],
            sources.any_text(setting).into_iter().collect(),
        );
    }
    let images = sources.list(&table::KUSTOMIZE_IMAGES, true, |image| {
        Ok::<_, String>(expanded(image, env))
    });
    edit(&table::KUSTOMIZE_IMAGES, &["set", "image"], images);
    edit(&table::KUSTOMIZE_REPLICAS, &["set", "replicas"], replicas(sources));

    let mut command = vec!["add", "label"];
    for (setting, flag) in [
        (&table::KUSTOMIZE_FORCE_COMMON_LABELS, "--force"),
        (&table::KUSTOMIZE_LABEL_WITHOUT_SELECTOR, "--without-selector"),
        (&table::KUSTOMIZE_LABEL_INCLUDE_TEMPLATES, "--include-templates"),
    ] {
        command.extend(sources.flag(setting).then_some(flag));
    }
    if command.ends_with(&["--include-templates"]) && !command.contains(&"--without-selector") {
        let origin = sources
            .origin(&table::KUSTOMIZE_LABEL_INCLUDE_TEMPLATES)
            .unwrap_or_default();
        sources.problems.push(format!(
            "{origin}: labels are in templates too if they are in selectors: set kustomize-label-without-selector, or leave it out"
        ));
    }
    let labels = pairs(sources, &table::KUSTOMIZE_COMMON_LABELS, Some(env));
    edit(&table::KUSTOMIZE_COMMON_LABELS, &command, labels);

    let mut command = vec!["add", "annotation"];
    let is_forced = sources.flag(&table::KUSTOMIZE_FORCE_COMMON_ANNOTATIONS);
    command.extend(is_forced.then_some("--force"));
    let expands = sources.flag(&table::KUSTOMIZE_COMMON_ANNOTATIONS_ENVSUBST);
    let annotations = pairs(sources, &table::KUSTOMIZE_COMMON_ANNOTATIONS, expands.then_some(env));
    edit(&table::KUSTOMIZE_COMMON_ANNOTATIONS, &command, annotations);

    let namespace = sources.any_text(&table::KUSTOMIZE_NAMESPACE);
    edit(
        &table::KUSTOMIZE_NAMESPACE,
        &["set", "namespace"],
        namespace.into_iter().collect(),
    );
    edits
}

fn replicas(sources: &mut Sources<'_>) -> Vec<String> {
    let setting = &table::KUSTOMIZE_REPLICAS;
    let counts = sources.map(setting, true, String::from_str);
    let origin = sources.origin(setting).unwrap_or_default();
    let mut replicas = Vec::new();
    for (name, count) in counts {
        match count.trim().parse::<i64>() {
            Ok(count) => replicas.push(format!("{name}={count}")),
            Err(_) => sources.problems.push(format!(
                "{origin}: {name}: {count:?} is not a number of replicas: write it like {name}=3"
            )),
        }
    }
    replicas
}

/// Returns the entries of a map as kustomize's arguments; with `env`, variables in the values are replaced.
fn pairs(sources: &mut Sources<'_>, setting: &Setting, env: Option<&Env>) -> Vec<String> {
    let values = sources.map(setting, false, String::from_str);
    let values = values.into_iter().map(|(key, value)| match env {
        Some(env) => format!("{key}:{}", expanded(&value, env)),
        None => format!("{key}:{value}"),
    });
    values.collect()
}
