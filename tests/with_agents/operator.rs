//! Tests of argocd-operator instead of our own Argo CD: its rollout is that of a version, and it is never deleted before the
//! objects that it created. The test simulates the operator by its finalizer.

use crate::stage::{self, Stage};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{ManagedCluster, ObjectRef, is_true};

/// The time for which objects that must stay are observed.
const OBSERVATION: Duration = Duration::from_secs(5);

/// Selects the operator and deselects it again, while the fleet continues.
pub(crate) async fn check_selection_and_deselection(stage: &Stage) -> Result<()> {
    let clusters = stage.clusters();
    wait_for_operator(stage, &clusters).await?;
    stage.patch(&json!({"agent": {"operator": null}})).await?;
    for cluster in clusters {
        check_operator_stays(cluster).await?;
    }
    for cluster in clusters {
        remove_finalizer(cluster).await?;
    }
    for cluster in clusters {
        cluster.wait_for(&stage::agent(), |_| true).await?;
        cluster.wait_gone(&operator()).await?;
        let crd = ObjectRef::crd("argocds.argoproj.io");
        let crd = cluster.read(&crd).await?;
        assert_eq!(crd["metadata"]["deletionTimestamp"], Value::Null);
    }
    is_ready(stage).await
}

/// Deletes the fleet, reduced to this cluster, while the operator is installed.
pub(crate) async fn check_deletion_order(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster1;
    wait_for_operator(stage, &[cluster]).await?;
    // The certificates and keys stay as long as there is a principal.
    stage.hub.delete(&stage::principal()).await?;
    stage.hub.delete(&stage::fleet()).await?;
    check_operator_stays(cluster).await?;
    let addon = stage.hub.get(&stage::addon(cluster.name())).await?;
    ensure!(addon.is_some_and(|addon| addon["metadata"]["deletionTimestamp"].is_null()));
    remove_finalizer(cluster).await?;
    cluster.wait_gone(&operator()).await
}

/// Waits until all these clusters have the operator.
async fn wait_for_operator(stage: &Stage, clusters: &[&ManagedCluster]) -> Result<()> {
    let agent = json!({"operator": {"enabled": true}, "rolloutStrategy": null});
    stage.patch(&json!({"agent": agent})).await?;
    for cluster in clusters {
        let argocd = cluster.wait_for(&argocd(), |_| true).await?;
        let client = &argocd["spec"]["argoCDAgent"]["agent"]["client"];
        assert_eq!(client["principalServerAddress"], stage::ADDRESS);
        cluster.wait_for(&operator(), |_| true).await?;
        cluster.wait_gone(&stage::agent()).await?;
        let finalizers = json!({"metadata": {"finalizers": ["argoproj.io/finalizer"]}});
        cluster.patch(&self::argocd(), &finalizers).await?;
    }
    is_ready(stage).await?;
    for cluster in clusters {
        let addon = stage.hub.get(&stage::addon(cluster.name())).await?;
        ensure!(addon.is_some_and(|addon| is_true(&addon, "Available")));
    }
    Ok(())
}

async fn is_ready(stage: &Stage) -> Result<()> {
    let is_settled =
        |fleet: &Value| ["AgentsUpToDate", "Ready"].iter().all(|kind| is_true(fleet, kind)) && is_current(fleet);
    stage.hub.wait_for(&stage::fleet(), is_settled).await.map(drop)
}

/// Returns true if the status is about the current generation.
fn is_current(fleet: &Value) -> bool {
    let all = fleet["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.all(|condition| condition["observedGeneration"] == fleet["metadata"]["generation"])
}

/// Checks that the operator is still there while the ArgoCD is being deleted.
async fn check_operator_stays(cluster: &ManagedCluster) -> Result<()> {
    let is_going = |argocd: &Value| argocd["metadata"]["deletionTimestamp"].is_string();
    cluster.wait_for(&argocd(), is_going).await?;
    let stays = |operator: &Value| operator["metadata"]["deletionTimestamp"].is_null();
    cluster.holds_for(&operator(), OBSERVATION, stays).await
}

/// Removes the finalizer, as the operator does after it has deleted its objects.
async fn remove_finalizer(cluster: &ManagedCluster) -> Result<()> {
    let done = json!({"metadata": {"finalizers": null}});
    cluster.patch(&argocd(), &done).await?;
    cluster.wait_gone(&argocd()).await
}

fn operator() -> ObjectRef {
    ObjectRef::deployment("argocd", "argocd-operator")
}

fn argocd() -> ObjectRef {
    ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", "argocd", "argocd")
}
