//! Tests that objects on a managed cluster follow Git, with the agent's permissions for each kind, and no others.

use crate::app::App;
use crate::documents::documents;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use ocm::health::{self, Clock, HealthStatus};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::{ManagedCluster, ObjectRef, is_true};
use testing::merge;

/// An object in Git, with its changes: updates/cases.yaml.
#[derive(Clone, Deserialize)]
struct Case {
    object: Value,
    by_hand: Value,
    then: Values,
    in_git: Value,
    at_last: Values,
}

/// Values of an object, by their JSON pointers.
type Values = BTreeMap<String, Value>;

/// The namespace of the objects here, and the name of their Application.
const NAMESPACE: &str = "updates";

/// The volume that a claim is bound to; no other claim on the cluster may use it.
const VOLUME: &str = "updates-data";

fn volume() -> Value {
    ObjectRef::cluster("v1", "PersistentVolume", VOLUME).with(json!({"spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": NAMESPACE, "name": "data"},
    }}))
}

fn cases() -> Result<Vec<Case>> {
    let cases = documents(include_str!("updates/cases.yaml"))?.into_iter();
    Ok(cases.map(serde_json::from_value).collect::<Result<_, _>>()?)
}

fn has(object: &Value, values: &Values) -> bool {
    values
        .iter()
        .all(|(field, value)| object.pointer(field).unwrap_or(&Value::Null) == value)
}

impl Case {
    /// Returns the identity of the object on the cluster.
    fn on_cluster(&self) -> ObjectRef {
        let mut object = ObjectRef::of(&self.object);
        if object.kind != "CustomResourceDefinition" {
            object.namespace = Some(NAMESPACE.to_owned());
        }
        object
    }

    /// Returns the values that change when the object does; separate for its status if it has its own generation.
    async fn version(&self, cluster: &ManagedCluster) -> Result<(String, Value, Value)> {
        let object = self.on_cluster();
        let live = cluster.read(&object).await?;
        let metadata = &live["metadata"];
        let changes = [&metadata["generation"], &metadata["resourceVersion"]];
        let changes = changes.into_iter().find(|version| !version.is_null());
        Ok((
            object.to_string(),
            metadata["uid"].clone(),
            changes.cloned().unwrap_or_default(),
        ))
    }
}

/// Formats the objects as a file of the repository. Characters that YAML does not permit are escaped.
fn file(cases: &[Case]) -> String {
    let objects: Vec<&Value> = cases.iter().map(|case| &case.object).collect();
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let escaped = |char: char| match char {
        '\u{7f}' | '\u{85}' | '\u{ffff}' => format!("\\u{:04x}", u32::from(char)),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Returns true if the agent has applied all of a work.
fn is_applied_or_pending(work: &Value) -> bool {
    let manifests = work["status"]["resourceStatus"]["manifests"].as_array();
    let applied = |owner: &Value| {
        owner["conditions"].as_array().is_none_or(|all| {
            all.iter()
                .all(|condition| condition["type"] != "Applied" || condition["status"] == "True")
        })
    };
    applied(&work["status"]) && manifests.is_none_or(|all| all.iter().all(applied))
}

#[tokio::test]
async fn objects_follow_git_and_stay_healthy_while_updated() -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    cluster1.create_namespace(NAMESPACE).await?;
    cluster1.create(&volume()).await?;
    let cases = cases()?;
    let read_only = cases.iter().find(|case| case.object["metadata"]["name"] == "looked-at");
    let mut theirs = read_only.context("an object of others")?.object.clone();
    theirs["metadata"]["namespace"] = json!(NAMESPACE);
    cluster1.create(&theirs).await?;

    let settings: &[(&str, &[&str])] = &[("allow-secrets", &["true"])];
    let app = App::start(stage, NAMESPACE, settings, &[("all.json", &file(&cases))]).await?;
    let work = app.work();
    stage.hub.wait_for(&work, |_| true).await?;
    tokio::select! {
        // Longer than the rest of the test can take.
        failure = stage.hub.holds_for(&work, Duration::from_secs(3600), is_applied_or_pending) => failure,
        done = follow(stage, &app, cases) => done,
    }?;
    app.end().await?;
    cluster1
        .delete(&ObjectRef::cluster("v1", "PersistentVolume", VOLUME))
        .await
}

async fn follow(stage: &Stage, app: &App<'_>, mut cases: Vec<Case>) -> Result<()> {
    let cluster1 = &stage.cluster1;
    app.applied().await?;
    let claim = ObjectRef::namespaced("v1", "PersistentVolumeClaim", NAMESPACE, "data");
    cluster1.wait_for_value(&claim, "/status/phase", "Bound").await?;
    let job = ObjectRef::namespaced("batch/v1", "Job", NAMESPACE, "once");
    cluster1.wait_for(&job, |job| is_true(job, "Complete")).await?;
    let is_scaled = |scaled: &Value| scaled["spec"]["replicas"] == 2 && scaled["status"]["availableReplicas"] == 2;
    cluster1
        .wait_for(&ObjectRef::deployment(NAMESPACE, "scaled"), is_scaled)
        .await?;

    // Nothing has changed, so nothing is written.
    let last = cases.last().context("the last object")?.clone();
    let quiet = || async {
        let mut versions = Vec::new();
        for case in cases.iter().filter(|case| case.on_cluster() != last.on_cluster()) {
            versions.push(case.version(cluster1).await?);
        }
        anyhow::Ok(versions)
    };
    let before = quiet().await?;
    for _ in 0..3 {
        again(cluster1, app, &last).await?;
    }
    assert_eq!(quiet().await?, before);

    for case in &cases {
        cluster1.patch(&case.on_cluster(), &case.by_hand).await?;
    }
    again(cluster1, app, &last).await?;
    for case in &cases {
        cluster1
            .wait_for(&case.on_cluster(), |object| has(object, &case.then))
            .await?;
    }
    // Permitted manual changes stay, also after all other objects were applied again.
    again(cluster1, app, &last).await?;
    for case in &cases {
        check_stays(cluster1, case, &case.then).await?;
    }

    for case in &mut cases {
        merge(&mut case.object, &case.in_git);
    }
    app.commit(&[("all.json", &file(&cases))]).await?;
    app.applied().await?;
    for case in &cases {
        check_stays(cluster1, case, &case.at_last).await?;
    }
    // The agent reports the state of the objects after it has applied all of them.
    let is_ignored = |work: &Value| {
        let work = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now()));
        work.is_ok_and(|work| {
            let mut objects = work.objects.iter();
            objects.any(|object| object.name == "unbound" && object.health == HealthStatus::Healthy)
        })
    };
    stage.hub.wait_for(&app.work(), is_ignored).await.map(drop)
}

/// Makes the agent apply everything again, and waits until it has.
async fn again(cluster1: &ManagedCluster, app: &App<'_>, last: &Case) -> Result<()> {
    cluster1.patch(&last.on_cluster(), &last.by_hand).await?;
    app.reconcile().await?;
    cluster1
        .wait_for(&last.on_cluster(), |object| has(object, &last.then))
        .await
        .map(drop)
}

async fn check_stays(cluster: &ManagedCluster, case: &Case, values: &Values) -> Result<()> {
    let object = case.on_cluster();
    let live = cluster.read(&object).await?;
    ensure!(has(&live, values), "{object} does not have {values:?}:\n{live:#}");
    Ok(())
}
