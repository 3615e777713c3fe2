//! Argo CD: plugins in their cmp-servers, repo-server, controllers, Redis. The hub has one, and a managed cluster may.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::parts::Part;
use crate::ports;
use crate::process::{self, Process};

/// The namespace Argo CD is installed in.
pub(crate) const NAMESPACE: &str = "argocd";

/// Where a running Argo CD is, `127.0.0.1:…` each.
#[derive(Debug)]
pub(crate) struct Addresses {
    pub(crate) repo_server: String,
    pub(crate) redis: String,
}

/// Which parts of Argo CD to run, and how.
#[derive(Clone, Debug)]
pub struct ArgoCd {
    /// One cmp-server each.
    pub plugins: Vec<Plugin>,
    /// How often, in seconds, every Application is compared with Git.
    pub resync: u32,
    /// Whether `ApplicationSets` are served too, by a controller with the rights that Argo CD's manifests give it: it runs as
    /// the service account `argocd-applicationset-controller`. What it needs beyond them, tests give it.
    pub application_sets: bool,
    /// More environment for repo-server and the controllers.
    pub environment: Vec<(String, String)>,
}

/// A config management plugin.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// The folder with its plugin.yaml.
    pub config_dir: PathBuf,
    /// The folder with its programs, put in front of its `PATH`. Kustomize and Helm come next.
    pub path: PathBuf,
    /// More environment for it.
    pub environment: Vec<(String, String)>,
}

impl Plugin {
    /// A plugin with its plugin.yaml in one folder and its programs in another.
    #[must_use]
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
            environment: Vec::new(),
        }
    }
}

impl ArgoCd {
    /// Argo CD with one plugin.
    #[must_use]
    pub fn with_plugin(plugin: Plugin) -> Self {
        Self {
            plugins: vec![plugin],
            ..Self::default()
        }
    }

    /// The same with `ApplicationSets`, whose strategy `RollingSync` counts: without this it is passed over.
    #[must_use]
    pub fn with_rolling_sync(mut self) -> Self {
        self.application_sets = true;
        let switch = "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS";
        self.environment.push((switch.to_owned(), "true".to_owned()));
        self
    }

    /// Starts all of it where Argo CD's manifests are, waits until it answers, and says where it is.
    pub(crate) async fn start(&self, plane: &ControlPlane) -> Result<Addresses> {
        let sockets = folder(plane, "plugins")?;
        let redis = start_redis(plane)?;
        let (repo_server, port) = self.start_repo_server(plane, &sockets, &redis)?;
        for (index, plugin) in self.plugins.iter().enumerate() {
            start_plugin(plane, index, plugin, &sockets).await?;
        }
        let address = format!("127.0.0.1:{port}");
        self.start_application_controller(plane, &address, &redis)?;
        if self.application_sets {
            self.start_application_set_controller(plane, &address)?;
        }
        repo_server.until_listening(port).await?;
        plane.keep(repo_server);
        Ok(Addresses {
            repo_server: address,
            redis,
        })
    }

    fn start_repo_server(&self, plane: &ControlPlane, sockets: &Path, redis: &str) -> Result<(Process, u16)> {
        let port = ports::free()?;
        let nothing = folder(plane, "nothing")?;
        let mut command = role(plane, "argocd-repo-server")?;
        command.env("ARGOCD_PLUGINSOCKFILEPATH", sockets);
        command.env("ARGOCD_GPG_ENABLED", "false");
        command.env("ARGOCD_ASK_PASS_SOCK", nothing.with_file_name("ask-pass.sock"));
        command.env("ARGOCD_TLS_DATA_PATH", &nothing);
        command.env("ARGOCD_SSH_DATA_PATH", &nothing);
        command.arg("--disable-tls");
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
        // The destination https://kubernetes.default.svc is then that of the kubeconfig.
        command.env("ARGOCD_FAKE_IN_CLUSTER", "true");
        command.env("KUBECONFIG", plane.kubeconfig_path());
        // For `resource_tree` to read.
        command.env("REDIS_COMPRESSION", "none");
        command.arg(format!("--namespace={NAMESPACE}"));
        command.arg(format!("--repo-server={repo_server}"));
        command.arg("--repo-server-plaintext");
        command.arg(format!("--redis={redis}"));
        command.arg(format!("--metrics-port={}", ports::free()?));
        command.arg(format!("--app-resync={}", self.resync));
        command.arg("--app-resync-jitter=0");
        command.envs(self.environment.clone());
        plane.keep(start(plane, "argocd-application-controller", command)?);
        Ok(())
    }

