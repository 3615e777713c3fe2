//! A root folder with only the program.

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

/// The folder that replaces `/`.
pub(crate) struct Container {
    root: TempDir,
}

impl Container {
    /// Creates it with the program in `TESTBED_PROGRAM`.
    pub(crate) fn new() -> Result<Self> {
        let program = std::env::var_os("TESTBED_PROGRAM").context("TESTBED_PROGRAM names no program of an image")?;
        let root = tempfile::tempdir()?;
        let file = root.path().join(PROGRAM);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::copy(program, file)?;
        // Another user must be able to read it.
        fs::set_permissions(root.path(), Permissions::from_mode(0o755))?;
        Ok(Self { root })
    }

    /// Writes a file that every user can read.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.root.path().join(path);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        Ok(fs::write(file, text)?)
    }

    /// Returns a command that runs the program as the user of the image, with an empty environment. It has the capability to
    /// change its root, and no other.
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
        // Changing the user resets the parent-death signal.
        command.args(["--pdeathsig", "KILL", "--", "chroot"]);
        command.arg(self.root.path()).arg(format!("/{PROGRAM}"));
        command.env_remove("HOME").env_remove("TMPDIR");
        command
    }
}

/// Returns the CA certificate of the hub, PEM.
pub(crate) fn authority(hub: &Hub) -> Result<String> {
    let kubeconfig: Value = serde_json::from_str(&fs::read_to_string(hub.kubeconfig_path())?)?;
    let file = kubeconfig["clusters"][0]["cluster"]["certificate-authority"].as_str();
    Ok(fs::read_to_string(file.context("a file")?)?)
}

/// Returns the kubeconfig of the hub with another host name, for a container that has its certificate as `/ca.crt`.
pub(crate) fn kubeconfig(hub: &Hub, name: &str) -> Result<String> {
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(hub.kubeconfig_path())?)?;
    let port = hub.url().rsplit_once(':').context("a port")?.1;
    kubeconfig["clusters"][0]["cluster"] = json!({
        "server": format!("https://{name}:{port}"),
        "certificate-authority": "/ca.crt",
        // The name in its certificate.
        "tls-server-name": "localhost",
    });
    Ok(kubeconfig.to_string())
}
