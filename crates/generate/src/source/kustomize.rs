//! Renders a kustomization as Argo CD does: with `kustomize edit` for the settings, and `kustomize build`.

use super::bounds::{LinkTarget, Repository, TEXT_SIZE, read_limited};
use super::checkout::{self, CheckoutCopy};
use super::fetch::{Fetched, REQUESTS};
use super::helm::{is_word, plain_version};
use super::tool::{ToolAccess, ToolOutput};
use super::{Manifests, Source, rendered};
use crate::discover::KUSTOMIZATION_FILES;
use crate::settings::COMMON_LABELS;
use manifest::json;
use manifest::problem::{Problems, plain};
use manifest::value::Value;
use manifest::yaml;
use std::fs;
use std::path::Path;

/// The settings for rendering kustomizations.
#[derive(Clone, Debug, Default)]
pub struct KustomizeSettings {
    /// The origin of a setting of the Application, if any is set.
    pub given: Option<String>,
    /// The options of `kustomize build`.
    pub options: Vec<String>,
    /// The changes of the kustomization, in order.
    pub edits: Vec<Edit>,
    /// The patches to add, as YAML that [`check_patches`] accepts.
    pub patches: Option<String>,
    /// The components to add, relative to the kustomization.
    pub components: Vec<String>,
    /// True to ignore missing components.
    pub ignore_missing_components: bool,
    /// The Kubernetes version for charts of the kustomization.
    pub kube_version: Option<String>,
    /// The API versions for charts of the kustomization, besides the built-in ones.
    pub api_versions: Vec<String>,
}

/// A change of the kustomization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The name of the setting, for messages.
    pub setting: &'static str,
    /// The arguments of kustomize.
    pub arguments: Vec<String>,
}

impl KustomizeSettings {
    fn changes_the_kustomization(&self) -> bool {
        !self.edits.is_empty() || self.patches.is_some() || !self.components.is_empty()
    }

    fn build_arguments(&self) -> Result<Vec<String>, Problems> {
        let mut arguments = vec!["build".to_owned(), ".".to_owned()];
        arguments.extend(self.options.iter().cloned());
        let mut problems = Vec::new();
        let mut versions = |setting: &str, flag: &str, version: &str| {
            if !is_word(version) {
                problems.push(format!(
                    "{setting}: {version:?} is not a version: write it like 1.34.0 or apps/v1"
                ));
            }
            arguments.extend([flag.to_owned(), version.to_owned()]);
        };
        if self.options.iter().any(|option| option.starts_with("--enable-helm")) {
            if let Some(version) = self.kube_version.as_deref().map(plain_version) {
                versions("kustomize-kube-version", "--helm-kube-version", version);
            }
            for version in &self.api_versions {
                versions("kustomize-api-versions", "--helm-api-versions", version);
            }
        }
        Problems::or(problems, arguments)
    }
}

/// Renders the kustomization at `below` in `folder` with `kustomize build`.
pub(super) fn render(folder: &Path, below: &str, source: &Source) -> Result<Manifests, Problems> {
    let repository = Repository::locate(folder, &source.path);
    let folder = folder.join(below);
    let mut run = KustomizeRun {
        source,
        fetched: Fetched::new()?,
        attempts: 0,
    };
    let arguments = source.kustomize.build_arguments()?;
    let written = if source.kustomize.changes_the_kustomization() {
        let copy = copy(&folder, &repository)?;
        run.edit(&copy)?;
        run.kustomize("kustomize build", &arguments, &copy.folder, &copy.repository, false)?
    } else {
        run.kustomize("kustomize build", &arguments, &folder, &repository, false)?
    };
    let mut manifests = rendered(&[("kustomize build".to_owned(), &*written.manifests)], source)?;
    let mut notices = written.notices("kustomize build");
    let adds_labels = source.kustomize.edits.iter().any(|edit| edit.setting == COMMON_LABELS);
    notices.retain(|line| !adds_labels || !line.contains(DEPRECATED_LABELS));
    manifests.notices.extend(notices);
    Ok(manifests)
}

/// The runs of kustomize for one kustomization, which share the fetched content.
struct KustomizeRun<'s> {
    source: &'s Source,
    fetched: Fetched,
    attempts: usize,
}

impl KustomizeRun<'_> {
    /// Runs kustomize in a folder of the repository, and fetches what it lacks. `name` is the name in messages.
    fn kustomize(
        &mut self,
        name: &str,
        arguments: &[String],
        folder: &Path,
        repository: &Repository,
        writes: bool,
    ) -> Result<ToolOutput, Problems> {
        let source = self.source;
        loop {
            let access = ToolAccess::kustomize(
                repository.root(),
                &source.remotes,
                &source.kustomize.options,
                &self.fetched,
            );
            let access = if writes { access.with_writes() } else { access };
            match source.tools.run("kustomize", arguments, folder, None, &access)? {
                Ok(written) => return Ok(written),
                Err(error) if self.attempts < REQUESTS && self.fetched.provide(&error, source)? => self.attempts += 1,
                Err(error) => {
                    let line = error.line();
                    let remedy = format!(": set {}", name.replacen("kustomize-", "kustomize-force-", 1));
                    let line = shown(&line).replace(". Use --force to override.", &remedy);
                    return Err(Problems::one(format!("{name}: {line}")));
                }
            }
        }
    }

    /// Changes the kustomization of a copy by the settings.
    fn edit(&mut self, copy: &CheckoutCopy) -> Result<(), Problems> {
        let settings = &self.source.kustomize;
        for edit in &settings.edits {
            self.kustomize(edit.setting, &edit.arguments, &copy.folder, &copy.repository, true)?;
        }
        if let Some(patches) = &settings.patches {
            add_patches(&copy.folder, patches).map_err(|why| Problems::one(format!("kustomize-patches: {why}")))?;
        }
        let components = if settings.ignore_missing_components {
            existing(&settings.components, copy)?
        } else {
            settings.components.clone()
        };
        if !components.is_empty() {
            let command = ["edit", "add", "component", "--"].map(str::to_owned);
            let arguments = [&command[..], &components].concat();
            self.kustomize("kustomize-components", &arguments, &copy.folder, &copy.repository, true)?;
        }
        Ok(())
    }
}

