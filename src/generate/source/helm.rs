//! Renders a chart as Argo CD does: by `helm template`, with its CRDs, under the Application's name.

use super::bounds::{Repository, Target, check_for_helm};
use super::chart::Check;
use super::remote::is_url;
use super::tool::{Complaint, Needs};
use super::{Manifests, Source, rendered, strvals};
use crate::generate::problem::Problems;
use std::collections::BTreeMap;
use std::path::Path;

/// How charts are rendered.
#[derive(Clone, Debug, Default)]
pub struct HelmSettings {
    /// Where one of these comes from, if any is given.
    pub given: Option<String>,
    /// The name of the release.
    pub release_name: String,
    /// The namespace of the release.
    pub namespace: Option<String>,
    /// Value files, relative to the chart, or with a leading `/` to the repository.
    pub value_files: Vec<String>,
    /// Values as YAML.
    pub values: Option<String>,
    /// Single values.
    pub parameters: BTreeMap<String, String>,
    /// Single values that are always texts.
    pub string_parameters: BTreeMap<String, String>,
    /// Single values that files hold.
    pub file_parameters: BTreeMap<String, String>,
    /// The version of Kubernetes that the chart is told.
    pub kube_version: Option<String>,
    /// The API versions that the chart is told besides Kubernetes' own.
    pub api_versions: Vec<String>,
    /// Flags of `helm template`.
    pub flags: Vec<&'static str>,
    /// Whether a value file that does not exist is no error.
    pub ignore_missing_value_files: bool,
}

/// The objects that `helm template` makes of the chart at `below` in `folder`; `of_cluster` is a value file of one cluster.
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
    let repository = Repository::of(folder, &source.path);
    let files = Files {
        chart: &chart,
        repository: &repository,
    };
    let check = Check {
        repository: &repository,
        remotes: &source.remotes,
        schemas: !source.helm.flags.contains(&SKIP_SCHEMA_VALIDATION),
    };
    Problems::or(check.problems(&chart), ())?;
    let arguments = arguments(&source.helm, &files, of_cluster)?;
    let values = source.helm.values.as_deref();
    let needs = Needs::of_helm(repository.root(), &source.remotes);
    let written = source.tools.run("helm", arguments, &chart, values, &needs)?;
    let written = written.map_err(|complaint| Problems::one(explained(&complaint)))?;
    let mut manifests = rendered(by_template(&written.manifests), written.manifests.len(), source)?;
    manifests.notices = written.notices("helm template");
    Ok(manifests)
}

/// The flag by which Helm does not read the schemas of values.
pub(in crate::generate) const SKIP_SCHEMA_VALIDATION: &str = "--skip-schema-validation";

