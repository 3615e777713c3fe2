//! The results of a commit: the Application's works on the hub, and its objects on the managed cluster.

use anyhow::Result;
use ocm::names::WorkName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testbed::application::has_health;
use testbed::{ControlPlane, Hub, ObjectRef, is_synced};
use tokio::time::timeout;

/// Refreshes the Application, and waits until Argo CD has synced the commit and pruned the rest.
pub(crate) async fn synced(hub: &Hub, application: &str, commit: &str) -> Result<Value> {
    refreshed_until(hub, application, |app| is_synced_to(app, commit)).await
}

/// Waits like [`synced`], and until all objects are healthy on the managed cluster.
pub(crate) async fn delivered(hub: &Hub, application: &str, commit: &str) -> Result<Value> {
    refreshed_until(hub, application, |app| {
        is_synced_to(app, commit) && has_health(app, "Healthy")
    })
    .await
}

/// The time after which a refresh is requested again.
const LOST: Duration = Duration::from_secs(30);

/// Refreshes the Application, several times if needed, and waits until it is as wanted.
///
/// A refresh can get lost: if Argo CD began to reconcile with a cached copy of the Application that still has the annotation of
/// the previous refresh, it removes the new annotation at the end, without having resolved the new commit. It then resolves HEAD
/// from its cache for three minutes.
async fn refreshed_until(hub: &Hub, application: &str, is_done: impl Fn(&Value) -> bool) -> Result<Value> {
    let app = ObjectRef::application(application);
    for _ in 0..4 {
        hub.refresh_application(application, "hard").await?;
        if let Ok(done) = timeout(LOST, hub.wait_for(&app, &is_done)).await {
            return done;
        }
    }
    hub.refresh_application(application, "hard").await?;
    hub.wait_for(&app, &is_done).await
}

fn is_synced_to(application: &Value, commit: &str) -> bool {
    let status = &application["status"];
    let operation = &status["operationState"];
    is_synced(application)
        && status["sync"]["revision"] == commit
        && operation["phase"] == "Succeeded"
        && operation["syncResult"]["revision"] == commit
}

/// Returns the number of successful syncs of the Application.
pub(crate) fn syncs(application: &Value) -> u64 {
    let history = application["status"]["history"].as_array();
    history
        .and_then(|history| history.last())
        .and_then(|last| last["id"].as_u64())
        .map_or(0, |id| id + 1)
}

/// Returns the works of an Application for all clusters.
pub(crate) async fn works_of(hub: &Hub, application: &str) -> Result<Vec<Value>> {
    let work_name: WorkName = application.parse()?;
    let mut works = hub.works().await?;
    works.retain(|work| work_name.is_of(name(work)));
    Ok(works)
}

/// Returns the works of an Application for `cluster1`, by name.
pub(crate) async fn works(hub: &Hub, application: &str) -> Result<BTreeMap<String, Value>> {
    let works = works_of(hub, application).await?.into_iter();
    Ok(works
        .filter(|work| work["metadata"]["namespace"] == "cluster1")
        .map(|work| (name(&work).to_owned(), work))
        .collect())
}

/// Returns the objects in a work, each as `Kind name`.
pub(crate) fn objects_of(work: &Value) -> BTreeSet<String> {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let kind = |object: &Value| object["kind"].as_str().unwrap_or_default().to_owned();
    manifests
        .into_iter()
        .flatten()
        .map(|object| format!("{} {}", kind(object), name(object)))
        .collect()
}

/// Returns the objects of these kinds, given as apiVersion and kind, in a namespace, each by `Kind name`.
pub(crate) async fn objects_in(
    cluster: &ControlPlane,
    namespace: &str,
    kinds: &[(&str, &str)],
) -> Result<BTreeMap<String, Value>> {
    let mut objects = BTreeMap::new();
    for (api_version, kind) in kinds {
        let all = cluster.list(api_version, kind).await?;
        let matches = all
            .into_iter()
            .filter(|object| object["metadata"]["namespace"] == namespace);
        objects.extend(matches.map(|object| (format!("{kind} {}", name(&object)), object)));
    }
    Ok(objects)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
