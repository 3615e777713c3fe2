//! Argo CD: plugins in their cmp-servers, repo-server, controllers, Redis. The hub has one, and a managed cluster may have one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, random_token};
use crate::parts::{Part, argocd_version, on_path};
use crate::ports;
use crate::process::{self, Process};

/// The namespace of Argo CD.
pub(crate) const NAMESPACE: &str = "argocd";

/// Argo CD's own manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manifests {
    /// Without argocd-server and its pages.
    Core,
    /// The usual installation, with argocd-server.
    Full,
}

/// The addresses of a running Argo CD, `127.0.0.1:…` each.
#[derive(Debug)]
pub struct Addresses {
    /// The repo-server.
    pub repo_server: String,
    /// Redis, without a password.
    pub redis: String,
    /// The API server, if it runs.
    pub server: Option<String>,
}

/// The parts of Argo CD to run, with their options.
#[derive(Clone, Debug)]
pub struct ArgoCd {
    /// The plugins, with one cmp-server each.
    pub plugins: Vec<Plugin>,
    /// The interval, in seconds, of comparing every Application with Git.
    pub resync: u32,
    /// True if `ApplicationSets` are served too, by a controller with the permissions in Argo CD's manifests: it runs as the
    /// service account `argocd-applicationset-controller`. Tests grant further permissions.
    pub application_sets: bool,
    /// True if the source hydrator runs, with the commit server.
    pub hydrator: bool,
    /// True if argocd-server runs, which serves the API and the pages. The hub needs the full manifests of Argo CD.
    pub server: bool,
    /// More environment for repo-server and the controllers.
    pub environment: Vec<(String, String)>,
    /// The service account of the application controller; by default it has all permissions.
    pub account: Option<String>,
}

/// A config management plugin.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// The folder with its plugin.yaml.
    pub config_dir: PathBuf,
    /// The folder with its programs, the first in its `PATH`. Kustomize and Helm come next.
    pub path: PathBuf,
    /// More environment for it.
    pub environment: Vec<(String, String)>,
}

impl Plugin {
    /// Creates a plugin with its plugin.yaml in one folder and its programs in another.
    pub fn new(config_dir: impl Into<PathBuf>, path: impl Into<PathBuf>) -> Self {
        Self {
            config_dir: config_dir.into(),
            path: path.into(),
            environment: Vec::new(),
        }
    }
}

impl Default for ArgoCd {
    fn default() -> Self {
        Self {
            plugins: Vec::new(),
            resync: 10,
            application_sets: false,
            hydrator: false,
            server: false,
            environment: Vec::new(),
            account: None,
        }
    }
}

impl ArgoCd {
    /// Creates an Argo CD with one plugin.
    pub fn with_plugin(plugin: Plugin) -> Self {
        Self {
            plugins: vec![plugin],
            ..Self::default()
        }
    }

    /// Adds `ApplicationSets` with the strategy `RollingSync`, which is ignored otherwise.
    pub fn with_rolling_sync(mut self) -> Self {
        self.application_sets = true;
        let switch = "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS";
        self.environment.push((switch.to_owned(), "true".to_owned()));
        self
    }

    /// Starts all parts, after Argo CD's manifests are applied, waits until they answer, and returns their addresses.
    pub(crate) async fn start(&self, plane: &ControlPlane) -> Result<Addresses> {
        let sockets = sockets(plane)?;
        let redis = start_redis(plane)?;
        let (repo_server, port) = self.start_repo_server(plane, &sockets, &redis)?;
        for (index, plugin) in self.plugins.iter().enumerate() {
            let process = start_plugin(plane, &index.to_string(), plugin).await?;
            plane.keep(process);
        }
        let address = format!("127.0.0.1:{port}");
        self.start_application_controller(plane, &address, &redis)?;
        if self.application_sets {
            self.start_application_set_controller(plane, &address)?;
        }
        let server = if self.server {
            Some(self.start_server(plane, &address, &redis).await?)
        } else {
            None
        };
        repo_server.until_listening(port).await?;
        plane.keep(repo_server);
        Ok(Addresses {
            repo_server: address,
            redis,
            server,
        })
    }

