//! Tests of argocd-operator in place of our own Argo CD: it rolls out as a version does, and is never deleted before the objects
//! that it has created. The test plays the operator; only its finalizer matters here.

use crate::stage::{self, Stage, condition};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{ManagedCluster, ObjectRef, is_true};

/// The time for which objects that must stay are observed.
const WHILE: Duration = Duration::from_secs(5);

/// Selects the operator and deselects it again, while the fleet continues.
pub(crate) async fn is_chosen_and_given_up(stage: &Stage) -> Result<()> {
    let clusters = stage.clusters();
    chosen(stage, &clusters).await?;
    stage.patch(&json!({"agent": {"operator": null}})).await?;
    for cluster in clusters {
        goes_last(cluster).await?;
    }
    for cluster in clusters {
        taken_away(cluster).await?;
    }
    for cluster in clusters {
        cluster.wait_for(&stage::agent(), |_| true).await?;
        cluster.wait_gone(&operator()).await?;
        let crd = ObjectRef::crd("argocds.argoproj.io");
        let crd = cluster.get(&crd).await?.context("what takes ArgoCDs along stays")?;
        assert_eq!(crd["metadata"]["deletionTimestamp"], Value::Null);
    }
    is_ready(stage).await
}

/// Deletes the fleet, reduced to this cluster, while the operator is installed.
pub(crate) async fn is_there_until_the_end(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster1;
    chosen(stage, &[cluster]).await?;
    stage.hub.delete(&stage::fleet()).await?;
    goes_last(cluster).await?;
    let addon = stage.hub.get(&stage::addon(cluster.name())).await?;
    ensure!(addon.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null()));
    taken_away(cluster).await?;
    cluster.wait_gone(&operator()).await
}

/// Waits until these clusters, which are all, have it.
async fn chosen(stage: &Stage, clusters: &[&ManagedCluster]) -> Result<()> {
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
        ensure!(addon.is_some_and(|it| is_true(&it, "Available")));
    }
    Ok(())
}

async fn is_ready(stage: &Stage) -> Result<()> {
    let is = |it: &Value| {
        ["AgentsUpToDate", "Ready"]
            .iter()
            .all(|kind| condition(it, kind)[0] == "True")
            && is_of_now(it)
    };
    stage.hub.wait_for(&stage::fleet(), is).await.map(drop)
}

/// Returns true if the status is about the current generation.
fn is_of_now(it: &Value) -> bool {
    let all = it["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.all(|condition| condition["observedGeneration"] == it["metadata"]["generation"])
}

/// Checks that the operator is still there while the ArgoCD is being deleted.
async fn goes_last(cluster: &ManagedCluster) -> Result<()> {
    let is_going = |it: &Value| it["metadata"]["deletionTimestamp"].is_string();
    cluster.wait_for(&argocd(), is_going).await?;
    let stays = |it: &Value| it["metadata"]["deletionTimestamp"].is_null();
    cluster.holds_for(&operator(), WHILE, stays).await
}

/// Removes the finalizer, as the operator does after it has deleted its objects.
async fn taken_away(cluster: &ManagedCluster) -> Result<()> {
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
