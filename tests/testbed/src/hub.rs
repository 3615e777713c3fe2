//! The hub: the API server with OCM's works and Argo CD.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::addon_webhook;
use crate::argocd::{self, Addresses, ArgoCd, Manifests};
use crate::control_plane::ControlPlane;
use crate::etcd::Etcd;
use crate::managed_cluster::{self, ManagedCluster, ManagedClusterOptions};
use crate::object::ObjectRef;
use crate::ocm_controllers;
use crate::parts::Parts;
use crate::process::Process;
use crate::work_webhook::WorkWebhook;
use crate::workbench::Workbench;

/// The controllers of kube-controller-manager that the hub needs: Argo CD uses foreground deletion and waits for the garbage
/// collector, namespaces are deleted, and agents that join get their certificates.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller,\
                           certificatesigningrequest-signing-controller";

/// The controllers that roll out Argo CD's Deployments on a complete hub, with Pods that are empty.
const ROLLOUT_CONTROLLERS: &str =
    "deployment-controller,replicaset-controller,statefulset-controller,node-lifecycle-controller";

/// A running hub with the CRDs of OCM and Argo CD, and OCM's webhook for every `ManifestWork`.
///
/// Dropping it stops all processes that were started through it. [`ControlPlane`] has the operations on its API server.
#[derive(Debug)]
pub struct Hub {
    plane: ControlPlane,
    etcd: Etcd,
    argocd: OnceLock<Addresses>,
}

impl Hub {
    /// Returns the password of Argo CD's user `admin`, which argocd-server creates.
    pub async fn admin_password(&self) -> Result<String> {
        let secret = ObjectRef::secret("argocd", "argocd-initial-admin-secret");
        self.wait_for(&secret, |_| true).await?;
        let password = "--template={{.data.password | base64decode}}";
        self.kubectl(&["get", "secret", &secret.name, "--namespace=argocd", password])
    }

    /// Starts a hub, after building the missing programs.
    pub async fn start() -> Result<Self> {
        Self::start_with(Manifests::Core).await
    }

    /// Starts a hub with all of Argo CD's manifests, including argocd-server, whose Deployments are rolled out with empty Pods.
    pub async fn start_complete() -> Result<Self> {
        let hub = Self::start_with(Manifests::Full).await?;
        hub.start_nodes(1).await?;
        // The other parts do not run on a testbed.
        for deployment in ["argocd-dex-server", "argocd-notifications-controller"] {
            let deployment = ObjectRef::deployment(argocd::NAMESPACE, deployment);
            hub.patch(&deployment, &json!({"spec": {"replicas": 0}})).await?;
        }
        Ok(hub)
    }

    async fn start_with(manifests: Manifests) -> Result<Self> {
        let parts = tokio::task::spawn_blocking(Parts::ensure).await??;
        let bench = Workbench::new(parts)?;
        Self::start_on(&bench, manifests).await.inspect_err(|_| bench.fail())
    }

    async fn start_on(bench: &Arc<Workbench>, manifests: Manifests) -> Result<Self> {
        let etcd = Etcd::start(bench)?;
        let plane = ControlPlane::start(bench, "hub", etcd.url()).await?;
        let hub = Self {
            plane,
            etcd,
            argocd: OnceLock::new(),
        };
        let webhook = WorkWebhook::start(&hub)?;
        for namespace in [argocd::NAMESPACE, ocm_controllers::NAMESPACE] {
            hub.create_namespace(namespace).await?;
        }
        hub.apply_manifests(manifests)?;
        hub.wait_for_crds().await?;
        if bench.parts.ocm_converts_addons()? {
            addon_webhook::start(&hub).await?;
        }
        // After the CRDs: the garbage collector discovers new kinds only every 30 s, and until then it blocks the foreground
        // deletion of their objects.
        match manifests {
            Manifests::Core => hub.start_controllers(CONTROLLERS)?,
            Manifests::Full => hub.start_controllers(&format!("{CONTROLLERS},{ROLLOUT_CONTROLLERS}"))?,
        }
        argocd::complete(&hub).await?;
        webhook.register(&hub).await?;
        Ok(hub)
    }

