//! Renders a chart as Argo CD does: with `helm template`, including its CRDs, under the Application's name.

use super::bounds::Repository;
use super::tool::{ToolAccess, ToolError};
use super::value_files::ValueFiles;
use super::{Manifests, Source, rendered, strvals};
use manifest::problem::Problems;
use ocm::names::is_dns_subdomain;
use std::collections::BTreeMap;
use std::path::Path;

/// The settings for rendering charts.
#[derive(Clone, Debug, Default)]
pub struct HelmSettings {
    /// The origin of one of these settings, if any is set.
    pub given: Option<String>,
    /// The name of the release.
    pub release_name: String,
    /// The namespace of the release.
    pub namespace: Option<String>,
    /// The value files and globs, relative to the chart, or to the repository with a leading `/`.
    pub value_files: Vec<String>,
    /// The values as YAML.
    pub values: Option<String>,
    /// The single values (`--set`).
    pub parameters: BTreeMap<String, String>,
    /// The single values that are always strings (`--set-string`).
    pub string_parameters: BTreeMap<String, String>,
    /// The single values read from files (`--set-file`).
    pub file_parameters: BTreeMap<String, String>,
    /// The Kubernetes version passed to the chart.
    pub kube_version: Option<String>,
    /// The API versions passed to the chart, besides the built-in ones.
    pub api_versions: Vec<String>,
    /// The flags of `helm template`.
    pub flags: Vec<&'static str>,
    /// True to ignore missing value files.
    pub ignore_missing_value_files: bool,
}

/// Renders the chart at `below` in `folder` with `helm template`; `of_cluster` is the value file of one cluster.
pub(super) fn render(
    folder: &Path,
    below: &str,
    of_cluster: Option<&str>,
    source: &Source,
) -> Result<Manifests, Problems> {
    let chart = if below.is_empty() {
        folder.to_owned()
    } else {
        folder.join(below)
    };
    let repository = Repository::locate(folder, &source.path);
    Problems::or(repository.links_out_of(&chart), ())?;
    let run = |chart: &Path, repository: &Repository| {
        let arguments = arguments(&source.helm, &ValueFiles { chart, repository }, of_cluster)?;
        let values = source.helm.values.as_deref();
        let access = ToolAccess::helm(repository.root());
        source.tools.run("helm", &arguments, chart, values, &access)
    };
    let mut written = match source.completed.existing(&chart) {
        Some(copy) => run(&copy.folder, &copy.repository)?,
        None => run(&chart, &repository)?,
    };
    if let Err(error) = &written {
        let missing = error.missing_dependencies();
        if !missing.is_empty()
            && let Some(copy) = source.completed.get(&chart, &missing, &repository, source)?
        {
            written = run(&copy.folder, &copy.repository)?;
        }
    }
    let written = written.map_err(|error| Problems::one(error_message(&error)))?;
    let mut manifests = rendered(&by_template(&written.manifests), source)?;
    manifests.notices.extend(written.notices("helm template"));
    Ok(manifests)
}

/// The flag that disables the schema validation of values.
pub(crate) const SKIP_SCHEMA_VALIDATION: &str = "--skip-schema-validation";

/// Returns the arguments of `helm` as Argo CD passes them, except for the name of the release: after `--name-template` it would
/// be a template. Argo CD has no value files per cluster; here such a file comes last, before the single values.
fn arguments(helm: &HelmSettings, files: &ValueFiles<'_>, of_cluster: Option<&str>) -> Result<Vec<String>, Problems> {
    let mut arguments = vec!["template".to_owned(), helm.release_name.clone(), ".".to_owned()];
    let mut problems = Vec::new();
    if !is_release_name(&helm.release_name) {
        problems.push(format!(
            "release name {:?}: Helm accepts at most 53 lower-case letters, digits, '-' and '.', each part beginning and ending with a \
             letter or digit: set helm-release-name",
            helm.release_name
        ));
    }
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if let Some(namespace) = &helm.namespace {
        option("--namespace", namespace.clone());
    }
    if let Some(version) = &helm.kube_version {
        if !is_word(version) {
            problems.push(format!(
                "helm-kube-version: {version:?} is not a version: write it like 1.34.0"
            ));
        }
        option("--kube-version", plain_version(version).to_owned());
    }
    for version in &helm.api_versions {
        if !is_word(version) {
            problems.push(format!(
                "helm-api-versions: {version:?} is not an API version: write it like apps/v1 or apps/v1/Deployment"
            ));
        }
        option("--api-versions", version.clone());
    }
    match files.find_all(&helm.value_files, helm.ignore_missing_value_files) {
        Ok(paths) => paths.iter().for_each(|path| option("--values", strvals::element(path))),
        Err(errors) => problems.extend(errors),
    }
    if helm.values.is_some() {
        option("--values", "-".to_owned());
    }
    if let Some(file) = of_cluster {
        match files.find(file) {
            Ok(Some(path)) => option("--values", strvals::element(&path)),
            Ok(None) => problems.push(format!("overlays: {file}: there is no such file")),
            Err(why) => problems.push(format!("overlays: {file}: {why}")),
        }
    }
    for (setting, flag, parameters) in [
        ("helm-parameters", "--set", &helm.parameters),
        ("helm-string-parameters", "--set-string", &helm.string_parameters),
    ] {
        for (key, value) in parameters {
            match strvals::check_key(key).and_then(|()| strvals::escape_commas(value)) {
                Ok(value) => option(flag, format!("{key}={value}")),
                Err(why) => problems.push(format!("{setting}: {key}: {why}")),
            }
        }
    }
    for (key, file) in &helm.file_parameters {
        match strvals::check_key(key).and_then(|()| files.find(file)) {
            Ok(Some(path)) => option("--set-file", format!("{key}={}", strvals::file(&path))),
            Ok(None) => problems.push(format!("helm-file-parameters: {key}: {file}: there is no such file")),
            Err(why) => problems.push(format!("helm-file-parameters: {key}: {file}: {why}")),
        }
    }
    arguments.extend(helm.flags.iter().map(|&flag| flag.to_owned()));
    Problems::or(problems, arguments)
}

