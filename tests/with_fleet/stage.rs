//! The hub of the fleet, the simulated OCM and agents, and the controller behind a proxy that counts requests.

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::process::{self, Process};
use testbed::proxy::{Proxy, RecordedRequest};
use testbed::{Hub, ObjectRef, new_condition, wait};

pub(crate) const GOC: &str = "fleet";
pub(crate) const ADDON: &str = "argocd-agent-addon";
const CA_WORK: &str = "argocd-agent-ca-mw";
const PLACEMENTS: &str = "cluster.open-cluster-management.io/v1beta1";
const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";

/// The number of concurrent requests of the load.
const AT_ONCE: usize = 8;

/// Runs `work` for each cluster.
pub(crate) async fn each(clusters: &[String], work: impl AsyncFn(&str) -> Result<()>) -> Result<()> {
    let work = &work;
    let all = stream::iter(clusters).map(|cluster| async move { work(cluster).await.with_context(|| cluster.clone()) });
    all.buffer_unordered(AT_ONCE).try_collect().await
}

pub(crate) fn secret(cluster: &str) -> ObjectRef {
    ObjectRef::secret("argocd", &format!("cluster-{cluster}"))
}

pub(crate) fn goc() -> ObjectRef {
    ObjectRef::gitops_cluster(GOC)
}

pub(crate) fn addon(cluster: &str) -> ObjectRef {
    ObjectRef::managed_cluster_addon(cluster, ADDON)
}

pub(crate) fn management() -> ObjectRef {
    ObjectRef::cluster_management_addon(ADDON)
}

/// Starts the hub with the kind GitOpsCluster and these managed clusters, which a Placement selects.
pub(crate) async fn start(clusters: &[String]) -> Result<Hub> {
    let hub = Hub::start().await?;
    let crd = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/gitopscluster_crd.yaml");
    hub.kubectl(&["apply", "--server-side", "-f", crd])?;
    hub.wait_for_crds().await?;
    each(clusters, async |cluster| hub.declare_managed_cluster(cluster).await).await?;
    hub.select(GOC, clusters).await?;
    Ok(hub)
}

/// Returns the GitOpsCluster that installs agents on the clusters of that Placement.
pub(crate) fn gitops_cluster() -> Value {
    goc().with(json!({"spec": {
        "placementRef": {"kind": "Placement", "name": GOC},
        "argoCDAgentAddon": {"principalServerAddress": "principal.example.com", "principalServerPort": "443"},
        "agent": {"images": {"supervisor": "example.com/argocd-ocm-cmp:v1"}},
    }}))
}

/// Simulates OCM's installation of the add-on on a cluster, and its agents.
pub(crate) async fn install(hub: &Hub, cluster: &str, template: &str) -> Result<()> {
    let work = ObjectRef::manifest_work(cluster, CA_WORK);
    let generation = hub.wait_for(&work, |_| true).await?["metadata"]["generation"].clone();
    let applied = json!({"status": {"conditions": [new_condition("Applied", "True", "", &generation)]}});
    hub.patch_status(&work, &applied).await?;
    let addon = ObjectRef::managed_cluster_addon(cluster, ADDON).with(json!({"spec": {}}));
    let addon = ObjectRef::of(&hub.create(&addon).await?);
    let conditions = ["ManifestApplied", "Available"].map(|kind| new_condition(kind, "True", "", &json!(1)));
    let form = json!({"name": template, "specHash": "1"});
    let reference = json!({
        "group": "addon.open-cluster-management.io",
        "resource": "addontemplates",
        "name": template,
        "lastObservedGeneration": 1,
        "desiredConfig": form,
        "lastAppliedConfig": form,
    });
    let status = json!({"status": {"conditions": conditions, "configReferences": [reference]}});
    hub.patch_status(&addon, &status).await.map(drop)
}

/// Returns the clusters in the decisions that were written for the add-on.
pub(crate) async fn decided(hub: &Hub) -> Result<BTreeSet<String>> {
    let all = hub.list(PLACEMENTS, "PlacementDecision").await?;
    let ours = all
        .iter()
        .filter(|decision| decision["metadata"]["labels"][PLACEMENT] == format!("{GOC}-argocd-agent"));
    let decisions = ours.flat_map(|decision| decision["status"]["decisions"].as_array().into_iter().flatten());
    Ok(decisions
        .filter_map(|decision| decision["clusterName"].as_str().map(ToOwned::to_owned))
        .collect())
}

/// Changes a label of a cluster and waits until its Secret has it: then earlier changes are reconciled.
pub(crate) async fn change(hub: &Hub, cluster: &str, value: &str) -> Result<()> {
    let managed = ObjectRef::managed_cluster(cluster);
    let labels = json!({"metadata": {"labels": {"change": value}}});
    hub.patch(&managed, &labels).await?;
    let has_it = |secret: &Value| secret["metadata"]["labels"]["change"] == value;
    hub.wait_for(&secret(cluster), has_it).await.map(drop)
}

/// A running controller, with its requests.
pub(crate) struct Controller {
    process: Process,
    pub(crate) proxy: Proxy,
}

impl Controller {
    pub(crate) async fn start(hub: &Hub, name: &str) -> Result<Self> {
        let proxy = Proxy::start(hub).await?;
        let port = testbed::ports::free()?;
        let folder = env!("CARGO_TARGET_TMPDIR").as_ref();
        let command = process::controller(
            env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
            folder,
            &["--leader-elect=false", "--controllers=gitopscluster,argocd-agent"],
            port,
            proxy.kubeconfig(hub.kubeconfig_path())?,
        );
        let process = Process::start(name, command, &hub.logs().join(format!("{name}.log")))?;
        process.until_listening(port).await?;
        Ok(Self { process, proxy })
    }

    /// Stops it, and returns its requests.
    pub(crate) async fn stop(self) -> Result<Vec<RecordedRequest>> {
        let status = self.process.terminate().await?;
        ensure!(status.success(), "the controller ended with {status}");
        Ok(self.proxy.requests())
    }
}

/// Waits until no decision of the add-on names a cluster.
pub(crate) async fn wait_until_nothing_is_decided(hub: &Hub) -> Result<()> {
    let no_decisions = async || decided(hub).await.ok()?.is_empty().then_some(());
    wait::eventually("no decision is left", wait::DEADLINE, no_decisions).await
}
