//! Renders each chart, kustomization and folder of manifests of checkouts by `generate` and by Argo CD's own code, and compares the
//! objects.
//!
//! The objects of Argo CD are written into a folder of plain manifests, which `generate` reads too, so that our changes of objects
//! are on both sides. Values that differ between two renderings by Argo CD are random, and are not compared.

use crate::{PROGRAM, output, root, succeed};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../tests/common/conversation.rs"]
mod conversation;

use conversation::Conversation;

/// The version of Kubernetes at the destination.
const KUBE_VERSION: &str = "1.33.4";

/// The settings with which `generate` refuses nothing that Argo CD delivers. The last one is for plain manifests, of which Argo CD
/// reads no sub-folders by default.
const SETTINGS: [(&str, &str); 3] = [("allow-secrets", "true"), ("allow-empty", "true"), ("recurse", "false")];

/// A proxy that does not answer: neither side may fetch anything.
const NO_PROXY: &str = "http://127.0.0.1:1";

/// The objects of a source, by kind, namespace and name.
type Objects = BTreeMap<String, Value>;

/// The objects, or the first line of the error.
type Rendered = Result<Objects, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SampleKind {
    Chart,
    Kustomization,
    Manifests,
}

#[derive(Debug, PartialEq, Eq)]
enum RenderComparison {
    /// Both render this number of objects.
    Same(usize),
    /// Our error.
    BothRefuse(String),
    WeRefuse(String),
    Different(String),
}

impl RenderComparison {
    fn name(&self) -> &'static str {
        match self {
            Self::Same(_) => "same",
            Self::BothRefuse(_) => "refused by both",
            Self::WeRefuse(_) => "refused by us",
            Self::Different(_) => "different",
        }
    }
}

impl fmt::Display for RenderComparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(count) => write!(formatter, "{count} objects"),
            Self::BothRefuse(why) | Self::WeRefuse(why) | Self::Different(why) => formatter.write_str(why),
        }
    }
}

/// Compares the objects of both sides; `again` are those of a second rendering by Argo CD.
fn compare(ours: &Rendered, theirs: &Rendered, again: &Rendered) -> RenderComparison {
    match (ours, theirs, again) {
        (Ok(ours), Ok(theirs), Ok(again)) => match difference(ours, theirs, again) {
            None => RenderComparison::Same(ours.len()),
            Some(difference) => RenderComparison::Different(difference),
        },
        (Err(why), Err(_), _) => RenderComparison::BothRefuse(why.clone()),
        (Err(why), ..) => RenderComparison::WeRefuse(why.clone()),
        (Ok(_), theirs, again) => {
            let why = theirs.as_ref().err().or(again.as_ref().err());
            RenderComparison::Different(format!("only Argo CD refuses it: {}", why.map_or("", String::as_str)))
        }
    }
}

/// Returns the first difference. Objects whose names are random are only counted.
fn difference(ours: &Objects, theirs: &Objects, again: &Objects) -> Option<String> {
    if ours.len() != theirs.len() || theirs.keys().eq(again.keys()) {
        let only = |these: &Objects, those: &Objects| these.keys().find(|key| !those.contains_key(*key)).cloned();
        if let Some(key) = only(ours, theirs) {
            return Some(format!("only ours: {key}"));
        }
        if let Some(key) = only(theirs, ours) {
            return Some(format!("only Argo CD's: {key}"));
        }
    }
    ours.iter().find_map(|(key, ours)| {
        let (theirs, again) = (theirs.get(key)?, again.get(key)?);
        let (path, ours, theirs) = different_value(ours, theirs, again, "")?;
        Some(format!(
            "{key}: {path}: ours {}, Argo CD's {}",
            shortened(ours),
            shortened(theirs)
        ))
    })
}

fn shortened(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "missing".to_owned(), Value::to_string);
    text.chars().take(100).collect()
}

/// A path, and the values of both sides there.
type DifferentValue<'v> = (String, Option<&'v Value>, Option<&'v Value>);

