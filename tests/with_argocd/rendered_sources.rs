//! A chart or a kustomization gives the objects that Argo CD's own source of that kind gives: the same code of Argo CD is asked.
//!
//! A case is a folder in `tests/sources` with `files`, which is a repository, and JSON files, each of which says how a folder of
//! it is rendered: by our parameters, and by the fields of an Application's source that mean the same. `error-` starts the names
//! of those that both refuse.
//!
//! What is compared is all that we print. What Argo CD makes of a source is put into a folder, an object a file, and what we make
//! of that folder of plain manifests is what we must make of the source. So there are no differences to be allowed for: what we
//! do to objects is done on both sides, and that plain manifests are read as Argo CD reads them is shown by `directory_source`.

use crate::application_source::{ApplicationSource, Question};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testbed::Parts;

/// The version of Kubernetes at the destination.
const KUBE_VERSION: &str = "1.33.4";

#[test]
fn sources_are_rendered_as_argo_cd_renders_them() -> Result<()> {
    if !testbed::available() {
        return Ok(());
    }
    let parts = Parts::ensure()?;
    let mut argo_cd = ApplicationSource::start(&parts)?;
    let (mut wrong, mut said) = (String::new(), String::new());
    let (mut agree, mut objects) = (0, 0);
    for case in cases()? {
        let Case { name, about, .. } = &case;
        match compare(&case, &mut argo_cd, &parts) {
            Ok((agreement, ours)) => {
                if let Agreement::Objects(count) = agreement {
                    objects += count;
                }
                if !ours.is_empty() {
                    writeln!(said, "{name}: {about}\n{ours}")?;
                }
                agree += 1;
            }
            Err(difference) => writeln!(wrong, "---- {name}: {about}\n{difference:#}\n")?,
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(agree > 70 && objects > 120, "{agree} cases, {objects} objects");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("rendered-sources", said);
    });
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Set when it is found: its folder and its file.
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    files: PathBuf,
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
    /// The same in an Application's source.
    source: Value,
    /// What stands in our error where only we refuse it, since its objects cannot be delivered.
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
    for folder in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources"))? {
        for file in entries(&folder)? {
            if file.extension().is_some_and(|extension| extension == "json") {
                let read = || -> Result<Case> { Ok(serde_json::from_str(&fs::read_to_string(&file)?)?) };
                let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                cases.push(Case {
                    name: format!("{}/{}", name(&folder), name(&file)),
                    files: folder.join("files"),
                    ..read().with_context(|| format!("{} is not a case", file.display()))?
                });
            }
        }
    }
    Ok(cases)
}

/// How both sides agree.
enum Agreement {
    /// On so many objects.
    Objects(usize),
    /// That there are none.
    Refusal,
}

/// What the program printed: works and what it remarks on them, or nothing and what is wrong.
#[derive(Debug, PartialEq)]
struct Printed {
    works: Option<String>,
    said: String,
}

/// What both sides make of a case, and what we say; the way in which they differ otherwise.
fn compare(case: &Case, argo_cd: &mut ApplicationSource, parts: &Parts) -> Result<(Agreement, String)> {
    let checkout = Checkout::new("checkout", &case.files)?;
    let theirs = argo_cd.manifests(&Question {
        root: &checkout.root(),
        folder: &checkout.root().join(&case.folder),
        name: &case.application,
        namespace: &case.namespace,
        source: case.source.clone(),
        kube_version: KUBE_VERSION,
        kustomize_build_options: &case.kustomize_build_options,
    })?;

    // As argocd-cmp-server does it: another folder every time.
    let ours = our_works(case, &Checkout::new("a", &case.files)?, parts)?;
    let again = our_works(case, &Checkout::new("another-checkout", &case.files)?, parts)?;
    ensure!(ours == again, "it depends on the run:\n{ours:?}\n{again:?}");
    let said = ours.said;
    let agreement = match (ours.works, theirs) {
        (Some(ours), Ok(theirs)) => {
            let expected = works_of_manifests(case, &theirs)?;
            let works = expected
                .works
                .with_context(|| format!("only we render it: {}", expected.said))?;
            ensure!(ours == works, "{}", difference(&ours, &works)?);
            Agreement::Objects(theirs.len())
        }
        (None, Err(_)) if case.is_error() => Agreement::Refusal,
        (None, Ok(_)) if case.only_we_refuse.as_ref().is_some_and(|words| said.contains(words)) => Agreement::Refusal,
        (None, Ok(_)) => bail!("only we refuse it: {said}"),
        (Some(works), Err(told)) => bail!("only Argo CD refuses it: {told}\n{works}"),
        (None, Err(told)) => bail!("both refuse it:\nours: {said}\nArgo CD: {told}"),
    };
    ensure!(
        matches!(agreement, Agreement::Refusal) == (case.is_error() || case.only_we_refuse.is_some()),
        "it is called an error, and is none"
    );
    Ok((agreement, said))
}