    /// Applies OCM's CRDs and Argo CD's manifests concurrently, because they take most of the start of a hub.
    fn apply_manifests(&self, manifests: Manifests) -> Result<()> {
        let folders = ["cluster/v1", "cluster/v1alpha1", "cluster/v1beta1", "cluster/v1beta2"];
        let folders = [&folders[..], &["addon/v1alpha1", "work/v1", "work/v1alpha1"]].concat();
        let of_the_hub = |name: &str| !name.contains("appliedmanifestworks") && !name.contains("clusterclaims");
        let mut crds = self.bench.parts.ocm_crds(&folders, of_the_hub)?;
        if self.bench.parts.ocm_converts_addons()? {
            crds.extend(self.bench.parts.ocm_crds(&["addon/v1beta1"], of_the_hub)?);
        }
        thread::scope(|scope| {
            let ocm = scope.spawn(|| self.apply_files(&crds, ocm_controllers::NAMESPACE));
            argocd::install(self, manifests)?;
            ocm.join().map_err(|_| anyhow!("applying OCM's CRDs panicked"))?
        })
    }

    /// Starts a hub with OCM's controllers, and the clusters `cluster1` and `cluster2`, which OCM's registration agents join to it.
    pub async fn start_with_joined_clusters() -> Result<(Self, ManagedCluster, ManagedCluster)> {
        let hub = Self::start().await?;
        let (cluster1, cluster2) = hub.join_clusters().await?;
        Ok((hub, cluster1, cluster2))
    }

    /// Starts OCM's controllers, and the clusters `cluster1` and `cluster2`, which OCM's registration agents join to the hub.
    pub async fn join_clusters(&self) -> Result<(ManagedCluster, ManagedCluster)> {
        self.start_ocm_controllers().await?;
        let options = || ManagedClusterOptions {
            registration_agent: true,
            ..ManagedClusterOptions::default()
        };
        tokio::try_join!(
            self.add_managed_cluster("cluster1", options()),
            self.add_managed_cluster("cluster2", options())
        )
    }

    /// Adds a managed cluster: a separate API server with controllers, a node, and OCM's work agent.
    pub async fn add_managed_cluster(&self, name: &str, options: ManagedClusterOptions) -> Result<ManagedCluster> {
        ManagedCluster::start(self, self.etcd.url(), name, options)
            .await
            .inspect_err(|_| self.bench.fail())
            .with_context(|| format!("failed to add the managed cluster {name}"))
    }

