//! The hub with its principal, and two clusters with their agents.

use crate::agent_controller;
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use ocm::argocd_agent::CA_SECRET;
use pki::{Recipe, authority_name};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use testbed::process::Process;
use testbed::{ArgoCd, Container, GitRepository, Hub, ManagedCluster, ObjectRef, ports, wait};

/// A namespace of Applications that is not Argo CD's.
pub(crate) const TEAM_NAMESPACE: &str = "team";

/// The time after which the CA is renewed: the tests before that need a minute, and three on a slow machine.
const ROTATION: SignedDuration = SignedDuration::from_mins(3);

/// The lifetime of a CA, and the part of it after which it is renewed.
const CA_DAYS: [i64; 2] = [365, 292];

const PROGRAM: &str = env!("CARGO_BIN_EXE_argocd-ocm-cmp");
pub(crate) const PRINCIPAL: &str = "argocd-agent-principal";
pub(crate) const AGENT: &str = "argocd-agent-agent";

/// The log message of the principal about a new connection.
const CONNECTED: &str = "An agent connected to the subscription stream";

pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) managed: Agent,
    pub(crate) autonomous: Agent,
    pub(crate) git: GitRepository,
    argocd_agent: PathBuf,
    principal: Process,
    port: u16,
    _controller: Process,
    since: Instant,
}

/// A cluster with its agent.
pub(crate) struct Agent {
    pub(crate) cluster: ManagedCluster,
    pub(crate) process: Process,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let argocd_agent = tokio::task::spawn_blocking(testbed::argocd_agent).await??;
        let (hub, cluster1, cluster2) = Hub::start_with_joined_clusters().await?;
        let git = GitRepository::new()?;
        git.commit(&[
            ("guestbook/deployment.yaml", DEPLOYMENT),
            ("guestbook/config.yaml", &config("one")),
        ])?;
        let argocd = ArgoCd {
            application_sets: true,
            ..ArgoCd::default()
        };
        hub.start_argocd(argocd).await?;
        let since = Instant::now();
        install(&hub)?;
        let controller = agent_controller::start(&hub, &[]).await?;
        let port = ports::free()?;
        prepare(&hub, port).await?;
        let principal = start_principal(&hub, &argocd_agent, port).await?;
        let (managed, autonomous) = tokio::try_join!(
            Agent::start(cluster1, &argocd_agent, &[("ARGOCD_APPLICATION_NAMESPACES", "*")]),
            Agent::start(cluster2, &argocd_agent, &[])
        )?;
        let stage = Self {
            hub,
            managed,
            autonomous,
            git,
            argocd_agent,
            principal,
            port,
            _controller: controller,
            since,
        };
        for cluster in ["cluster1", "cluster2"] {
            stage.wait_for_connection(cluster, 0).await?;
        }
        stage.log_step("both agents are connected");
        Ok(stage)
    }

    pub(crate) fn log_step(&self, what: &str) {
        println!("{what} ({:.1?} since the installation)", self.since.elapsed());
    }

    /// Returns the number of times that the agent of a cluster has connected.
    pub(crate) fn connections(&self, cluster: &str) -> Result<usize> {
        let log = fs::read_to_string(self.principal.log())?;
        let of_it = |line: &&str| line.contains(CONNECTED) && line.contains(cluster);
        Ok(log.lines().filter(of_it).count())
    }

    /// Waits until the agent of a cluster has connected once more.
    pub(crate) async fn wait_for_connection(&self, cluster: &str, before: usize) -> Result<()> {
        let what = format!("{cluster} connects; see {}", self.principal.log().display());
        wait::eventually(&what, wait::DEADLINE, async || {
            (self.connections(cluster).ok()? > before).then_some(())
        })
        .await
    }

    /// Returns true if the principal reads the list of blocked certificates, as it does in versions after 0.9.0.
    pub(crate) fn reads_blocklist(&self) -> Result<bool> {
        Ok(fs::read_to_string(self.principal.log())?.contains("Loaded TLS blocklist"))
    }

    /// Returns true if the principal has refused a certificate on that list.
    pub(crate) fn has_refused_certificate(&self) -> Result<bool> {
        Ok(fs::read_to_string(self.principal.log())?.contains("Rejected blocklisted certificate"))
    }

    /// Ends the principal and starts it again, as Kubernetes does after a change of its Pods' template.
    pub(crate) async fn restart_principal(&mut self) -> Result<()> {
        self.principal.terminate().await?;
        self.principal = start_principal(&self.hub, &self.argocd_agent, self.port).await?;
        Ok(())
    }

    /// Writes the current certificates to the files of the agents, as the kubelet does.
    pub(crate) async fn update_files_of_agents(&self) -> Result<()> {
        for agent in [&self.managed, &self.autonomous] {
            let container = Container::of(&agent.cluster, &self::agent(), AGENT).await?;
            container.write_files().await?;
        }
        Ok(())
    }

    /// Returns a client for a cluster as argocd-server has it, with the cluster's Secret on the hub.
    pub(crate) async fn resource_proxy(&self, cluster: &str) -> Result<Client> {
        let name = format!("cluster-{cluster}");
        let secret = self.hub.get(&ObjectRef::secret("argocd", &name)).await?;
        let secret = secret.context("the Secret of the cluster")?;
        let config = ByteString::deserialize(&secret["data"]["config"])?.0;
        let config: Value = serde_json::from_slice(&config)?;
        let tls = &config["tlsClientConfig"];
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {
                "server": "https://127.0.0.1:9090", "certificate-authority-data": tls["caData"],
            }}],
            "users": [{"name": "it", "user": {
                "client-certificate-data": tls["certData"], "client-key-data": tls["keyData"],
            }}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        });
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Checks that no request of the principal was denied.
    pub(crate) fn check_permissions(&self) -> Result<()> {
        let requests = self.hub.requests_by(PRINCIPAL)?;
        let denied = requests
            .iter()
            .filter(|request| request["responseStatus"]["code"] == 403);
        let denied: Vec<String> = denied
            .map(|request| format!("{} {}", request["verb"], request["requestURI"]))
            .collect();
        assert_eq!(denied, [""; 0]);
        Ok(())
    }
}