    fn start_application_set_controller(&self, plane: &ControlPlane, repo_server: &str) -> Result<()> {
        let name = "argocd-applicationset-controller";
        let mut command = role(plane, name)?;
        command.env("KUBECONFIG", plane.service_account_kubeconfig(NAMESPACE, name)?);
        command.arg(format!("--namespace={NAMESPACE}"));
        command.arg(format!("--argocd-repo-server={repo_server}"));
        command.arg("--repo-server-plaintext");
        for listener in ["--metrics-addr", "--probe-addr", "--webhook-addr"] {
            command.arg(format!("{listener}=127.0.0.1:{}", ports::free()?));
        }
        command.envs(self.environment.clone());
        plane.keep(start(plane, name, command)?);
        Ok(())
    }
}

/// Starts a Redis that keeps nothing, and says where it is.
fn start_redis(plane: &ControlPlane) -> Result<String> {
    let port = ports::free()?;
    let mut command = process::command("redis-server", &folder(plane, "redis")?);
    command.args(["--bind", "127.0.0.1", "--save", ""]);
    command.args(["--port", &port.to_string()]);
    plane.keep(start(plane, "redis", command)?);
    Ok(format!("127.0.0.1:{port}"))
}

/// The tree of an Application's resources with their health, as Argo CD's API server answers when the UI asks for it: it reads
/// what the application controller keeps in Redis. Nothing before the controller has compared the Application once.
pub(crate) fn resource_tree(redis: &str, application: &str) -> Result<Option<Value>> {
    let mut redis = BufReader::new(TcpStream::connect(redis)?);
    // Argo CD puts the version of its cache behind each key.
    let get = format!("GET app|resources-tree|{application}|1.8.3\r\n");
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

/// Starts the cmp-server of a plugin, and waits until its socket is there.
async fn start_plugin(plane: &ControlPlane, index: usize, plugin: &Plugin, sockets: &Path) -> Result<()> {
    let config_dir = fs::canonicalize(&plugin.config_dir)
        .with_context(|| format!("no plugin configuration at {}", plugin.config_dir.display()))?;
    let name = format!("argocd-cmp-server-{index}");
    let mut command = role(plane, "argocd-cmp-server")?;
    // Its folder for temporary files is emptied at its start, so it cannot be that of others.
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
    plane.keep(process);
    Ok(())
}

/// A folder for a part of this Argo CD: every control plane of a testbed may have one.
fn folder(plane: &ControlPlane, name: &str) -> Result<PathBuf> {
    plane.bench.folder(&format!("{}/argocd/{name}", plane.name()))
}

/// Starts a part of this Argo CD, with a log that also says whose it is.
fn start(plane: &ControlPlane, name: &str, command: Command) -> Result<Process> {
    plane.bench.start(&format!("{name}-{}", plane.name()), command)
}

/// Argo CD is one program that takes its role from the name it is called by.
fn role(plane: &ControlPlane, name: &str) -> Result<Command> {
    let program = folder(plane, "bin")?.join(name);
    if !program.exists() {
        symlink(plane.bench.parts.program(Part::ArgoCd), &program)?;
    }
    let home = folder(plane, name)?;
    let mut command = process::command(program, &home);
    // Argo CD's image has kustomize and Helm on it, and its repo-server runs them for sources without a plugin.
    command.env("PATH", plane.bench.parts.path_with_tools(None)?);
    Ok(command)
}

/// Applies Argo CD's own manifests. The Deployments among them only lie there for tests to look at: nothing on the hub runs
/// pods, and on a managed cluster there is nothing in them.
pub(crate) fn install(plane: &ControlPlane) -> Result<()> {
    plane.apply_files(&[plane.bench.parts.argocd_core_install()], NAMESPACE)
}

/// Adds the few things that Argo CD's API server, which is not part of this installation, would otherwise add.
pub(crate) async fn complete(plane: &ControlPlane) -> Result<()> {
    plane
        .apply(&json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "argocd-secret", "namespace": NAMESPACE},
            "stringData": {"server.secretkey": "only for tests"},
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

fn count(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}