    /// Lets the Placements in Argo CD's namespace select all managed clusters.
    pub async fn bind_global_cluster_set(&self) -> Result<()> {
        self.create(&json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "global", "namespace": argocd::NAMESPACE},
            "spec": {"clusterSet": "global"},
        }))
        .await
        .map(drop)
    }

    /// Copies the data of its etcd, for [`Hub::restore_etcd`].
    pub fn copy_etcd(&self) -> Result<PathBuf> {
        let copy = self.bench.folder("copy of etcd")?;
        self.etcd.copy(&copy)?;
        Ok(copy)
    }

    /// Restarts etcd and the API server on an earlier copy of the data, with its revision: what was written since is gone.
    pub async fn restore_etcd(&self, copy: &Path) -> Result<()> {
        self.plane.stop_apiserver();
        self.etcd.restore(&self.plane.bench, copy)?;
        self.plane.start_apiserver().await
    }

    /// Declares a managed cluster that has no API server and no agent: works for it can be written, and are never applied.
    pub async fn declare_managed_cluster(&self, name: &str) -> Result<()> {
        managed_cluster::register(self, name, false).await
    }

    /// Makes a Placement in Argo CD's namespace select these clusters, as OCM's placement controller does.
    pub async fn select(&self, placement: &str, clusters: &[impl AsRef<str>]) -> Result<()> {
        /// The maximum number of clusters in one of OCM's decisions.
        const DECIDED: usize = 100;
        let write = async |object: Value, status: Value| {
            let object = ObjectRef::of(&self.apply(&object).await?);
            self.patch_status(&object, &json!({"status": status})).await
        };
        let labels = json!({"cluster.open-cluster-management.io/placement": placement});
        for (at, part) in clusters.chunks(DECIDED).enumerate() {
            let decision = ObjectRef::placement_decision(&format!("{placement}-decision-{}", at + 1));
            let decided = part
                .iter()
                .map(|cluster| json!({"clusterName": cluster.as_ref(), "reason": ""}));
            let status = json!({"decisions": decided.collect::<Vec<_>>()});
            write(decision.with(json!({"metadata": {"labels": labels}})), status).await?;
        }
        let status = json!({"conditions": [], "numberOfSelectedClusters": clusters.len()});
        write(ObjectRef::placement(placement).with(json!({"spec": {}})), status)
            .await
            .map(drop)
    }

    /// Starts OCM's registration, placement, add-on and work controllers, and waits until they answer.
    pub async fn start_ocm_controllers(&self) -> Result<()> {
        ocm_controllers::start(self).await.inspect_err(|_| self.bench.fail())
    }

    /// Starts Argo CD, and waits until it answers.
    pub async fn start_argocd(&self, argocd: ArgoCd) -> Result<()> {
        let addresses = argocd.start(self).await.inspect_err(|_| self.bench.fail())?;
        self.argocd
            .set(addresses)
            .map_err(|_| anyhow!("Argo CD was started before"))
    }

    /// Starts Argo CD's notifications controller, which ends with the value.
    pub fn start_notifications(&self) -> Result<Process> {
        argocd::start_notifications(self)
    }

    /// Returns the address of Argo CD's repo-server, `127.0.0.1:…`, once Argo CD is started.
    pub fn repo_server(&self) -> Option<&str> {
        self.argocd.get().map(|argocd| argocd.repo_server.as_str())
    }

    /// Returns the address of Argo CD's Redis, `127.0.0.1:…`, once Argo CD is started.
    pub fn redis(&self) -> Option<&str> {
        self.argocd.get().map(|argocd| argocd.redis.as_str())
    }

    /// Returns the address of argocd-server, `127.0.0.1:…`, if it runs.
    pub fn argocd_server(&self) -> Option<&str> {
        self.argocd.get()?.server.as_deref()
    }

    /// Returns a kubeconfig for the hub, with these clusters as further contexts.
    pub fn kubeconfig_with<'c>(&self, clusters: impl IntoIterator<Item = &'c ControlPlane>) -> Result<String> {
        let mut all: Value = serde_json::from_slice(&fs::read(self.kubeconfig_path())?)?;
        for cluster in clusters {
            let other: Value = serde_json::from_slice(&fs::read(cluster.kubeconfig_path())?)?;
            for list in ["clusters", "users", "contexts"] {
                let mut item = other[list][0].clone();
                item["name"] = json!(cluster.name());
                if list == "contexts" {
                    item["context"]["user"] = json!(cluster.name());
                }
                all[list].as_array_mut().context("a list")?.push(item);
            }
        }
        Ok(all.to_string())
    }

    /// Returns the resource tree, with health, of an Application in Argo CD's namespace, once it has one.
    pub fn resource_tree(&self, application: &str) -> Result<Option<Value>> {
        let argocd = self.argocd.get().context("Argo CD is not started")?;
        argocd::resource_tree(&argocd.redis, application)
    }

    /// Creates an Application, in Argo CD's namespace unless it names another.
    pub async fn create_application(&self, application: &Value) -> Result<Value> {
        let mut application = application.clone();
        let namespace = &mut application["metadata"]["namespace"];
        if namespace.is_null() {
            *namespace = argocd::NAMESPACE.into();
        }
        self.create(&application).await
    }

    /// Refreshes an Application, and returns it after Argo CD has: `normal` compares it with Git, `hard` also renders cached
    /// manifests again.
    pub async fn refresh_application(&self, name: &str, how: &str) -> Result<Value> {
        let application = ObjectRef::application(name);
        let annotation = "argocd.argoproj.io/refresh";
        self.patch(&application, &json!({"metadata": {"annotations": {annotation: how}}}))
            .await?;
        self.wait_for(&application, |application| {
            application["metadata"]["annotations"][annotation].is_null()
        })
        .await
    }
}

/// Gives access to the API server of the hub.
impl Deref for Hub {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}