/// The manifests that only one of two lists of works has.
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

/// What the program prints for the case in a checkout, which it leaves as it is.
fn our_works(case: &Case, checkout: &Checkout, parts: &Parts) -> Result<Printed> {
    let temporary = checkout.0.path().join("tmp");
    fs::create_dir(&temporary)?;
    let mut command = program(case, &checkout.root().join(&case.folder), &case.parameters);
    command
        .env(
            "ARGOCD_APP_SOURCE_PATH",
            if case.folder.is_empty() { "." } else { &case.folder },
        )
        .env("PATH", parts.tools())
        .env("TMPDIR", &temporary)
        .env("KUBE_VERSION", KUBE_VERSION)
        .env("OCM_KUSTOMIZE_OPTIONS", &case.kustomize_build_options);
    let printed = run(command)?;
    let left = entries(&temporary)?;
    ensure!(left.is_empty(), "temporary files stay: {left:?}");
    let as_it_was = contents(&checkout.root())? == contents(&case.files)?;
    ensure!(as_it_was, "the checkout is no longer as it was");
    let said = &printed.said;
    let path = checkout.0.path().to_string_lossy();
    ensure!(!said.contains(&*path), "a path of this run in: {said}");
    let is_line = |line: &str| line.starts_with("error: ") || line.starts_with("warning: ");
    ensure!(said.lines().all(is_line), "not one line each: {said}");
    Ok(printed)
}

/// What the program prints for a folder of plain manifests with these objects.
fn works_of_manifests(case: &Case, manifests: &[String]) -> Result<Printed> {
    let folder = TempDir::new()?;
    for (number, manifest) in manifests.iter().enumerate() {
        fs::write(folder.path().join(format!("{number:04}.json")), manifest)?;
    }
    // Those that do not say how to render.
    let mut parameters = case.parameters.clone();
    parameters.retain(|name, _| !name.starts_with("helm-") && !["source", "include"].contains(&name.as_str()));
    run(program(case, folder.path(), &parameters))
}

/// The program as argocd-cmp-server calls it.
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    command
        .args(["generate", "--output", "json"])
        .current_dir(folder)
        .env_clear()
        .env("ARGOCD_APP_NAME", &case.application)
        .env("ARGOCD_APP_NAMESPACE", &case.namespace)
        .env("ARGOCD_APP_PARAMETERS", json!(parameters).to_string())
        .env("ARGOCD_ENV_TARGET_CLUSTER", "cluster1");
    command
}

fn run(mut command: Command) -> Result<Printed> {
    let output = command.output()?;
    let (stdout, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    let works = output.status.success().then_some(stdout.clone());
    if works.is_none() {
        ensure!(
            output.status.code() == Some(1),
            "it ended with {}: {said}",
            output.status
        );
        ensure!(stdout.is_empty(), "an error, and still it prints {stdout}");
    }
    Ok(Printed { works, said })
}

/// A copy of a repository in a folder of its own, and files outside of it that nothing must read.
struct Checkout(TempDir);

impl Checkout {
    fn new(name: &str, files: &Path) -> Result<Self> {
        let around = tempfile::Builder::new().prefix(name).tempdir()?;
        let checkout = Self(around);
        copy(files, &checkout.root())?;
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

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in entries(from)? {
        let target = to.join(entry.file_name().context("it has a name")?);
        if entry.is_symlink() {
            symlink(fs::read_link(&entry)?, target)?;
        } else if entry.is_dir() {
            copy(&entry, &target)?;
        } else {
            fs::copy(&entry, target)?;
        }
    }
    Ok(())
}

/// Every file below a folder with what is in it, and every link with where it leads.
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

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
