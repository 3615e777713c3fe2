//! Tests with a hub that has argocd-server and its users' command line, the source hydrator, and the options of Argo CD for monorepos.

mod commands;
mod image_updater;
mod ways_in;

use crate::policy::POLICY;
use crate::stage::{PLUGIN_WITH_POLICY, application, apply_shipped, argocd, program, with_policy};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testbed::{
    Arguments, Borrowed, GitRepository, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, Part, Parts, Shared,
};

/// The hub, its cluster `cluster1`, and the folder with the session of the command line.
struct Desk {
    hub: Hub,
    cluster1: ManagedCluster,
    /// The ID of the key with which the commit server signs.
    signing_key: String,
    home: PathBuf,
    _keys: TempDir,
}

/// The result of a command.
#[derive(Debug)]
struct Outcome {
    code: Option<i32>,
    output: String,
    errors: String,
}

/// Returns the desk that the tests here share.
async fn desk() -> Result<Borrowed<Desk>> {
    static DESK: Shared<Desk> = Shared::new();
    DESK.borrow(|| Box::pin(set_up())).await
}

async fn set_up() -> Result<Desk> {
    let hub = Hub::start_complete().await?;
    apply_shipped(&hub, "proj.yaml cm_plugin.yaml")?;
    let mut argocd = argocd(&hub, "plugin-of-the-desk").await?;
    let with_policy = with_policy(&argocd.plugins[0], PLUGIN_WITH_POLICY, POLICY)?;
    argocd.plugins.push(with_policy);
    argocd.server = true;
    argocd.hydrator = true;
    let keys = tempfile::tempdir()?;
    let signing_key = create_signing_key(keys.path())?;
    let of_keys = |name: &str| keys.path().join(name).display().to_string();
    argocd.environment.extend([
        ("ARGOCD_GPG_ENABLED".to_owned(), "true".to_owned()),
        ("ARGOCD_GPG_DATA_PATH".to_owned(), of_keys("public")),
        ("ARGOCD_COMMIT_SERVER_SIGNING_KEY_PATH".to_owned(), of_keys("private")),
    ]);
    for (name, value) in [
        ("ARGOCD_REPO_SERVER_PLUGIN_USE_MANIFEST_GENERATE_PATHS", "true"),
        ("ARGOCD_REPO_SERVER_PLUGIN_TAR_EXCLUSIONS", "**/*.iso"),
    ] {
        argocd.environment.push((name.to_owned(), value.to_owned()));
    }
    let (cluster1, started) = tokio::join!(
        hub.add_managed_cluster("cluster1", ManagedClusterOptions::default()),
        hub.start_argocd(argocd)
    );
    started?;
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("home-of-the-desk");
    fs::create_dir_all(&home)?;
    let desk = Desk {
        cluster1: cluster1?,
        hub,
        signing_key,
        home,
        _keys: keys,
    };
    let password = desk.hub.admin_password().await?;
    let server = desk.hub.argocd_server().context("argocd-server runs")?;
    desk.argocd(&format!(
        "login {server} --plaintext --username=admin --password={password}"
    ))?;
    Ok(desk)
}

/// Creates a key of GnuPG in a folder, its private part in the file `private` and its public part below `public`. Returns its ID.
fn create_signing_key(folder: &Path) -> Result<String> {
    let home = folder.join("home");
    fs::DirBuilder::new().mode(0o700).create(&home)?;
    let gpg = |arguments: &[&str]| {
        let output = Command::new("gpg")
            .args(["--batch", "--homedir"])
            .arg(&home)
            .args(arguments)
            .output()
            .context("gpg does not run")?;
        ensure!(output.status.success(), "gpg {}: {output:?}", arguments.join(" "));
        Ok(output.stdout)
    };
    let user = "commit-server@example.com";
    gpg(&[
        "--passphrase",
        "",
        "--quick-generate-key",
        user,
        "ed25519",
        "sign",
        "never",
    ])?;
    let listed = String::from_utf8(gpg(&["--with-colons", "--list-keys", user])?)?;
    let of_key = listed.lines().find(|line| line.starts_with("pub:")).context("a key")?;
    let id = of_key.split(':').nth(4).context("the ID of a key")?.to_owned();
    fs::write(folder.join("private"), gpg(&["--armor", "--export-secret-keys", user])?)?;
    fs::create_dir(folder.join("public"))?;
    fs::write(folder.join("public").join(&id), gpg(&["--armor", "--export", user])?)?;
    Command::new("gpgconf")
        .arg("--homedir")
        .arg(&home)
        .args(["--kill", "all"])
        .status()?;
    Ok(id)
}

impl Desk {
    /// Runs the command line of Argo CD.
    fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Result<Outcome> {
        let output = Command::new(Parts::ensure()?.program(Part::ArgoCd))
            .args(arguments.words())
            .env("ARGOCD_BINARY_NAME", "argocd")
            .env("HOME", &self.home)
            .output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Outcome {
            code: output.status.code(),
            output: text(output.stdout),
            errors: text(output.stderr),
        })
    }

    /// Deletes an Application as a user does, and waits until it is gone.
    fn delete(&self, name: &str) -> Result<()> {
        self.argocd(&["app", "delete", name, "--yes", "--wait"]).map(drop)
    }

    /// Deletes an Application without its works.
    async fn remove(&self, application: &ObjectRef) -> Result<()> {
        let without_finalizers = json!({"metadata": {"finalizers": null}});
        self.hub.patch(application, &without_finalizers).await?;
        self.hub.delete(application).await.map(drop)
    }

    /// Returns the names of the findings of `doctor` about Applications.
    fn findings(&self) -> Result<String> {
        let findings = Command::new(program())
            .args(["doctor", "applications", "-o", "name", "--kubeconfig"])
            .arg(self.hub.kubeconfig_path())
            .output()?;
        Ok(String::from_utf8(findings.stdout)?)
    }

    /// Runs the command line of Argo CD, and returns its output. An exit code other than 0 is an error.
    fn argocd(&self, arguments: &(impl Arguments + ?Sized)) -> Result<String> {
        let outcome = self.run(arguments)?;
        ensure!(
            outcome.code == Some(0),
            "argocd {}: {outcome:?}",
            arguments.words().join(" ")
        );
        Ok(outcome.output)
    }

    /// Syncs the Application, and waits with Argo CD's command until the clusters report healthy objects.
    fn sync(&self, application: &str) -> Result<()> {
        self.argocd(&["app", "sync", application, "--timeout=600"])?;
        self.wait(application)
    }

    fn wait(&self, application: &str) -> Result<()> {
        self.argocd(&format!(
            "app wait {application} --sync --health --operation --timeout=600"
        ))
        .map(drop)
    }

    /// Creates the shipped Application with this name, the folder of its name, and changes. It is synced by hand only.
    async fn create(&self, name: &str, git: &GitRepository, change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut application = application(name, git)?;
        application["spec"]["syncPolicy"] = Value::Null;
        change(&mut application);
        self.hub.create_application(&application).await.map(drop)
    }

    /// Returns the data of a ConfigMap in namespace `default` of `cluster1`.
    async fn data(&self, config_map: &str) -> Result<Value> {
        let object = self.cluster1.get(&ObjectRef::config_map("default", config_map)).await?;
        Ok(object.with_context(|| format!("no ConfigMap {config_map}"))?["data"].clone())
    }
}

/// Returns a ConfigMap with a colour.
fn colour(name: &str, colour: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  colour: {colour}\n")
}