/// Returns the first value that differs and is not random.
fn different_value<'v>(ours: &'v Value, theirs: &'v Value, again: &Value, path: &str) -> Option<DifferentValue<'v>> {
    let below = |key: &str, ours: Option<&'v Value>, theirs: Option<&'v Value>, again: Option<&Value>| {
        let path = format!("{path}/{key}");
        match (ours, theirs, again) {
            (Some(ours), Some(theirs), Some(again)) => different_value(ours, theirs, again, &path),
            (ours, theirs, again) => (theirs == again && ours != theirs).then_some((path, ours, theirs)),
        }
    };
    match (ours, theirs, again) {
        _ if ours == theirs => None,
        (Value::Object(ours), Value::Object(theirs), Value::Object(again)) => {
            let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key)));
            let mut differences = keys.filter_map(|key| below(key, ours.get(key), theirs.get(key), again.get(key)));
            differences.next()
        }
        (Value::Array(ours), Value::Array(theirs), Value::Array(again)) => {
            let items = 0..ours.len().max(theirs.len());
            let mut items = items.filter_map(|at| below(&at.to_string(), ours.get(at), theirs.get(at), again.get(at)));
            items.next()
        }
        _ => (theirs == again).then(|| (path.to_owned(), Some(ours), Some(theirs))),
    }
}

/// Returns the objects in works that `generate` has printed as lines of JSON.
fn objects(works: &str) -> Result<Objects> {
    let mut objects = Objects::new();
    for work in works.lines() {
        let mut work: Value = serde_json::from_str(work)?;
        let manifests = work["spec"]["workload"]["manifests"].as_array_mut();
        for manifest in manifests.context("a work without manifests")?.drain(..) {
            let text = |key: &str| manifest["metadata"][key].as_str().unwrap_or_default();
            let key = format!(
                "{} {} {}/{}",
                manifest["apiVersion"].as_str().unwrap_or_default(),
                manifest["kind"].as_str().unwrap_or_default(),
                text("namespace"),
                text("name")
            );
            objects.insert(key, manifest);
        }
    }
    Ok(objects)
}

/// Returns how Argo CD renders a folder with these files, if it contains a source. `is_manifest` reads a file.
fn kind_of(files: &[String], is_manifest: impl Fn(&str) -> bool) -> Option<SampleKind> {
    let has = |names: &[&str]| files.iter().any(|file| names.contains(&&**file));
    if has(&["Chart.yaml"]) {
        Some(SampleKind::Chart)
    } else if has(&["kustomization.yaml", "kustomization.yml", "Kustomization"]) {
        Some(SampleKind::Kustomization)
    } else {
        let mut manifests = files.iter().filter(|file| {
            let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("yaml" | "yml" | "json")) && is_manifest(file)
        });
        manifests.next().map(|_| SampleKind::Manifests)
    }
}

/// Returns true if a file looks like a manifest.
fn is_manifest(text: &str) -> bool {
    let has = |key: &str| {
        text.lines()
            .any(|line| line.trim_start_matches([' ', '"', '{']).starts_with(key))
    };
    has("kind") && has("apiVersion")
}

/// Returns the sources below a folder. Charts are not searched: their dependencies and templates are parts of them.
fn sources(folder: &Path, samples: &mut Vec<(SampleKind, PathBuf)>) -> Result<()> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type()? {
            kind if kind.is_dir() && !name.starts_with('.') => folders.push(entry.path()),
            kind if kind.is_file() => files.push(name),
            _ => {}
        }
    }
    let read = |file: &str| fs::read_to_string(folder.join(file)).is_ok_and(|text| is_manifest(&text));
    let kind = kind_of(&files, read);
    samples.extend(kind.map(|kind| (kind, folder.to_owned())));
    if kind != Some(SampleKind::Chart) {
        folders.sort();
        folders.iter().try_for_each(|folder| sources(folder, samples))?;
    }
    Ok(())
}

/// Argo CD's own code.
struct ArgoCdProcess(Conversation);

impl ArgoCdProcess {
    fn start(program: &str, tools: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.env("PATH", tools).env("ARGOCD_LOG_LEVEL", "panic");
        command.envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, NO_PROXY)));
        Conversation::start(command).map(Self)
    }

    /// Returns the objects of a source as JSON, or the error.
    fn manifests(&mut self, checkout: &Path, source: &Path) -> Result<Result<Vec<String>, String>> {
        let question = json!({
            "root": checkout, "folder": source, "name": "shop", "namespace": "shop", "source": {},
            "kube_version": KUBE_VERSION, "kustomize_build_options": "",
        });
        let answer: Value = serde_json::from_str(&self.0.ask(&question)?)?;
        let error = answer["error"].as_str().context("an error")?;
        if !error.is_empty() {
            return Ok(Err(error.to_owned()));
        }
        let manifests = answer["manifests"].as_array().context("manifests")?.iter();
        Ok(Ok(manifests
            .filter_map(|manifest| manifest.as_str().map(str::to_owned))
            .collect()))
    }
}