/// Returns the arguments of `helm`, as Argo CD gives them, but for the name of the release: after `--name-template` it would be a
/// template. Argo CD gives a cluster's values no file of their own; here it comes last of all, before the single values.
///
/// # Errors
/// With every argument that Helm would understand in another way than the one who gave it means it.
fn arguments(helm: &HelmSettings, files: &Files<'_>, of_cluster: Option<&str>) -> Result<Vec<String>, Problems> {
    let mut arguments = vec!["template".to_owned(), helm.release_name.clone(), ".".to_owned()];
    let mut problems = Vec::new();
    if !is_release_name(&helm.release_name) {
        problems.push(format!(
            "release name {:?}: Helm takes at most 53 lower-case letters, digits, '-' and '.', each part beginning and ending with a \
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
    for file in &helm.value_files {
        match files.find(file) {
            Ok(Some(path)) => option("--values", strvals::element(&path)),
            Ok(None) if helm.ignore_missing_value_files => {}
            Ok(None) => problems.push(format!(
                "helm-value-files: {file}: there is no such file: correct it, or set helm-ignore-missing-value-files"
            )),
            Err(why) => problems.push(format!("helm-value-files: {file}: {why}")),
        }
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
            match strvals::check_key(key).and_then(|()| strvals::value(value)) {
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

/// Where value files are.
struct Files<'a> {
    chart: &'a Path,
    repository: &'a Repository,
}

impl Files<'_> {
    /// Returns the path of a value file, relative to the chart or from the root of the repository; `None` where there is none. As
    /// in Argo CD, it may be anywhere in the repository, and a link out of it is not followed.
    fn find(&self, file: &str) -> Result<Option<String>, String> {
        if is_url(file) {
            return Err("it is on the network, which is not used here: commit it to the repository".to_owned());
        }
        check_for_helm(file)?;
        let path = match file.strip_prefix('/') {
            Some(file) => self.repository.root().join(file),
            None => self.chart.join(file),
        };
        match self.repository.follow(&path)? {
            Target::Nothing => Ok(None),
            Target::Folder(_) => Err("it is a folder, not a file: name a file in it".to_owned()),
            Target::File(found) => {
                check_for_helm(&self.repository.shown(&found))?;
                let found = found.into_os_string().into_string();
                found
                    .map(Some)
                    .map_err(|_| "its name is not UTF-8: rename the file".to_owned())
            }
        }
    }
}

/// Returns true for a name that Helm takes for a release: its own rule.
pub(super) fn is_release_name(name: &str) -> bool {
    let is_letter_or_digit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 53
        && name.split('.').all(|part| {
            let part = part.as_bytes();
            part.iter().all(|byte| is_letter_or_digit(byte) || *byte == b'-')
                && part.first().is_some_and(is_letter_or_digit)
                && part.last().is_some_and(is_letter_or_digit)
        })
}

/// Returns true for what is one argument and nothing else, such as a version.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-+/".contains(char);
    text.starts_with(|char: char| char.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// A version of Kubernetes without what distributions add, by which charts would not find their range: as Argo CD does.
pub(super) fn plain_version(version: &str) -> &str {
    let version = version.trim_start_matches('v');
    version.split(['-', '+']).next().unwrap_or(version)
}

/// What helm complains about, with the way out where it is known.
fn explained(Complaint(said): &Complaint) -> String {
    let dependencies = said.split_once("missing in charts/ directory: ");
    if let Some((_, names)) = dependencies {
        return format!(
            "Chart.yaml: what the chart depends on is not in charts/: {names}: no network is used here: run 'helm dependency update', \
             and commit charts/"
        );
    }
    // Helm reads them from its standard input.
    if let Some(why) = said.strip_prefix("failed to parse -: ") {
        return format!("helm-values: {why}");
    }
    format!("helm template: {said}")
}

/// Helm's comment on where a document comes from.
const SOURCE: &[u8] = b"---\n# Source: ";

/// What helm wrote, cut where it names another template. Kubernetes' reader ends a document at each line that begins with `---`,
/// whatever it stands in, so nothing is torn apart that would have been one.
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

/// A template by its path in the chart's folder; helm puts the chart's name in front.
fn shown(source: &str) -> String {
    let path = source.split_once('/').map_or(source, |(_, path)| path);
    format!("{path} (rendered)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_add_to_versions() {
        for version in ["1.34.0", "v1.34.0", "v1.34.0+k3s1", "1.34.0-eks-1a2b"] {
            assert_eq!(plain_version(version), "1.34.0", "{version}");
        }
        assert_eq!(plain_version("1.34"), "1.34");
    }

    #[test]
    fn release_names_are_no_templates_and_no_flags() {
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
    fn what_helm_wrote_is_cut_by_template() {
        let texts = |written: &str| -> Vec<(String, String)> {
            let texts = by_template(written.as_bytes()).into_iter();
            texts
                .map(|(name, text)| (name, String::from_utf8_lossy(text).into_owned()))
                .collect()
        };
        let written = "---\n# Source: web/templates/a.yaml\na: |\n  ---\n  # Source: b\n---\nb: 1\n---\n# Source: web/charts/db/templates/c.yaml\nc: 1\n";
        let found = texts(written);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["templates/a.yaml (rendered)", "charts/db/templates/c.yaml (rendered)"]
        );
        assert_eq!(found.iter().map(|(_, text)| text.as_str()).collect::<String>(), written);
        assert_eq!(texts("a: 1\n"), [("helm template".to_owned(), "a: 1\n".to_owned())]);
        assert_eq!(texts(""), [("helm template".to_owned(), String::new())]);
    }
}
