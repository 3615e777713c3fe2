//! Renders each chart and kustomization of `tests/data/render` with `generate`, and compares the objects with those of Argo CD's
//! own source of that kind, by running the code of Argo CD.
//!
//! Each JSON file is a test: `cargo test --test render_cases helm-web/prod` runs one. With the older versions of kustomize and Helm, it is
//! `older/helm-web/prod`, whose messages are not compared. It describes how to render a folder of the
//! repository `input`: by our parameters, and by the equivalent fields of an Application's source. The names of cases that both
//! reject start with `error-`. `tests/data/README.md` describes the files of a case.
//!
//! The complete output is compared. The objects of Argo CD are written into a folder, one object per file, and the works of that
//! folder of plain manifests must be the works of the source. So no difference is excepted: our changes of objects apply on both
//! sides, and `with_argocd::directory_source` shows that we read plain manifests as Argo CD does.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

#[path = "../common/application_source.rs"]
mod application_source;
#[path = "../common/conversation.rs"]
mod conversation;
#[path = "../common/expected.rs"]
mod expected;
#[path = "../common/folder.rs"]
mod folder;
#[path = "../common/program.rs"]
mod program;

use anyhow::{Context, Result, bail, ensure};
use application_source::{ApplicationSource, Question};
use folder::entries;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tempfile::TempDir;
use testbed::{Parts, Tools};

/// The version of Kubernetes at the destination.
const KUBE_VERSION: &str = "1.33.4";

/// The idle processes that run Argo CD's code, with the folder of kustomize and Helm.
static IDLE: Mutex<Vec<(PathBuf, ApplicationSource)>> = Mutex::new(Vec::new());

/// The number of objects that both sides agreed on.
static OBJECTS: AtomicUsize = AtomicUsize::new(0);

fn main() -> Result<ExitCode> {
    let cases = cases()?;
    ensure!(cases.len() > 70, "only {} cases", cases.len());
    let cases = cases.into_iter().map(Arc::new);
    let versions = [(Tools::Current, ""), (Tools::Older, "older/")];
    let trials = cases.flat_map(|case| {
        versions.map(|(tools, prefix)| {
            let (case, name) = (Arc::clone(&case), format!("{prefix}{}", case.name));
            let test =
                move || run_case(&case, tools).map_err(|error| Failed::from(format!("{}: {error:#}", case.about)));
            Trial::test(name, test)
        })
    });
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials.collect());
    idle().clear();
    let objects = OBJECTS.load(Ordering::Relaxed);
    let is_all = conclusion.num_filtered_out + conclusion.num_ignored + conclusion.num_failed == 0;
    assert!(
        !is_all || conclusion.num_passed == 0 || objects > 240,
        "only {objects} objects"
    );
    Ok(conclusion.exit_code())
}

fn idle() -> MutexGuard<'static, Vec<(PathBuf, ApplicationSource)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a case with one of the processes that run Argo CD's code, so that the number of threads limits the concurrent cases.
fn run_case(case: &Case, versions: Tools) -> Result<()> {
    static PARTS: OnceLock<Result<Parts, String>> = OnceLock::new();
    let parts = PARTS.get_or_init(|| Parts::ensure().map_err(|error| format!("{error:#}")));
    let parts = parts.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    let tools = parts.tools_of(versions)?;
    let waiting = {
        let mut idle = idle();
        let at = idle.iter().position(|(other, _)| *other == tools);
        at.map(|at| idle.swap_remove(at).1)
    };
    let mut argo_cd = match waiting {
        Some(argo_cd) => argo_cd,
        None => ApplicationSource::start(parts, &tools)?,
    };
    let (agreement, stderr) = compare(case, &mut argo_cd, &tools)?;
    idle().push((tools, argo_cd));
    if let Agreement::Objects(count) = agreement {
        OBJECTS.fetch_add(count, Ordering::Relaxed);
    }
    match versions {
        Tools::Current => expected::compare(&case.expected, &stderr),
        Tools::Older => Ok(()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The name, from its folder and its file.
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    input: PathBuf,
    /// The file with our expected messages.
    #[serde(skip)]
    expected: PathBuf,
    about: String,
    /// The folder of the repository that is rendered.
    #[serde(default)]
    folder: String,
    /// The Application's name and destination namespace.
    #[serde(default = "shop")]
    application: String,
    #[serde(default = "shop")]
    namespace: String,
    #[serde(default)]
    kustomize_build_options: String,
    /// Our parameters: texts, lists and maps.
    parameters: BTreeMap<String, Value>,
    /// The equivalent fields of an Application's source.
    source: Value,
    /// The text of our error if only we reject it, because its objects cannot be delivered.
    only_we_refuse: Option<String>,
}

impl Case {
    fn is_error(&self) -> bool {
        self.name.contains("/error-")
    }
}

fn shop() -> String {
    "shop".to_owned()
}

fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/render"))? {
        for file in entries(&folder)? {
            let extension = file.extension().unwrap_or_default().to_string_lossy();
            match &*extension {
                "json" => {
                    let case = case(&folder, &file).with_context(|| format!("{} is not a case", file.display()))?;
                    cases.push(case);
                }
                "err" if file.with_extension("json").exists() => {}
                _ => ensure!(file == folder.join("input"), "no case uses {}", file.display()),
            }
        }
    }
    Ok(cases)
}