    fn start_repo_server(&self, plane: &ControlPlane, sockets: &Path, redis: &str) -> Result<(Process, u16)> {
        let port = ports::free()?;
        let nothing = folder(plane, "nothing")?;
        let mut command = role(plane, "argocd-repo-server")?;
        let scripts = folder(plane, "scripts")?;
        let git_verify = plane.bench.parts.argocd_git_verify_wrapper();
        executable_copy(&git_verify, &scripts)?;
        executable_copy(&git_verify.with_file_name("gpg-wrapper.sh"), &scripts)?;
        command.env("PATH", plane.bench.parts.path_with_tools(Some(&scripts))?);
        command.env("ARGOCD_PLUGINSOCKFILEPATH", sockets);
        command.env("ARGOCD_GPG_ENABLED", "false");
        command.env("ARGOCD_GNUPGHOME", folder(plane, "gnupg-of-repo-server")?);
        command.env("ARGOCD_ASK_PASS_SOCK", nothing.with_file_name("ask-pass.sock"));
        command.env("ARGOCD_TLS_DATA_PATH", &nothing);
        command.env("ARGOCD_SSH_DATA_PATH", &nothing);
        command.arg(format!("--redis={redis}"));
        command.arg(format!("--port={port}"));
        command.arg("--address=127.0.0.1");
        command.arg(format!("--metrics-port={}", ports::free()?));
        command.arg("--metrics-address=127.0.0.1");
        command.envs(self.environment.clone());
        Ok((start(plane, "argocd-repo-server", command)?, port))
    }

    fn start_application_controller(&self, plane: &ControlPlane, repo_server: &str, redis: &str) -> Result<()> {
        let mut command = role(plane, "argocd-application-controller")?;
        // Makes the destination https://kubernetes.default.svc the API server of the kubeconfig.
        command.env("ARGOCD_FAKE_IN_CLUSTER", "true");
        let kubeconfig = match &self.account {
            Some(account) => plane.service_account_kubeconfig(NAMESPACE, account)?,
            None => plane.kubeconfig_path().to_owned(),
        };
        command.env("KUBECONFIG", kubeconfig);
        // `resource_tree` reads the uncompressed value.
        command.env("REDIS_COMPRESSION", "none");
        command.arg(format!("--namespace={NAMESPACE}"));
        command.arg(format!("--repo-server={repo_server}"));
        command.arg(format!("--redis={redis}"));
        command.arg(format!("--metrics-port={}", ports::free()?));
        command.arg(format!("--app-resync={}", self.resync));
        command.arg("--app-resync-jitter=0");
        if self.hydrator {
            let address = self.start_commit_server(plane)?;
            command.args(["--hydrator-enabled", "--commit-server", &address]);
        }
        command.envs(self.environment.clone());
        plane.keep(start(plane, "argocd-application-controller", command)?);
        Ok(())
    }

    /// Starts the commit server, which has no credentials, and returns its address.
    fn start_commit_server(&self, plane: &ControlPlane) -> Result<String> {
        let port = ports::free()?;
        let mut command = role(plane, "argocd-commit-server")?;
        command.env("ARGOCD_GNUPGHOME", folder(plane, "gnupg-of-commit-server")?);
        command.arg(format!("--port={port}"));
        command.arg(format!("--metrics-port={}", ports::free()?));
        command.args(["--address=127.0.0.1", "--metrics-address=127.0.0.1"]);
        command.envs(self.environment.clone());
        plane.keep(start(plane, "argocd-commit-server", command)?);
        Ok(format!("127.0.0.1:{port}"))
    }

