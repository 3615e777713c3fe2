//! Test of the real Argo CD Image Updater, with the permissions of its installation and the objects of docs/ways-in.md.
//!
//! It needs a Git checkout of it:
//!
//! ```text
//! TESTBED_IMAGE_UPDATER=FOLDER cargo test --test with_argocd image_updater -- --ignored
//! ```

use super::ways_in::serve;
use super::{Desk, desk};
use crate::documents::documents;
use crate::stage::shipped;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::process::{self, Process};
use testbed::{GitRepository, ObjectRef, wait};

/// The ServiceAccount of the Image Updater.
const ACCOUNT: &str = "argocd-image-updater-controller";

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: web
        image: '{{ .Values.image.repository }}:{{ .Values.image.tag }}'
";

/// Returns the two blocks of the page: the `ImageUpdater`, and the plugin of its Application.
fn documented(registry: &str, name: &str, method: &str) -> Result<(Value, Value)> {
    let page = fs::read_to_string(shipped("docs/ways-in.md"))?;
    let (_, section) = page
        .split_once("\n## Argo CD Image Updater\n")
        .context("a section about it")?;
    let mut blocks = section.split("```yaml\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        let block = block
            .replace("registry.example.com", registry)
            .replace("shop", name)
            .replace("method: git", &format!("method: {method}"))
            .replace("eu1", "cluster1");
        documents(&block)?.pop().context("a document")
    });
    let mut block = || blocks.next().context("two blocks")?;
    Ok((block()?, block()?["plugin"].take()))
}

/// An Application with its repository.
struct App {
    name: &'static str,
    git: GitRepository,
    updater: Value,
}

impl App {
    /// Creates the Application, and waits until the cluster has the image that it names.
    async fn create(desk: &Desk, registry: &str, name: &'static str, method: &str) -> Result<Self> {
        let (updater, plugin) = documented(registry, name, method)?;
        let git = GitRepository::new()?;
        git.commit(&[
            (
                &format!("{name}/Chart.yaml"),
                &format!("apiVersion: v1\nname: {name}\nversion: 1.0.0\n"),
            ),
            (&format!("{name}/templates/web.yaml"), &DEPLOYMENT.replace("NAME", name)),
        ])?;
        desk.create(name, &git, |app| {
            app["spec"]["source"]["plugin"] = plugin;
            app["spec"]["syncPolicy"] = json!({"automated": {}});
        })
        .await?;
        let app = Self { name, git, updater };
        app.wait_for_image(desk, &format!("{registry}/web:1.4.2")).await?;
        Ok(app)
    }

    async fn wait_for_image(&self, desk: &Desk, image: &str) -> Result<()> {
        let deployment = ObjectRef::deployment("default", self.name);
        let has_image = |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image;
        desk.cluster1.wait_for(&deployment, has_image).await.map(drop)
    }

    /// Returns the variables of the plugin in the Application.
    async fn variables(&self, desk: &Desk) -> Result<Value> {
        let application = desk.hub.get(&ObjectRef::application(self.name)).await?;
        let application = application.context("the Application")?;
        Ok(application["spec"]["source"]["plugin"]["env"].clone())
    }

    fn run_git(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(self.git.path())
            .output()?;
        ensure!(output.status.success(), "git {}: {output:?}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn commits(&self) -> Result<usize> {
        Ok(self.run_git(&["log", "--oneline", "main"])?.lines().count())
    }
}

/// Starts the Image Updater, which asks this registry for tags.
fn start(desk: &Desk, program: &Path, registry: &str) -> Result<Process> {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("image-updater");
    fs::create_dir_all(&home)?;
    let registries = home.join("registries.conf");
    let entry = format!("registries:\n- {{name: ours, api_url: 'http://{registry}', prefix: '{registry}'}}\n");
    fs::write(&registries, entry)?;
    let kubeconfig = desk.hub.service_account_kubeconfig("argocd", ACCOUNT)?;
    let mut command = process::command(program, &home);
    command.args(["run", "--argocd-namespace=argocd", "--interval=5s", "--loglevel=debug"]);
    command.args(["--leader-election=false", "--health-probe-bind-address=0"]);
    command.arg("--registries-conf-path").arg(registries);
    command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", "argocd");
    command.env("ARGOCD_ASK_PASS_SOCK", home.join("ask-pass.sock"));
    Process::start(
        "argocd-image-updater",
        command,
        &desk.hub.logs().join("image-updater.log"),
    )
}

#[tokio::test]
#[ignore = "needs a checkout of Argo CD Image Updater in TESTBED_IMAGE_UPDATER"]
async fn image_updater_delivers_new_tags() -> Result<()> {
    let (program, manifests) = tokio::task::spawn_blocking(testbed::image_updater).await??;
    let desk = desk().await?;
    let json = "application/json";
    let registry = serve(BTreeMap::from([
        ("/v2/".to_owned(), (json, b"{}".to_vec())),
        (
            "/v2/web/tags/list".to_owned(),
            (
                json,
                br#"{"name":"web","tags":["1.4.1","1.4.2","1.4.3","1.5.0"]}"#.to_vec(),
            ),
        ),
    ]))?;
    let in_application = App::create(&desk, &registry, "image-in-app", "argocd").await?;
    let in_git = App::create(&desk, &registry, "image-in-git", "git").await?;
    // It pushes with the credentials that Argo CD has for the repository, to the branch that is checked out here.
    in_git.run_git(&["config", "receive.denyCurrentBranch", "updateInstead"])?;
    desk.hub
        .apply(&ObjectRef::secret("argocd", in_git.name).with(json!({
            "metadata": {"labels": {"argocd.argoproj.io/secret-type": "repository"}},
            "stringData": {"type": "git", "url": in_git.git.url(), "username": "git", "password": "unused"},
        })))
        .await?;

    desk.hub
        .apply_file(&manifests, &["--server-side", "--namespace=argocd"])?;
    let permissions: [&str; 2] = [
        "patch applications.argoproj.io --namespace=argocd",
        "list secrets --namespace=argocd",
    ];
    desk.hub.wait_for_permissions("argocd", ACCOUNT, &permissions).await?;
    desk.hub.wait_for_crds().await?;
    for app in [&in_application, &in_git] {
        desk.hub.create(&app.updater).await?;
    }
    let updater = start(&desk, &program, &registry)?;

    let (repository, image) = (format!("{registry}/web"), format!("{registry}/web:1.4.3"));
    for app in [&in_application, &in_git] {
        app.wait_for_image(&desk, &image).await?;
    }
    let variables = |tag: &str| {
        json!([
            {"name": "WEB_IMAGE", "value": repository},
            {"name": "WEB_TAG", "value": tag},
        ])
    };
    assert_eq!(in_application.variables(&desk).await?, variables("1.4.3"));
    assert_eq!(in_application.commits()?, 1);
    assert_eq!(in_git.variables(&desk).await?, variables("1.4.2"));
    let committed = in_git.run_git(&["show", "main:image-in-git/.argocd-source-image-in-git.yaml"])?;
    assert!(
        committed.contains("name: WEB_TAG\n") && committed.contains("value: 1.4.3\n"),
        "{committed}"
    );
    // A further round finds the same tag, and commits nothing.
    let log = updater.log().to_owned();
    wait::eventually("a further round", wait::DEADLINE, async || {
        fs::read_to_string(&log).ok()?.contains("skipping commit").then_some(())
    })
    .await?;
    assert_eq!(in_git.commits()?, 2);
    for app in [in_application, in_git] {
        desk.delete(app.name)?;
    }
    Ok(())
}
