//! The shared environment: one hub with Argo CD and the plugin, one managed cluster, and the shipped Application.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{
    ArgoCd, Arguments, ControlPlane, GitRepository, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, Plugin,
};
use tokio::sync::OnceCell;

use crate::controller::Controller;
use crate::documents::documents;
use crate::policy::POLICY;

/// The plugin as a second sidecar with a policy, for Applications that name it.
pub(crate) const PLUGIN_WITH_POLICY: &str = "argocd-ocm-cmp-with-policy";

/// The hub, its cluster `cluster1` and the controller.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) cluster1: ManagedCluster,
    pub(crate) controller: Controller,
}

/// Returns the stage that the tests of this program share. The first call starts it; it ends with the program.
pub(crate) async fn stage() -> Result<&'static Stage> {
    static STAGE: OnceCell<Stage> = OnceCell::const_new();
    STAGE.get_or_try_init(set_up).await
}

async fn set_up() -> Result<Stage> {
    let hub = hub_with("proj.yaml cm_plugin.yaml").await?;
    let mut argocd = argocd(&hub, "plugin").await?;
    argocd
        .plugins
        .push(with_policy(&argocd.plugins[0], PLUGIN_WITH_POLICY, POLICY)?);
    let (cluster1, started, controller) = tokio::join!(
        hub.add_managed_cluster("cluster1", ManagedClusterOptions::default()),
        hub.start_argocd(argocd),
        Controller::start(&hub)
    );
    started?;
    Ok(Stage {
        cluster1: cluster1?,
        controller: controller?,
        hub,
    })
}

/// Creates a hub with these files applied as documented for new users, and deploy/argocd_cm.yaml.
pub(crate) async fn hub_with(files: &str) -> Result<Hub> {
    let hub = Hub::start().await?;
    apply_shipped(&hub, files)?;
    Ok(hub)
}

/// Applies these files as documented for new users, and deploy/argocd_cm.yaml.
pub(crate) fn apply_shipped(hub: &Hub, files: &str) -> Result<()> {
    apply(hub, files)?;
    apply_server_side(hub, "deploy/argocd_cm.yaml")
}

/// Applies shipped files, named with spaces between them.
pub(crate) fn apply(plane: &ControlPlane, files: &str) -> Result<()> {
    for file in files.split_whitespace() {
        plane.apply_file(&shipped(file), &[])?;
    }
    Ok(())
}

/// Applies a shipped file that has only our fields of an object of Argo CD.
pub(crate) fn apply_server_side(hub: &Hub, file: &str) -> Result<()> {
    hub.apply_file(&shipped(file), &["--server-side", "--field-manager=argocd-ocm-cmp"])
}

/// Returns Argo CD with the plugin, its plugin.yaml read from the hub as the sidecar would mount it, and written to a folder of
/// that name.
pub(crate) async fn argocd(hub: &Hub, folder: &str) -> Result<ArgoCd> {
    let config_map = hub.read(&ObjectRef::config_map("argocd", "argocd-ocm-cmp")).await?;
    let config = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&config)?;
    let plugin = config_map["data"]["plugin.yaml"]
        .as_str()
        .context("no key plugin.yaml")?;
    fs::write(config.join("plugin.yaml"), plugin)?;

    let program = program();
    let programs = program.parent().context("the program has no parent folder")?;
    Ok(ArgoCd {
        environment: vec![
            // An error is shown at the first refresh, not after three minutes.
            ("ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS".to_owned(), "0".to_owned()),
            // On a busy machine, Argo CD's cache is seconds old: after the usual two, it may take a work's health before the change for
            // that after it, and begin the next wave.
            ("ARGOCD_SYNC_WAVE_DELAY".to_owned(), "10".to_owned()),
        ],
        ..ArgoCd::with_plugin(Plugin::new(config, programs))
    })
}

/// Returns the plugin with another name and with a policy.
pub(crate) fn with_policy(plugin: &Plugin, name: &str, policy_text: &str) -> Result<Plugin> {
    let text = fs::read_to_string(plugin.config_dir.join("plugin.yaml"))?;
    let config = plugin.config_dir.with_file_name(name);
    fs::create_dir_all(&config)?;
    let renamed = text.replace("name: argocd-ocm-cmp", &format!("name: {name}"));
    fs::write(config.join("plugin.yaml"), renamed)?;
    let policy = config.join("policy.yaml");
    fs::write(&policy, policy_text)?;
    Ok(Plugin {
        environment: vec![("ARGOCD_OCM_CMP_POLICY_FILE".to_owned(), policy.display().to_string())],
        ..Plugin::new(config, &plugin.path)
    })
}

/// Returns the program of the sidecar and of the controller: the one from the image if `TESTBED_PROGRAM` is set.
pub(crate) fn program() -> PathBuf {
    testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
}

/// The result of a run: its exit code, standard output and standard error.
pub(crate) type Outcome = (Option<i32>, String, String);

/// Runs the program in a folder, with the permissions of a kubeconfig.
pub(crate) fn run(folder: &Path, kubeconfig: Option<&Path>, words: &(impl Arguments + ?Sized)) -> Result<Outcome> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    command.args(words.words()).current_dir(folder).env_clear();
    if let Some(kubeconfig) = kubeconfig {
        command.arg("--kubeconfig").arg(kubeconfig);
    }
    let output = command.output()?;
    let stdout = String::from_utf8(output.stdout)?;
    Ok((output.status.code(), stdout, String::from_utf8(output.stderr)?))
}

/// Returns the path of a file or folder of this repository.
pub(crate) fn shipped(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the objects of a shipped file.
pub(crate) fn shipped_objects(file: &str) -> Result<Vec<Value>> {
    documents(&fs::read_to_string(shipped(file))?)
}

/// Returns the only object of a shipped file.
pub(crate) fn shipped_object(file: &str) -> Result<Value> {
    let mut objects = shipped_objects(file)?;
    ensure!(objects.len() == 1, "{file} holds {} objects", objects.len());
    Ok(objects.remove(0))
}

/// Returns the shipped Application with another name and the folder `name` of another repository.
pub(crate) fn application(name: &str, git: &GitRepository) -> Result<Value> {
    let mut application = shipped_object("app.yaml")?;
    application["metadata"]["name"] = json!(name);
    application["spec"]["source"]["repoURL"] = json!(git.url());
    application["spec"]["source"]["path"] = json!(name);
    application["spec"]["destination"]["namespace"] = json!("default");
    Ok(application)
}