/// The programs of both sides.
struct Programs {
    ours: PathBuf,
    tools: String,
    argo_cd: ArgoCdProcess,
    /// A folder for the objects of Argo CD.
    scratch: PathBuf,
}

impl Programs {
    fn find(root: &Path) -> Result<Self> {
        let build = ["build", "--workspace", "--bin", PROGRAM, "--bin", "testbed"];
        succeed(Command::new(env!("CARGO")).args(build).current_dir(root))?;
        let paths = output(Command::new(root.join("target/debug/testbed")).arg("paths"))?;
        let [argo_cd, tools] = paths.lines().collect::<Vec<_>>()[..] else {
            bail!("testbed paths printed {paths:?}");
        };
        Ok(Self {
            ours: root.join("target/debug").join(PROGRAM),
            tools: tools.to_owned(),
            argo_cd: ArgoCdProcess::start(argo_cd, tools)?,
            scratch: root.join("target/conformance"),
        })
    }

    /// Runs `generate` in a folder, at `path` of the repository.
    fn generate(&self, kind: SampleKind, folder: &Path, path: &Path) -> Result<Rendered> {
        let mut command = Command::new(&self.ours);
        let settings = if kind == SampleKind::Manifests {
            &SETTINGS[..]
        } else {
            &SETTINGS[..2]
        };
        let settings = settings
            .iter()
            .map(|(name, value)| json!({"name": name, "string": value}));
        command
            .args(["generate", "--output", "json"])
            .current_dir(folder)
            .env_clear();
        command.env("PATH", &self.tools).env("KUBE_VERSION", KUBE_VERSION);
        command
            .env("ARGOCD_APP_NAME", "shop")
            .env("ARGOCD_APP_NAMESPACE", "shop");
        command.env("ARGOCD_APP_PARAMETERS", json!(settings.collect::<Vec<_>>()).to_string());
        command
            .env("ARGOCD_ENV_TARGET_CLUSTER", "cluster1")
            .env("ARGOCD_APP_SOURCE_PATH", path);
        let isolation = "ARGOCD_OCM_CMP_TOOL_ISOLATION";
        command.envs(env::var_os(isolation).map(|value| (isolation, value)));
        let output = command.output()?;
        if output.status.success() {
            return objects(&String::from_utf8(output.stdout)?).map(Ok);
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let error = errors.lines().find(|line| line.starts_with("error: "));
        Ok(Err(error.with_context(|| format!("no error: {errors}"))?.to_owned()))
    }

    /// Returns the objects that Argo CD renders, as `generate` reads them from a folder. An error is one of Argo CD, or of
    /// `generate` for these objects.
    fn of_argo_cd(&mut self, checkout: &Path, source: &Path) -> Result<Result<Rendered, String>> {
        let manifests = match self.argo_cd.manifests(checkout, source)? {
            Ok(manifests) => manifests,
            Err(error) => return Ok(Err(error)),
        };
        if self.scratch.exists() {
            fs::remove_dir_all(&self.scratch)?;
        }
        fs::create_dir_all(&self.scratch)?;
        for (number, manifest) in manifests.iter().enumerate() {
            fs::write(self.scratch.join(format!("{number:04}.json")), manifest)?;
        }
        self.generate(SampleKind::Manifests, &self.scratch, Path::new("."))
            .map(Ok)
    }

    fn compare(&mut self, kind: SampleKind, checkout: &Path, source: &Path) -> Result<RenderComparison> {
        let path = source.strip_prefix(checkout)?;
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let ours = self.generate(kind, source, path)?;
        let theirs = match self.of_argo_cd(checkout, source)? {
            Ok(Err(why)) => return Ok(RenderComparison::WeRefuse(why)),
            Ok(rendered) => rendered,
            Err(error) => Err(error),
        };
        if ours == theirs || theirs.is_err() || ours.is_err() {
            return Ok(compare(&ours, &theirs, &theirs));
        }
        let again = self.of_argo_cd(checkout, source)?.unwrap_or_else(Err);
        Ok(compare(&ours, &theirs, &again))
    }
}

/// Compares all sources of these checkouts. Argo CD may write into them.
pub(crate) fn run(checkouts: &[String]) -> Result<()> {
    let mut programs = Programs::find(root()?)?;
    let mut counts: BTreeMap<(SampleKind, &str), usize> = BTreeMap::new();
    for checkout in checkouts {
        let checkout = fs::canonicalize(checkout).with_context(|| format!("cannot read {checkout}"))?;
        let mut samples = Vec::new();
        sources(&checkout, &mut samples)?;
        for (kind, source) in samples {
            let verdict = programs
                .compare(kind, &checkout, &source)
                .with_context(|| source.display().to_string())?;
            *counts.entry((kind, verdict.name())).or_default() += 1;
            println!("{:15} {kind:?} {}: {verdict}", verdict.name(), source.display());
        }
    }
    for ((kind, verdict), count) in &counts {
        println!("{count:5} {kind:?} {verdict}");
    }
    let is_different = counts.keys().any(|(_, verdict)| *verdict == "different");
    ensure!(!is_different, "the objects differ from Argo CD's");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects_of(objects: &[(&str, Value)]) -> Objects {
        let objects = objects.iter();
        objects.map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    }

    #[test]
    fn compares_values_that_are_not_random() {
        let with = |data: Value| objects_of(&[("v1 Secret a/b", json!({"data": data}))]);
        let theirs = with(json!({"key": "x1", "size": 1, "list": [1, 2]}));
        let again = with(json!({"key": "x2", "size": 1, "list": [1, 2]}));
        for (ours, expected) in [
            (json!({"key": "x3", "size": 1, "list": [1, 2]}), None),
            (
                json!({"key": "x3", "size": 2, "list": [1, 2]}),
                Some("v1 Secret a/b: /data/size: ours 2, Argo CD's 1"),
            ),
            (
                json!({"key": "x3", "size": 1, "list": [1]}),
                Some("v1 Secret a/b: /data/list/1: ours missing, Argo CD's 2"),
            ),
            (
                json!({"key": "x3", "list": [1, 2], "more": null, "size": 1}),
                Some("v1 Secret a/b: /data/more: ours null, Argo CD's missing"),
            ),
        ] {
            assert_eq!(difference(&with(ours), &theirs, &again).as_deref(), expected);
        }
    }

    #[test]
    fn finds_missing_objects_and_counts_those_with_random_names() {
        let [one, two, other] = ["a", "b", "c"].map(|name| objects_of(&[(name, json!(1))]));
        let both = objects_of(&[("a", json!(1)), ("b", json!(1))]);
        for (ours, theirs, again, expected) in [
            (&both, &one, &one, Some("only ours: b")),
            (&one, &both, &both, Some("only Argo CD's: b")),
            (&one, &two, &two, Some("only ours: a")),
            (&one, &two, &other, None),
        ] {
            assert_eq!(difference(ours, theirs, again).as_deref(), expected);
        }
    }

    #[test]
    fn refusal_of_one_side_is_a_result() {
        let (rendered, refused) = (Ok(Objects::new()), Err("no".to_owned()));
        let why = || "no".to_owned();
        for (ours, theirs, expected) in [
            (&refused, &refused, RenderComparison::BothRefuse(why())),
            (&refused, &rendered, RenderComparison::WeRefuse(why())),
            (
                &rendered,
                &refused,
                RenderComparison::Different("only Argo CD refuses it: no".to_owned()),
            ),
            (&rendered, &rendered, RenderComparison::Same(0)),
        ] {
            assert_eq!(compare(ours, theirs, theirs), expected);
        }
    }

    #[test]
    fn recognises_sources_by_their_files() {
        let of = |files: &[&str]| {
            let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
            kind_of(&files, |file| file.starts_with("object"))
        };
        assert_eq!(of(&["Chart.yaml", "values.yaml"]), Some(SampleKind::Chart));
        assert_eq!(
            of(&["kustomization.yml", "object.yaml"]),
            Some(SampleKind::Kustomization)
        );
        assert_eq!(of(&["README.md", "object.json"]), Some(SampleKind::Manifests));
        assert_eq!(of(&["object.md", "values.yaml"]), None);
        assert!(is_manifest("apiVersion: v1\nkind: A\n"));
        assert!(!is_manifest("kind: of\n"));
    }

    #[test]
    fn reads_the_objects_of_works() {
        let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "a"}});
        let work = json!({"spec": {"workload": {"manifests": [manifest]}}});
        assert_eq!(
            objects(&format!("{work}\n")).expect("works"),
            Objects::from([("v1 Secret a/b".to_owned(), manifest)])
        );
    }
}