fn case(folder: &Path, file: &Path) -> Result<Case> {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Case {
        name: format!("{}/{}", name(folder), name(file)),
        input: folder.join("input"),
        expected: file.with_extension("err"),
        ..serde_json::from_str(&fs::read_to_string(file)?)?
    })
}

/// The agreed result of both sides.
enum Agreement {
    /// Both return this number of objects.
    Objects(usize),
    /// Both reject the case.
    Refusal,
}

/// The output of the program: works and warnings, or no works and an error.
#[derive(Debug, PartialEq)]
struct Printed {
    works: Option<String>,
    stderr: String,
}

/// Compares both results of a case, and returns our messages.
///
/// # Errors
/// The difference.
fn compare(case: &Case, argo_cd: &mut ApplicationSource, tools: &Path) -> Result<(Agreement, String)> {
    let checkout = Checkout::new("checkout", &case.input)?;
    let theirs = argo_cd.manifests(&Question {
        root: &checkout.root(),
        folder: &checkout.root().join(&case.folder),
        name: &case.application,
        namespace: &case.namespace,
        source: case.source.clone(),
        kube_version: KUBE_VERSION,
        kustomize_build_options: &case.kustomize_build_options,
    })?;

    // As in argocd-cmp-server: another folder every time.
    let ours = our_works(case, &Checkout::new("a", &case.input)?, tools)?;
    let again = our_works(case, &Checkout::new("another-checkout", &case.input)?, tools)?;
    ensure!(ours == again, "the output depends on the run:\n{ours:?}\n{again:?}");
    let stderr = ours.stderr;
    let agreement = match (ours.works, theirs) {
        (Some(ours), Ok(theirs)) => {
            let expected = works_of_manifests(case, &theirs)?;
            let works = expected
                .works
                .with_context(|| format!("only we render it: {}", expected.stderr))?;
            ensure!(ours == works, "{}", difference(&ours, &works)?);
            Agreement::Objects(theirs.len())
        }
        (None, Err(_)) if case.is_error() => Agreement::Refusal,
        (None, Ok(_)) if case.only_we_refuse.as_ref().is_some_and(|words| stderr.contains(words)) => Agreement::Refusal,
        (None, Ok(_)) => bail!("only we refuse it: {stderr}"),
        (Some(works), Err(error)) => bail!("only Argo CD refuses it: {error}\n{works}"),
        (None, Err(error)) => bail!("both refuse it:\nours: {stderr}\nArgo CD: {error}"),
    };
    ensure!(
        matches!(agreement, Agreement::Refusal) == (case.is_error() || case.only_we_refuse.is_some()),
        "a case named error- has no error"
    );
    Ok((agreement, stderr))
}

/// Returns the manifests that only one of two lists of works has.
fn difference(ours: &str, theirs: &str) -> Result<String> {
    let manifests = |works: &str| -> Result<Vec<String>> {
        let mut manifests = Vec::new();
        for work in works.lines() {
            let work: Value = serde_json::from_str(work)?;
            let of_it = work["spec"]["workload"]["manifests"].as_array().context("manifests")?;
            manifests.extend(of_it.iter().map(ToString::to_string));
        }
        Ok(manifests)
    };
    let (ours, theirs) = (manifests(ours)?, manifests(theirs)?);
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|one| !those.contains(one)).cloned().collect()
    };
    Ok(format!(
        "only ours: {:#?}\nonly of Argo CD's objects: {:#?}",
        only(&ours, &theirs),
        only(&theirs, &ours)
    ))
}