impl Agent {
    /// Starts the Argo CD and the agent that the add-on has deployed.
    async fn start(cluster: ManagedCluster, argocd_agent: &Path, environment: &[(&str, &str)]) -> Result<Self> {
        let ours = Path::new(PROGRAM);
        cluster.wait_for(&agent(), |_| true).await?;
        let prepare = Container::of(&cluster, &agent(), "prepare").await?;
        wait::eventually("the Secrets of Argo CD are prepared", wait::DEADLINE, async || {
            let mut command = prepare.command(ours, &[("argocd-ocm-cmp", ours)]).await.ok()?;
            command.status().ok()?.success().then_some(())
        })
        .await?;
        let argocd = ArgoCd {
            account: Some("argocd-application-controller".to_owned()),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..ArgoCd::default()
        };
        let addresses = cluster.start_argocd(&argocd).await?;
        let container = Container::of(&cluster, &agent(), AGENT).await?;
        let programs = [
            ("/supervisor/argocd-ocm-cmp", ours),
            ("/bin/argocd-agent", argocd_agent),
        ];
        let what = format!("the files of the agent of {} exist", cluster.name());
        let mut command = wait::eventually(&what, wait::DEADLINE, async || {
            container.command(argocd_agent, &programs).await.ok()
        })
        .await?;
        // The ports of a Pod, and the Redis that stands in for the one of the manifests.
        command.env("ARGOCD_AGENT_HEALTH_CHECK_PORT", ports::free()?.to_string());
        command.env("ARGOCD_AGENT_METRICS_PORT", "0");
        command.envs([("REDIS_ADDR", &*addresses.redis), ("REDIS_PASSWORD", "")]);
        let log = cluster.logs().join(format!("argocd-agent-{}.log", cluster.name()));
        let process = Process::start("argocd-agent", command, &log)?;
        Ok(Self { cluster, process })
    }
}

/// An image for the controller, which no Pod runs here.
const IMAGE: &str = "registry.example.com/argocd-ocm-cmp:0.1.0";

/// Runs `install`, as the documentation of argocd-agent does.
fn install(hub: &Hub) -> Result<()> {
    let text = hub.run(PROGRAM, &["install", "--features=argocd-agent", "--image", IMAGE])?;
    ensure!(
        text.contains("deployment.apps/argocd-agent-principal created\n"),
        "{text}"
    );
    Ok(())
}