    /// Starts argocd-server, and returns its address. It runs from the released program of Argo CD if that is on the `PATH`: the Go
    /// module has no pages.
    async fn start_server(&self, plane: &ControlPlane, repo_server: &str, redis: &str) -> Result<String> {
        let name = "argocd-server";
        let port = ports::free()?;
        let mut command = match released_program() {
            Some(program) => role_of(plane, name, &program)?,
            None => role(plane, name)?,
        };
        command.env("ARGOCD_FAKE_IN_CLUSTER", "true");
        command.env("KUBECONFIG", plane.service_account_kubeconfig(NAMESPACE, name)?);
        command.env("REDIS_COMPRESSION", "none");
        command.env("ARGOCD_SERVER_ENABLE_PROXY_EXTENSION", "true");
        command.env("ARGOCD_HYDRATOR_ENABLED", self.hydrator.to_string());
        command.arg(format!("--namespace={NAMESPACE}"));
        command.arg(format!("--repo-server={repo_server}"));
        command.arg(format!("--redis={redis}"));
        command.arg(format!("--port={port}"));
        command.arg(format!("--metrics-port={}", ports::free()?));
        command.args(["--insecure", "--address=127.0.0.1", "--metrics-address=127.0.0.1"]);
        command.envs(self.environment.clone());
        let process = start(plane, name, command)?;
        process.until_listening(port).await?;
        plane.keep(process);
        Ok(format!("127.0.0.1:{port}"))
    }

    fn start_application_set_controller(&self, plane: &ControlPlane, repo_server: &str) -> Result<()> {
        let name = "argocd-applicationset-controller";
        let mut command = role(plane, name)?;
        command.env("KUBECONFIG", plane.service_account_kubeconfig(NAMESPACE, name)?);
        command.arg(format!("--namespace={NAMESPACE}"));
        command.arg(format!("--argocd-repo-server={repo_server}"));
        for listener in ["--metrics-addr", "--probe-addr", "--webhook-addr"] {
            command.arg(format!("{listener}=127.0.0.1:{}", ports::free()?));
        }
        command.envs(self.environment.clone());
        plane.keep(start(plane, name, command)?);
        Ok(())
    }
}

/// Starts the notifications controller, with all permissions.
pub(crate) fn start_notifications(plane: &ControlPlane) -> Result<Process> {
    let name = "argocd-notifications";
    let mut command = role(plane, name)?;
    command.env("KUBECONFIG", plane.kubeconfig_path());
    command.arg(format!("--namespace={NAMESPACE}"));
    command.arg(format!("--metrics-port={}", ports::free()?));
    start(plane, name, command)
}

/// Returns the command line of Argo CD on the `PATH`, if it is of the version that the testbed runs.
fn released_program() -> Option<PathBuf> {
    let program = on_path("argocd", &std::env::var_os("PATH")?)?;
    let output = Command::new(&program)
        .args(["version", "--client", "--short"])
        .output()
        .ok()?;
    let version = format!("argocd: v{}.", argocd_version());
    String::from_utf8_lossy(&output.stdout)
        .starts_with(&version)
        .then_some(program)
}

/// Starts a Redis without persistence, and returns its address.
fn start_redis(plane: &ControlPlane) -> Result<String> {
    let port = ports::free()?;
    let mut command = process::command("redis-server", &folder(plane, "redis")?);
    command.args(["--bind", "127.0.0.1", "--save", ""]);
    command.args(["--port", &port.to_string()]);
    plane.keep(start(plane, "redis", command)?);
    Ok(format!("127.0.0.1:{port}"))
}

/// Returns the resource tree of an Application with its health, as Argo CD's API server returns it to the UI: it reads the state
/// that the application controller keeps in Redis. Returns `None` before the controller has compared the Application once.
pub fn resource_tree(redis: &str, application: &str) -> Result<Option<Value>> {
    let mut redis = BufReader::new(TcpStream::connect(redis)?);
    // Argo CD appends the version of its cache to each key.
    let key = format!("app|resources-tree|{application}|1.8.3");
    // As Argo CD sends it: the proxy of argocd-agent knows only that form.
    let get = format!("*2\r\n$3\r\nget\r\n${}\r\n{key}\r\n", key.len());
    redis.get_mut().write_all(get.as_bytes())?;
    let mut length = String::new();
    redis.read_line(&mut length)?;
    let length = length.trim().strip_prefix('$').context("Redis sends no text")?;
    let Ok(length) = usize::try_from(length.parse::<i64>()?) else {
        return Ok(None);
    };
    let mut tree = vec![0; length];
    redis.read_exact(&mut tree)?;
    Ok(Some(serde_json::from_slice(&tree)?))
}

