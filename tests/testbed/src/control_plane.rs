//! An API server with its controllers: the hub has one, and so has every managed cluster.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::runtime::wait::{Condition, conditions};

use crate::arguments::Arguments;
use crate::certificates;
use crate::parts::Part;
use crate::ports;
use crate::process::{self, Process};
use crate::wait::{self, DEADLINE};
use crate::workbench::Workbench;

mod access;
mod audit;
mod objects;

pub use objects::Account;

pub(crate) use access::{client as client_of, random_token};

/// A running API server, with operations on it.
#[derive(Debug)]
pub struct ControlPlane {
    name: String,
    url: String,
    kubeconfig: PathBuf,
    controllers: Mutex<Vec<Process>>,
    apiserver_command: Command,
    apiserver: Mutex<Option<Process>>,
    pub(crate) bench: Arc<Workbench>,
}

impl ControlPlane {
    /// Starts an API server on its own prefix of an etcd, and waits until it is ready.
    pub(crate) async fn start(bench: &Arc<Workbench>, name: &str, etcd: &str) -> Result<Self> {
        let folder = bench.folder(name)?;
        let port = ports::free()?;
        let url = format!("https://127.0.0.1:{port}");
        let token = access::random_token()?;
        let tokens = folder.join("tokens.csv");
        fs::write(&tokens, format!("{token},admin,admin,\"system:masters\"\n"))?;
        let serving = bench.authority.serving(folder.clone())?;
        let token_keys = certificates::token_keys(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        fs::write(
            &kubeconfig,
            access::kubeconfig_for(name, &url, bench.authority.certificate(), &token),
        )?;

        let mut command = bench.command(Part::KubeApiserver);
        command.arg(format!("--etcd-servers={etcd}"));
        // Several API servers share one etcd: that saves a process and its start for every cluster.
        command.arg(format!("--etcd-prefix=/{name}"));
        command.args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
        command.arg("--tls-cert-file").arg(&serving.certificate);
        command.arg("--tls-private-key-file").arg(&serving.key);
        command.arg("--client-ca-file").arg(bench.authority.certificate());
        command.arg("--service-account-key-file").arg(&token_keys.public);
        command
            .arg("--service-account-signing-key-file")
            .arg(&token_keys.private);
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        command.arg("--token-auth-file").arg(&tokens);
        command.args(["--authorization-mode=RBAC", "--allow-privileged=true"]);
        command.args([
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
        ]);
        // Pods need no token, and no controller would create one.
        command.arg("--disable-admission-plugins=ServiceAccount");
        audit::turn_on(&mut command, &folder)?;
        let plane = Self {
            name: name.to_owned(),
            url,
            kubeconfig,
            controllers: Mutex::default(),
            apiserver_command: command,
            apiserver: Mutex::default(),
            bench: Arc::clone(bench),
        };
        plane.start_apiserver().await?;
        Ok(plane)
    }

    /// Kills the API server.
    pub(crate) fn stop_apiserver(&self) {
        *self.apiserver.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Starts the API server, and waits until it is ready.
    pub(crate) async fn start_apiserver(&self) -> Result<()> {
        let command = self.bench.same(&self.apiserver_command);
        let apiserver = self.bench.start(&format!("kube-apiserver-{}", self.name), command)?;
        let client = self.client().await?;
        apiserver.until_ready(async || is_ready(&client).await).await?;
        *self.apiserver.lock().unwrap_or_else(PoisonError::into_inner) = Some(apiserver);
        Ok(())
    }

    /// Starts kube-controller-manager with the given controllers, in the syntax of its `--controllers`.
    pub(crate) fn start_controllers(&self, controllers: &str) -> Result<()> {
        let mut command = self.bench.command(Part::KubeControllerManager);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
        command.arg(format!("--secure-port={}", ports::free()?));
        command.arg(format!("--controllers={controllers}"));
        // On a busy machine kwok's heartbeats are late. After 50 s without one all Pods of the node would become not ready, and
        // kwok makes a Pod ready only once.
        command.arg("--node-monitor-grace-period=24h");
        command
            .arg("--cluster-signing-cert-file")
            .arg(self.bench.authority.certificate());
        command
            .arg("--cluster-signing-key-file")
            .arg(self.bench.authority.key());
        let process = self
            .bench
            .start(&format!("kube-controller-manager-{}", self.name), command)?;
        self.keep(process);
        Ok(())
    }

    /// Keeps a process of this control plane running for the lifetime of the control plane.
    pub(crate) fn keep(&self, process: Process) {
        self.controllers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(process);
    }

    /// Returns the name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of the API server, `https://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a kubeconfig with all permissions.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the folder with the log of every process of this testbed.
    pub fn logs(&self) -> PathBuf {
        self.bench.logs()
    }

    /// Creates a client with all permissions. It belongs to the runtime of the caller, so that several tests with a runtime each
    /// can share one testbed.
    pub async fn client(&self) -> Result<Client> {
        access::client(&self.kubeconfig).await
    }

    /// Creates a kubeconfig for a service account, with only its own permissions.
    pub fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token = self.kubectl(&format!("create token --duration=12h --namespace={namespace} {name}"))?;
        let folder = self.bench.folder(&self.name)?;
        let kubeconfig = folder.join(format!("kubeconfig-{namespace}-{name}"));
        fs::write(
            &kubeconfig,
            access::kubeconfig_for(&self.name, &self.url, self.bench.authority.certificate(), token.trim()),
        )?;
        Ok(kubeconfig)
    }

    /// Waits until a service account has each of these permissions, in the syntax of `kubectl auth can-i`: they are effective
    /// with a delay.
    pub async fn wait_for_permissions(&self, namespace: &str, account: &str, permissions: &[&str]) -> Result<()> {
        for permission in permissions {
            let question = format!("auth can-i {permission} --as=system:serviceaccount:{namespace}:{account}");
            let counts = async || self.kubectl(&question).ok();
            wait::eventually(&format!("{account} may {permission}"), DEADLINE, counts).await?;
        }
        Ok(())
    }

    /// Runs kubectl with all permissions and returns its output. Fails with its stderr.
    pub fn kubectl(&self, arguments: &(impl Arguments + ?Sized)) -> Result<String> {
        self.kubectl_with_input(arguments, "")
    }

    /// Runs kubectl with text on standard input, such as manifests for `apply -f -`.
    pub fn kubectl_with_input(&self, arguments: &(impl Arguments + ?Sized), input: &str) -> Result<String> {
        let arguments = arguments.words();
        let output = self.run_kubectl(&arguments, input)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "kubectl {} failed: {}",
            arguments.join(" "),
            errors.trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the program under test with all permissions and returns its output. Fails with its stderr.
    pub fn run(&self, program: impl AsRef<OsStr>, arguments: &(impl Arguments + ?Sized)) -> Result<String> {
        let mut command = process::command(program, &self.bench.folder("home")?);
        command
            .args(arguments.words())
            .arg("--kubeconfig")
            .arg(&self.kubeconfig);
        let output = command.output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", errors.trim_end());
        Ok(String::from_utf8(output.stdout)?)
    }

    fn run_kubectl(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let mut command = self.bench.command(Part::Kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut kubectl = command.spawn().context("failed to run kubectl")?;
        kubectl
            .stdin
            .take()
            .context("kubectl has no standard input")?
            .write_all(input.as_bytes())?;
        Ok(kubectl.wait_with_output()?)
    }

    /// Applies the manifests of files, in a namespace unless they name one, with server-side apply.
    pub(crate) fn apply_files(&self, files: &[PathBuf], namespace: &str) -> Result<()> {
        let files: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
        let options = format!("apply --server-side --force-conflicts --validate=false --namespace={namespace}");
        let files = files.iter().flat_map(|file| ["--filename", file]);
        self.kubectl(&options.words().into_iter().chain(files).collect::<Vec<_>>())
            .map(drop)
    }

    /// Waits until the API server serves every CRD that it has.
    pub async fn wait_for_crds(&self) -> Result<()> {
        let client = self.client().await?;
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        wait::eventually("every CRD is served", DEADLINE, async || {
            for crd in crds.list(&ListParams::default()).await.ok()? {
                if !conditions::is_crd_established().matches_object(Some(&crd)) {
                    return None;
                }
                // A CRD is established shortly before its plural can be discovered.
                let served = crd.spec.versions.iter().find(|version| version.served)?;
                let api_version = format!("{}/{}", crd.spec.group, served.name);
                wait::resource(&client, &api_version, &crd.spec.names.kind).await.ok()?;
            }
            Some(())
        })
        .await
        .inspect_err(|_| self.bench.fail())
    }
}

/// Returns true if the API server reports that it is ready.
async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    client.request_text(request).await.is_ok()
}
