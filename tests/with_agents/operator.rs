//! argocd-operator in place of an Argo CD of our own: it comes as another version does, and never goes before what it has made. The
//! test is the operator, of which only the finalizer counts here.

use crate::stage::{self, Stage, condition};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{ManagedCluster, ObjectRef, is_true};

/// How long what must not go is watched.
const WHILE: Duration = Duration::from_secs(5);

/// It is chosen and given up again, by a fleet that goes on.
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
        let crd = ObjectRef::cluster(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "argocds.argoproj.io",
        );
        let crd = cluster.get(&crd).await?.context("what takes ArgoCDs along stays")?;
        assert_eq!(crd["metadata"]["deletionTimestamp"], Value::Null);
    }
    is_ready(stage).await
}

/// It is there when the fleet goes, which has only this cluster left.
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

/// Whether what is said is of what is asked for.
fn is_of_now(it: &Value) -> bool {
    let all = it["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.all(|condition| condition["observedGeneration"] == it["metadata"]["generation"])
}

/// The ArgoCD is to go, and the operator is there for that.
async fn goes_last(cluster: &ManagedCluster) -> Result<()> {
    let is_going = |it: &Value| it["metadata"]["deletionTimestamp"].is_string();
    cluster.wait_for(&argocd(), is_going).await?;
    let stays = |it: &Value| it["metadata"]["deletionTimestamp"].is_null();
    cluster.holds_for(&operator(), WHILE, stays).await
}

/// The operator has taken away what it has made.
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