/// Returns the components that exist, as Argo CD finds them. One that Argo CD has not passed may exist in Git.
fn existing(components: &[String], copy: &CheckoutCopy) -> Result<Vec<String>, Problems> {
    let (mut existing, mut problems) = (Vec::new(), Vec::new());
    for component in components {
        match copy.repository.follow(&copy.folder.join(component)) {
            Ok(LinkTarget::Nothing) => {}
            Ok(_) => existing.push(component.clone()),
            Err(why) => problems.push(format!("kustomize-components: {component}: {why}")),
        }
    }
    Problems::or(problems, existing)
}

/// Copies the checkout, so that its kustomization can be changed.
fn copy(folder: &Path, repository: &Repository) -> Result<CheckoutCopy, Problems> {
    let path = match repository.follow(folder) {
        Ok(LinkTarget::Folder(path)) => path,
        Ok(_) => return Err(Problems::one("the folder of the kustomization cannot be read")),
        Err(why) => return Err(Problems::one(format!("the folder of the kustomization: {why}"))),
    };
    let copy = CheckoutCopy::new(&path, repository)?;
    for name in KUSTOMIZATION_FILES {
        match repository.follow(&path.join(name)) {
            Ok(LinkTarget::File(file)) if !file.starts_with(&path) => {
                return Err(Problems::one(format!(
                    "{name}: it is a link out of the folder, which kustomize does not follow: copy the file"
                )));
            }
            // kustomize writes into the file, also through a link: it must be one of this copy.
            Ok(LinkTarget::File(file)) => fs::remove_file(copy.folder.join(name))
                .and_then(|()| fs::copy(file, copy.folder.join(name)))
                .map(drop)
                .map_err(|error| checkout::not_copied(&error))?,
            Ok(_) => {}
            Err(why) => return Err(Problems::one(format!("{name}: {why}"))),
        }
    }
    Ok(copy)
}

/// Adds patches to the kustomization in a folder, for which kustomize has no command.
fn add_patches(folder: &Path, patches: &str) -> Result<(), String> {
    let file = KUSTOMIZATION_FILES.map(|name| folder.join(name));
    let file = file.iter().find(|file| file.is_file());
    let file = file.ok_or("the folder has no kustomization.yaml")?;
    let text = read_limited(file, TEXT_SIZE)?;
    let document = yaml::documents(&text).next().transpose();
    let document = document.map_err(|error| format!("the kustomization: {error}"))?;
    let Some(Value::Map(mut fields)) = document.map(|document| document.value) else {
        return Err("the kustomization is no mapping: correct it".to_owned());
    };
    let mut all = match fields.remove("patches") {
        Some(Value::List(patches)) => patches,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err("the field patches of the kustomization is no list: correct it".to_owned()),
    };
    all.extend(parse_patches(patches)?);
    fields.insert("patches", Value::List(all));
    let mut text = String::new();
    json::write_map(&fields, &mut text).map_err(|error| error.to_string())?;
    fs::write(file, text).map_err(|error| plain(&error))
}

/// Checks the patches of a setting.
pub(crate) fn check_patches(text: &str) -> Result<(), String> {
    parse_patches(text).map(drop)
}

fn parse_patches(text: &str) -> Result<Vec<Value<'_>>, String> {
    let document = yaml::documents(text).next().transpose();
    let document = document.map_err(|error| error.to_string())?;
    match document.map(|document| document.value) {
        Some(Value::List(patches)) if patches.iter().all(|patch| patch.as_map().is_some()) => Ok(patches),
        _ => Err("it is no list of patches: write it like - {path: patch.yaml}".to_owned()),
    }
}

/// The warning about a field to which kustomize itself adds the common labels.
const DEPRECATED_LABELS: &str = "'commonLabels' is deprecated";

/// Returns kustomize's error message, without the help of its command; for a failed chart only helm's message, without the command
/// line.
fn shown(error_output: &str) -> &str {
    let error_output = error_output.split(" Usage: kustomize ").next().unwrap_or(error_output);
    match error_output.split_once(" : unable to run: 'helm ") {
        Some((of_helm, _)) if !of_helm.is_empty() => of_helm.strip_prefix("Error: ").unwrap_or(of_helm),
        _ => error_output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// With `manifest-generate-paths`, Argo CD may pass only the folder `teams/a` of the repository.
    #[test]
    fn component_that_argo_cd_does_not_pass_is_not_missing() {
        let scratch = TempDir::new().expect("a scratch folder");
        let folder = scratch.path().join("apps/shop");
        for folder in [&folder, &scratch.path().join("components/metrics")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let repository = Repository::locate(&folder, "teams/a/apps/shop");
        let folder = folder.canonicalize().expect("a folder");
        let copy = CheckoutCopy::new(&folder, &repository).expect("a copy");
        let existing = |component: &str| existing(&[component.to_owned()], &copy);
        // kustomize refuses a folder without a kustomization.
        assert_eq!(
            existing("../../components/metrics"),
            Ok(vec!["../../components/metrics".to_owned()])
        );
        assert_eq!(existing("../../components/none"), Ok(Vec::new()));
        let problems = existing("../../../../components/logs").expect_err("it may exist in Git");
        assert!(problems.to_string().contains("Argo CD does not pass it"), "{problems}");
    }
}
