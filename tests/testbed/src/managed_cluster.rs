//! A managed cluster: workloads roll out on it, and OCM's work agent applies works from the hub. It may have an Argo CD too.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use crate::agent_rights;
use crate::argocd::{self, Addresses, ArgoCd};
use crate::control_plane::{Account, ControlPlane};
use crate::object::{ObjectRef, is_true};
use crate::parts::Part;
use crate::ports;
use crate::process::Process;

/// The namespace of OCM's agents.
pub(crate) const AGENT_NAMESPACE: &str = "open-cluster-management-agent";

/// The options of a managed cluster.
#[derive(Clone, Debug)]
pub struct ManagedClusterOptions {
    /// The number of nodes. Without any, Pods stay pending and nothing becomes available.
    pub nodes: u32,
    /// The interval at which the agent reads feedback values and conditions from the applied objects.
    pub status_sync_interval: Duration,
    /// True if OCM's registration agent joins the cluster to the hub, as in production: it gets a certificate for the hub, which
    /// the work agent uses too, renews the lease and serves add-ons. It requires
    /// [`Hub::start_ocm_controllers`](crate::Hub::start_ocm_controllers) first. Otherwise the cluster is declared joined and
    /// available, and the work agent has all permissions on the hub.
    pub registration_agent: bool,
    /// True if the work agent has all permissions on the managed cluster. Otherwise it has those that OCM's operator grants: it
    /// runs as the service account `klusterlet-work-sa` with the role `admin`, OCM's own roles, and every `ClusterRole` with the
    /// label `open-cluster-management.io/aggregate-to-work: "true"`. Custom resources need one of those, and so do kinds that no
    /// role covers, such as a `StorageClass`.
    pub cluster_admin: bool,
    /// An Argo CD on the cluster, with its CRDs and manifests, that delivers the Applications on this cluster to it. The work
    /// agent may write Applications only if a `ClusterRole` permits it; see [`cluster_admin`](Self::cluster_admin).
    pub argocd: Option<ArgoCd>,
}

impl Default for ManagedClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            status_sync_interval: Duration::from_secs(2),
            registration_agent: false,
            cluster_admin: false,
            argocd: None,
        }
    }
}

/// A running managed cluster. Dropping it stops all its processes.
///
/// Pods become ready at once, by kwok, unless no node matches them: a `nodeSelector` without a match breaks a rollout. Pods with
/// the label `pod-container-running-failed.stage.kwok.x-k8s.io: "true"` run for a second and then fail.
///
/// [`ControlPlane`] has the operations on its API server.
#[derive(Debug)]
pub struct ManagedCluster {
    agent: Option<Process>,
    plane: ControlPlane,
    options: ManagedClusterOptions,
    /// The kubeconfig with which the work agent connects to this cluster.
    agent_kubeconfig: PathBuf,
    hub_kubeconfig: PathBuf,
}

impl ManagedCluster {
    pub(crate) async fn start(
        hub: &ControlPlane,
        etcd: &str,
        name: &str,
        options: ManagedClusterOptions,
    ) -> Result<Self> {
        ensure!(name != hub.name(), "the name {name} is taken");
        let (plane, registered) = tokio::join!(
            ControlPlane::start(&hub.bench, name, etcd),
            register(hub, name, options.registration_agent)
        );
        registered?;
        let plane = plane?;
        let mut cluster = Self {
            agent: None,
            options,
            agent_kubeconfig: plane.kubeconfig_path().to_owned(),
            hub_kubeconfig: hub.kubeconfig_path().to_owned(),
            plane,
        };

        cluster.create_namespace(AGENT_NAMESPACE).await?;
        cluster.create_namespace("open-cluster-management-agent-addon").await?;
        let of_the_cluster = |name: &str| name.contains("appliedmanifestworks") || name.contains("clusterclaims");
        let crds = cluster
            .bench
            .parts
            .ocm_crds(&["work/v1", "cluster/v1alpha1"], of_the_cluster)?;
        cluster.apply_files(&crds, AGENT_NAMESPACE)?;
        if cluster.options.argocd.is_some() {
            cluster.create_namespace(argocd::NAMESPACE).await?;
            argocd::install(&cluster, argocd::Manifests::Core)?;
        }
        cluster.wait_for_crds().await?;
        // All controllers except those that need tokens in Pods: real rollouts, garbage collection, namespace deletion. After the
        // CRDs: the garbage collector discovers new kinds only every 30 s.
        cluster.start_controllers("*,-serviceaccount-token-controller")?;
        cluster.start_nodes(cluster.options.nodes).await?;
        if cluster.options.registration_agent {
            cluster.join(hub).await?;
        }
        if !cluster.options.cluster_admin {
            cluster.agent_kubeconfig = agent_rights::grant_work(&cluster).await?;
        }
        if let Some(argocd) = &cluster.options.argocd {
            argocd::complete(&cluster).await?;
            argocd.start(&cluster).await?;
        }
        cluster.start_agent().await?;
        Ok(cluster)
    }