/// Returns true if Helm accepts the name of a release: mirrors Helm's rule.
fn is_release_name(name: &str) -> bool {
    name.len() <= 53 && is_dns_subdomain(name)
}

/// Returns true if the text is a single argument without special meaning, such as a version.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-+/".contains(char);
    text.starts_with(|char: char| char.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// Returns the Kubernetes version without the suffixes of distributions, which would not match the version ranges of charts:
/// mirrors Argo CD.
pub(super) fn plain_version(version: &str) -> &str {
    let version = version.trim_start_matches('v');
    version.split(['-', '+']).next().unwrap_or(version)
}

/// The text before the names of missing dependencies in helm's error message.
const MISSING: &str = "missing in charts/ directory: ";

/// Returns the names of the missing dependencies in helm's error output.
pub(super) fn missing_dependencies(error_output: &str) -> Vec<String> {
    let names = error_output
        .split_once(MISSING)
        .and_then(|(_, rest)| rest.lines().next());
    let names = names.into_iter().flat_map(|names| names.split(", "));
    names.map(|name| name.trim().to_owned()).collect()
}

/// Returns helm's error message, with a remedy if known.
fn error_message(error: &ToolError) -> String {
    let error_output = error.line();
    if let Some((_, names)) = error_output.split_once(MISSING) {
        return format!(
            "Chart.yaml: dependencies are missing in charts/: {names}: run 'helm dependency update', and commit charts/, or ask the \
             administrator to allow their repositories in ARGOCD_OCM_CMP_REMOTE_BASES"
        );
    }
    // Helm reads the values from its standard input.
    if let Some(why) = error_output.strip_prefix("failed to parse -: ") {
        return format!("helm-values: {why}");
    }
    format!("helm template: {error_output}")
}

/// Helm's comment with the source of a document.
const SOURCE: &[u8] = b"---\n# Source: ";

/// Splits helm's output where the template changes. Kubernetes' reader ends a document at every line that begins with `---`, in
/// any context, so this never splits a document.
fn by_template(written: &[u8]) -> Vec<(String, &[u8])> {
    let mut starts: Vec<usize> = memchr::memmem::find_iter(written, SOURCE)
        .filter(|&at| at == 0 || written[at - 1] == b'\n')
        .collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([written.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| {
            let text = &written[start..end];
            let name = text
                .strip_prefix(SOURCE)
                .and_then(|rest| rest.split(|&byte| byte == b'\n').next());
            let name = name.map_or_else(
                || "helm template".to_owned(),
                |name| shown(&String::from_utf8_lossy(name)),
            );
            (name, text)
        })
        .collect()
}

/// Returns a template's path in the chart's folder; helm adds the chart's name in front.
fn shown(source: &str) -> String {
    let path = source.split_once('/').map_or(source, |(_, path)| path);
    format!("{path} (rendered)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_distribution_suffixes_from_versions() {
        for version in ["1.34.0", "v1.34.0", "v1.34.0+k3s1", "1.34.0-eks-1a2b"] {
            assert_eq!(plain_version(version), "1.34.0", "{version}");
        }
        assert_eq!(plain_version("1.34"), "1.34");
    }

    #[test]
    fn refuses_release_names_that_are_templates_or_flags() {
        let long = "a".repeat(54);
        for name in ["shop", "shop-blue.v1", "0", &long[1..]] {
            assert!(is_release_name(name), "{name}");
        }
        for name in [
            "",
            "-shop",
            "shop-",
            "Shop",
            "a..b",
            ".a",
            "a_b",
            "{{ fail (env \"HOME\") }}",
            "--post-renderer=x",
            "a\n",
            &long,
        ] {
            assert!(!is_release_name(name), "{name}");
        }
    }

    #[test]
    fn splits_helm_output_by_template() {
        let texts = |written: &str| -> Vec<(String, String)> {
            let texts = by_template(written.as_bytes()).into_iter();
            texts
                .map(|(name, text)| (name, String::from_utf8_lossy(text).into_owned()))
                .collect()
        };
        let written = "---\n# Source: web/templates/a.yaml\na: |\n  ---\n  # Source: b\n---\nb: 1\n---\n# Source: web/charts/db/templates/c.yaml\nc: 1\n";
        let files = texts(written);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["templates/a.yaml (rendered)", "charts/db/templates/c.yaml (rendered)"]
        );
        assert_eq!(files.iter().map(|(_, text)| text.as_str()).collect::<String>(), written);
        assert_eq!(texts("a: 1\n"), [("helm template".to_owned(), "a: 1\n".to_owned())]);
        assert_eq!(texts(""), [("helm template".to_owned(), String::new())]);
    }
}