/// Returns the output of the program for the case in a checkout, and checks that the checkout has not changed.
fn our_works(case: &Case, checkout: &Checkout, tools: &Path) -> Result<Printed> {
    let temporary = checkout.0.path().join("tmp");
    fs::create_dir(&temporary)?;
    let mut command = program(case, &checkout.root().join(&case.folder), &case.parameters);
    command
        .env(
            "ARGOCD_APP_SOURCE_PATH",
            if case.folder.is_empty() { "." } else { &case.folder },
        )
        .env("PATH", tools)
        .env("TMPDIR", &temporary)
        .env("KUBE_VERSION", KUBE_VERSION)
        .env("ARGOCD_OCM_CMP_KUSTOMIZE_OPTIONS", &case.kustomize_build_options);
    let printed = run(command)?;
    // The locks of the tools that run at a time stay.
    let mut remaining = entries(&temporary)?;
    remaining.retain(|path| !path.to_string_lossy().contains(".argocd-ocm-cmp-slots-"));
    ensure!(remaining.is_empty(), "temporary files remain: {remaining:?}");
    let is_unchanged = contents(&checkout.root())? == contents(&case.input)?;
    ensure!(is_unchanged, "the checkout has changed");
    let stderr = &printed.stderr;
    let path = checkout.0.path().to_string_lossy();
    ensure!(!stderr.contains(&*path), "a path of this run in: {stderr}");
    let is_line = |line: &str| line.starts_with("error: ") || line.starts_with("warning: ");
    ensure!(stderr.lines().all(is_line), "an error has several lines: {stderr}");
    Ok(printed)
}

/// Returns the output of the program for a folder of plain manifests with these objects.
fn works_of_manifests(case: &Case, manifests: &[String]) -> Result<Printed> {
    let folder = TempDir::new()?;
    for (number, manifest) in manifests.iter().enumerate() {
        fs::write(folder.path().join(format!("{number:04}.json")), manifest)?;
    }
    // The parameters that are not about rendering.
    let mut parameters = case.parameters.clone();
    let is_of_rendering = |name: &String| {
        let is_of_a_tool = ["helm-", "kustomize-"].iter().any(|prefix| name.starts_with(prefix));
        is_of_a_tool || ["source", "include", "overlays"].contains(&name.as_str())
    };
    parameters.retain(|name, _| !is_of_rendering(name));
    run(program(case, folder.path(), &parameters))
}

/// Returns the program as argocd-cmp-server calls it.
fn program(case: &Case, folder: &Path, parameters: &BTreeMap<String, Value>) -> Command {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|(name, value)| {
            let form = match value {
                Value::Array(_) => "array",
                Value::Object(_) => "map",
                _ => "string",
            };
            json!({"name": name, form: value})
        })
        .collect();
    let mut command = program::program_with(folder, ["generate", "--output", "json"]);
    command
        .env("ARGOCD_APP_NAME", &case.application)
        .env("ARGOCD_APP_NAMESPACE", &case.namespace)
        .env("ARGOCD_APP_PARAMETERS", json!(parameters).to_string())
        .env("ARGOCD_ENV_TARGET_CLUSTER", "cluster1");
    command
}

fn run(mut command: Command) -> Result<Printed> {
    let output = command.output()?;
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    let works = output.status.success().then_some(stdout.clone());
    if works.is_none() {
        ensure!(
            output.status.code() == Some(1),
            "the program ended with {}: {stderr}",
            output.status
        );
        ensure!(stdout.is_empty(), "an error, but standard output has {stdout}");
    }
    Ok(Printed { works, stderr })
}

/// A copy of a repository in a new folder, and files outside of it that must not be read.
struct Checkout(TempDir);

impl Checkout {
    fn new(name: &str, files: &Path) -> Result<Self> {
        let around = tempfile::Builder::new().prefix(name).tempdir()?;
        let checkout = Self(around);
        testbed::copy(files, &checkout.root())?;
        let outside = checkout.0.path().join("outside");
        fs::write(outside.with_extension("yaml"), "replicaCount: 99\n")?;
        fs::create_dir(&outside)?;
        fs::write(outside.join("kustomization.yaml"), "resources: [outside.yaml]\n")?;
        let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: outside}}\n";
        fs::write(outside.join("outside.yaml"), object)?;
        Ok(checkout)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("repository")
    }
}

/// Returns every file below a folder with its content, and every link with its target.
fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in entries(&next)? {
            let name = entry.strip_prefix(folder)?.to_owned();
            if entry.is_symlink() {
                all.insert(name, fs::read_link(&entry)?.into_os_string().into_encoded_bytes());
            } else if entry.is_dir() {
                folders.push(entry);
            } else {
                all.insert(name, fs::read(&entry)?);
            }
        }
    }
    Ok(all)
}
