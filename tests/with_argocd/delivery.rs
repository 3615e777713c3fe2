//! What a commit comes to: the Application's works on the hub, and its objects on the managed cluster.

use anyhow::Result;
use argocd_ocm_cmp::generate::names::WorkName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testbed::{ControlPlane, Hub, ObjectRef, is_synced};

/// Has Argo CD look at the commit, and waits until it has brought it to the hub and removed what is no longer in it.
pub(crate) async fn synced(hub: &Hub, application: &str, commit: &str) -> Result<Value> {
    hub.refresh_application(application, "hard").await?;
    hub.wait_for(&ObjectRef::application(application), |app| is_synced_to(app, commit))
        .await
}

/// The same until all of it is healthy on the managed cluster.
pub(crate) async fn delivered(hub: &Hub, application: &str, commit: &str) -> Result<Value> {
    hub.refresh_application(application, "hard").await?;
    hub.wait_for(&ObjectRef::application(application), |app| {
        is_synced_to(app, commit) && app["status"]["health"]["status"] == "Healthy"
    })
    .await
}

fn is_synced_to(application: &Value, commit: &str) -> bool {
    let status = &application["status"];
    let operation = &status["operationState"];
    is_synced(application)
        && status["sync"]["revision"] == commit
        && operation["phase"] == "Succeeded"
        && operation["syncResult"]["revision"] == commit
}

/// How many syncs of the Application have succeeded so far.
pub(crate) fn syncs(application: &Value) -> u64 {
    let history = application["status"]["history"].as_array();
    history
        .and_then(|history| history.last())
        .and_then(|last| last["id"].as_u64())
        .map_or(0, |id| id + 1)
}

/// The works of an Application, for whichever cluster.
pub(crate) async fn works_of(hub: &Hub, application: &str) -> Result<Vec<Value>> {
    let own: WorkName = application.parse()?;
    let mut works = hub.list("work.open-cluster-management.io/v1", "ManifestWork").await?;
    works.retain(|work| own.is_of(name(work)));
    Ok(works)
}

/// The works of an Application for `cluster1`, by name.
pub(crate) async fn works(hub: &Hub, application: &str) -> Result<BTreeMap<String, Value>> {
    let works = works_of(hub, application).await?.into_iter();
    Ok(works
        .filter(|work| work["metadata"]["namespace"] == "cluster1")
        .map(|work| (name(&work).to_owned(), work))
        .collect())
}

/// The objects in a work, each as `Kind name`.
pub(crate) fn objects_of(work: &Value) -> BTreeSet<String> {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let kind = |object: &Value| object["kind"].as_str().unwrap_or_default().to_owned();
    manifests
        .into_iter()
        .flatten()
        .map(|object| format!("{} {}", kind(object), name(object)))
        .collect()
}

/// The objects of these kinds, given as apiVersion and kind, in a namespace, each by `Kind name`.
pub(crate) async fn objects_in(
    cluster: &ControlPlane,
    namespace: &str,
    kinds: &[(&str, &str)],
) -> Result<BTreeMap<String, Value>> {
    let mut objects = BTreeMap::new();
    for (api_version, kind) in kinds {
        let all = cluster.list(api_version, kind).await?;
        let here = all
            .into_iter()
            .filter(|object| object["metadata"]["namespace"] == namespace);
        objects.extend(here.map(|object| (format!("{kind} {}", name(&object)), object)));
    }
    Ok(objects)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