/// Creates a GitOpsCluster for each mode, and lets the principal use the namespaces of the autonomous cluster and of a team.
async fn prepare(hub: &Hub, port: u16) -> Result<()> {
    hub.bind_global_cluster_set().await?;
    hub.create(&authority()?).await?;
    hub.create(
        &ObjectRef::config_map("argocd", "argocd-agent-params")
            .with(json!({"data": {"principal.allowed-namespaces": format!("cluster2,{TEAM_NAMESPACE}")}})),
    )
    .await?;
    for (cluster, mode) in [("cluster1", "managed"), ("cluster2", "autonomous")] {
        let label = json!({"metadata": {"labels": {"mode": mode}}});
        hub.patch(&ObjectRef::managed_cluster(cluster), &label).await?;
        let selector = json!({"labelSelector": {"matchLabels": {"mode": mode}}});
        hub.create(
            &ObjectRef::placement(mode).with(json!({"spec": {"predicates": [{"requiredClusterSelector": selector}]}})),
        )
        .await?;
        hub.create(&ObjectRef::gitops_cluster(mode).with(json!({"spec": {
            "placementRef": {"kind": "Placement", "name": mode},
            "argoCDAgentAddon": {
                "mode": mode,
                "principalServerAddress": "127.0.0.1",
                "principalServerPort": port.to_string(),
            },
        }})))
        .await?;
    }
    Ok(())
}

/// Returns a CA that the controller has created long ago, and soon renews.
fn authority() -> Result<Value> {
    let days = |days| SignedDuration::from_hours(24 * days);
    let not_before = Timestamp::now() + ROTATION - days(CA_DAYS[1]);
    let recipe = Recipe::Authority {
        common_name: authority_name(not_before),
        validity: not_before..not_before + days(CA_DAYS[0]),
    };
    let made = pki::make(&recipe, None)?;
    let data: serde_json::Map<String, Value> = made
        .into_iter()
        .filter_map(|(key, bytes)| Some((key.to_owned(), json!(ByteString(bytes?)))))
        .collect();
    Ok(ObjectRef::secret("argocd", CA_SECRET).with(json!({"type": "kubernetes.io/tls", "data": data})))
}

/// Starts the principal as its Deployment says, but on a free port and with the Redis of the testbed.
async fn start_principal(hub: &Hub, argocd_agent: &Path, port: u16) -> Result<Process> {
    let what = "the files of the principal exist";
    let mut command = wait::eventually(what, wait::DEADLINE, async || {
        let container = Container::of(hub, &principal(), PRINCIPAL).await.ok()?;
        container.command(argocd_agent, &[]).await.ok()
    })
    .await?;
    command.args(["--listen-host=127.0.0.1", "--metrics-port=0"]);
    command.arg(format!("--listen-port={port}"));
    command.arg(format!("--healthz-port={}", ports::free()?));
    command.arg("--redis-server-address").arg(hub.redis().context("Redis")?);
    let process = Process::start(PRINCIPAL, command, &hub.logs().join("argocd-agent-principal.log"))?;
    process.until_listening(port).await?;
    Ok(process)
}

pub(crate) fn principal() -> ObjectRef {
    ObjectRef::deployment("argocd", PRINCIPAL)
}

pub(crate) fn agent() -> ObjectRef {
    ObjectRef::deployment("argocd", AGENT)
}

/// Returns an Application that deploys the guestbook on a cluster.
pub(crate) fn guestbook(name: &str, git: &GitRepository, cluster: &str) -> Value {
    ObjectRef::cluster("argoproj.io/v1alpha1", "Application", name).with(json!({
        "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {
            "project": "default",
            "source": {"repoURL": git.url(), "path": "guestbook", "targetRevision": "main"},
            "destination": {"name": cluster, "namespace": "guestbook"},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    }))
}

/// Returns a ConfigMap with this value.
pub(crate) fn config(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n  value: {value}\n")
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: guestbook-ui
spec:
  replicas: 1
  selector:
    matchLabels:
      app: guestbook-ui
  template:
    metadata:
      labels:
        app: guestbook-ui
    spec:
      containers:
      - name: guestbook-ui
        image: example.com/guestbook:v1
";