/// Starts the cmp-server of a plugin, and waits until its socket exists.
pub(crate) async fn start_plugin(plane: &ControlPlane, id: &str, plugin: &Plugin) -> Result<Process> {
    let sockets = &sockets(plane)?;
    let config_dir = fs::canonicalize(&plugin.config_dir)
        .with_context(|| format!("no plugin configuration at {}", plugin.config_dir.display()))?;
    let name = format!("argocd-cmp-server-{id}");
    let mut command = role(plane, "argocd-cmp-server")?;
    // It empties its folder for temporary files at its start, so it cannot share one.
    command.env("TMPDIR", folder(plane, &name)?);
    command.env("ARGOCD_PLUGINSOCKFILEPATH", sockets);
    let programs = fs::canonicalize(&plugin.path);
    let programs = programs.with_context(|| format!("no plugin programs at {}", plugin.path.display()))?;
    command.env("PATH", plane.bench.parts.path_with_tools(Some(&programs))?);
    command.arg("--config-dir-path").arg(config_dir);
    command.envs(plugin.environment.clone());
    let before = count(sockets)?;
    let process = start(plane, &name, command)?;
    process
        .until_ready(async || count(sockets).is_ok_and(|sockets| sockets > before))
        .await?;
    Ok(process)
}

/// Creates the folder of the sockets, by which the repo-server finds the plugins.
pub(crate) fn sockets(plane: &ControlPlane) -> Result<PathBuf> {
    folder(plane, "plugins")
}

/// Creates a folder for a part of this Argo CD: every control plane of a testbed may have one.
fn folder(plane: &ControlPlane, name: &str) -> Result<PathBuf> {
    plane.bench.folder(&format!("{}/argocd/{name}", plane.name()))
}

/// Starts a part of this Argo CD, with a log named after its control plane.
fn start(plane: &ControlPlane, name: &str, command: Command) -> Result<Process> {
    plane.bench.start(&format!("{name}-{}", plane.name()), command)
}

/// Returns a command for a role of Argo CD, which is one program that selects its role by its own name.
fn role(plane: &ControlPlane, name: &str) -> Result<Command> {
    role_of(plane, name, plane.bench.parts.program(Part::ArgoCd))
}

/// Returns a command for a role of this program of Argo CD.
fn role_of(plane: &ControlPlane, name: &str, argocd: &Path) -> Result<Command> {
    let program = folder(plane, "bin")?.join(name);
    if !program.exists() {
        symlink(argocd, &program)?;
    }
    let home = folder(plane, name)?;
    let mut command = process::command(program, &home);
    // Argo CD's image has kustomize and Helm, and its repo-server runs them for sources without a plugin.
    command.env("PATH", plane.bench.parts.path_with_tools(None)?);
    Ok(command)
}

/// Applies Argo CD's own manifests. Their Deployments exist only to be read: Pods are empty, or there are none.
pub(crate) fn install(plane: &ControlPlane, manifests: Manifests) -> Result<()> {
    let file = match manifests {
        Manifests::Core => "core-install.yaml",
        Manifests::Full => "install.yaml",
    };
    plane.apply_files(&[plane.bench.parts.argocd_manifests().join(file)], NAMESPACE)
}

/// Adds the objects that Argo CD's API server would create, which may not run.
pub(crate) async fn complete(plane: &ControlPlane) -> Result<()> {
    plane
        .apply(&json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "argocd-secret", "namespace": NAMESPACE},
            "stringData": {"server.secretkey": random_token()?},
        }))
        .await?;
    plane
        .apply(&json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": "default", "namespace": NAMESPACE},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"server": "*", "namespace": "*"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            },
        }))
        .await?;
    Ok(())
}

/// Copies a script, which Go's cache of modules keeps without the permission to run it.
fn executable_copy(script: &Path, folder: &Path) -> Result<()> {
    let copy = folder.join(script.file_name().unwrap_or_default());
    fs::copy(script, &copy).with_context(|| format!("failed to copy {}", script.display()))?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn count(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}