    /// Starts the registration agent and waits until the hub has accepted the cluster and reports it as available.
    async fn join(&mut self, hub: &ControlPlane) -> Result<()> {
        let folder = self.bench.folder(&format!("{}/hub-kubeconfig", self.name()))?;
        let kubeconfig = agent_rights::grant_registration(&self.plane).await?;
        let mut command = self.agent(Part::Registration, &kubeconfig, ports::free()?);
        command.arg("--bootstrap-kubeconfig").arg(&self.hub_kubeconfig);
        command.arg("--hub-kubeconfig-dir").arg(&folder);
        command.arg(format!("--spoke-external-server-urls={}", self.url()));
        let name = format!("registration-agent-{}", self.name());
        let agent = self.bench.start(&name, command)?;
        self.hub_kubeconfig = folder.join("kubeconfig");
        agent.until_ready(async || self.hub_kubeconfig.exists()).await?;
        self.keep(agent);
        let cluster = ObjectRef::managed_cluster(self.name());
        hub.wait_for(&cluster, |cluster| is_true(cluster, "ManagedClusterConditionAvailable"))
            .await?;
        Ok(())
    }

    /// Returns a client of the hub with the credentials of the cluster's agents, which OCM's registration issued.
    pub async fn hub_account(&self) -> Result<Account> {
        Account::from_kubeconfig(&self.hub_kubeconfig).await
    }

    /// Starts the work agent, after [`stop_agent`](Self::stop_agent), and waits until it answers.
    pub async fn start_agent(&mut self) -> Result<()> {
        let port = ports::free()?;
        let mut command = self.agent(Part::Work, &self.agent_kubeconfig, port);
        command.arg("--workload-source-driver=kube");
        command.arg("--workload-source-config").arg(&self.hub_kubeconfig);
        let interval = self.options.status_sync_interval.as_millis();
        command.arg(format!("--status-sync-interval={interval}ms"));
        let name = format!("work-agent-{}", self.name());
        let agent = self.bench.start(&name, command)?;
        agent.until_listening(port).await?;
        self.agent = Some(agent);
        Ok(())
    }

    /// Returns the command of one of OCM's agents, with the flags that both share.
    fn agent(&self, program: Part, kubeconfig: &Path, port: u16) -> Command {
        let mut command = self.bench.command(program);
        command.args(["agent", "--disable-leader-election"]);
        command.arg(format!("--namespace={AGENT_NAMESPACE}"));
        command.arg(format!("--spoke-cluster-name={}", self.name()));
        command.arg(format!("--agent-id={}-agent", self.name()));
        command.arg("--kubeconfig").arg(kubeconfig);
        command.arg(format!("--listen=127.0.0.1:{port}"));
        command
    }

    /// Starts an Argo CD on the cluster, whose manifests something else has applied, and returns its addresses.
    pub async fn start_argocd(&self, argocd: &ArgoCd) -> Result<Addresses> {
        argocd.start(&self.plane).await.inspect_err(|_| self.bench.fail())
    }

    /// Stops the work agent, as if the cluster could not reach the hub.
    pub fn stop_agent(&mut self) {
        self.agent = None;
    }
}

/// Gives access to the API server of the managed cluster.
impl Deref for ManagedCluster {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

/// Creates the objects of a joined cluster: a namespace for the cluster's works, and an accepted `ManagedCluster`.
///
/// Unless an agent does that, it is also declared available, with a lease that does not expire during tests.
pub(crate) async fn register(hub: &ControlPlane, name: &str, by_agent: bool) -> Result<()> {
    hub.create_namespace(name).await?;
    let lease = if by_agent { 60 } else { 7200 };
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {"cluster.open-cluster-management.io/clusterset": "default"}},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": lease},
    });
    hub.apply(&cluster).await?;
    if by_agent {
        return Ok(());
    }
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions: Vec<_> = [
        "HubAcceptedManagedCluster",
        "ManagedClusterJoined",
        "ManagedClusterConditionAvailable",
    ]
    .into_iter()
    .map(|kind| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now}))
    .collect();
    hub.patch_status(&ObjectRef::of(&cluster), &json!({"status": {"conditions": conditions}}))
        .await?;
    Ok(())
}
