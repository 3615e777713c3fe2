//! A root folder with the program and nothing else.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use tempfile::TempDir;
use testbed::{Hub, process};

/// The user of the image.
const USER: &str = "999";

const PROGRAM: &str = "usr/local/bin/argocd-ocm-cmp";

/// The folder that takes the place of `/`.
pub(crate) struct Container {
    root: TempDir,
}

impl Container {
    /// With the program that `TESTBED_PROGRAM` names.
    pub(crate) fn new() -> Result<Self> {
        let program = std::env::var_os("TESTBED_PROGRAM").context("TESTBED_PROGRAM names no program of an image")?;
        let root = tempfile::tempdir()?;
        let file = root.path().join(PROGRAM);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::copy(program, file)?;
        // Others than we must get at it.
        fs::set_permissions(root.path(), Permissions::from_mode(0o755))?;
        Ok(Self { root })
    }

    /// Puts a file there that everybody can read.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.root.path().join(path);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        Ok(fs::write(file, text)?)
    }

    /// A command that runs the program as the user of the image, with no environment. It has the right to leave the root behind that
    /// is ours, and no other.
    pub(crate) fn command(&self) -> Command {
        let mut command = process::command("setpriv", self.root.path());
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        command.args([
            "--inh-caps",
            "-all,+sys_chroot",
            "--ambient-caps",
            "-all,+sys_chroot",
            "--no-new-privs",
        ]);
        // Changing the user has taken back that it is killed when we die.
        command.args(["--pdeathsig", "KILL", "--", "chroot"]);
        command.arg(self.root.path()).arg(format!("/{PROGRAM}"));
        command.env_remove("HOME").env_remove("TMPDIR");
        command
    }
}

/// The certificate by which one knows the hub, PEM.
pub(crate) fn authority(hub: &Hub) -> Result<String> {
    let kubeconfig: Value = serde_json::from_str(&fs::read_to_string(hub.kubeconfig_path())?)?;
    let file = kubeconfig["clusters"][0]["cluster"]["certificate-authority"].as_str();
    Ok(fs::read_to_string(file.context("a file")?)?)
}

/// The kubeconfig of the hub by another name, for a container that has its certificate as `/ca.crt`.
pub(crate) fn kubeconfig(hub: &Hub, name: &str) -> Result<String> {
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(hub.kubeconfig_path())?)?;
    let port = hub.url().rsplit_once(':').context("a port")?.1;
    kubeconfig["clusters"][0]["cluster"] = json!({
        "server": format!("https://{name}:{port}"),
        "certificate-authority": "/ca.crt",
        // For which its certificate is.
        "tls-server-name": "localhost",
    });
    Ok(kubeconfig.to_string())
}
