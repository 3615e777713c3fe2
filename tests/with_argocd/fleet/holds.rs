//! Tests of holds with Placements: their other clusters change, a rollout waits, and all catch up after the end.

use super::fleet;
use crate::app::App;
use crate::holds::{config_map, declare, delivers, run, shows, until_enforced};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{Hub, ObjectRef, new_condition, wait};

const HELD: [&str; 3] = ["held-1", "held-2", "held-3"];

/// Returns the work that OCM created for a cluster, once it delivers this value.
async fn placed(hub: &Hub, cluster: &str, value: &str) -> Result<ObjectRef> {
    let find = async || {
        let works = hub.works().await.ok()?;
        let is_it = |work: &&Value| work["metadata"]["namespace"] == cluster && delivers(value)(work);
        let name = works.iter().find(is_it)?["metadata"]["name"].as_str()?.to_owned();
        Some(ObjectRef::manifest_work(cluster, &name))
    };
    let what = format!("{cluster} has {value}");
    wait::eventually(&what, wait::DEADLINE, find).await
}

/// Waits until a cluster has this value, and reports it as applied and complete, as the agent would.
async fn complete(hub: &Hub, cluster: &str, value: &str) -> Result<()> {
    let object_ref = placed(hub, cluster, value).await?;
    let work = hub.read(&object_ref).await?;
    let conditions = [("Applied", "True"), ("Available", "True"), ("Progressing", "False")]
        .map(|(kind, status)| new_condition(kind, status, "", &work["metadata"]["generation"]));
    hub.patch_status(&object_ref, &json!({"status": {"conditions": conditions}}))
        .await
        .map(drop)
}

/// Returns the value that the work of each cluster delivers.
async fn values(hub: &Hub, name: &str) -> Result<Vec<String>> {
    let mut works = hub.works().await?;
    works.retain(|work| {
        work["metadata"]["name"]
            .as_str()
            .is_some_and(|text| text.starts_with(name))
    });
    works.sort_by_key(|work| work["metadata"]["namespace"].to_string());
    let value = |work: &Value| {
        work["spec"]["workload"]["manifests"][0]["data"]["value"]
            .as_str()
            .map(str::to_owned)
    };
    Ok(works.iter().filter_map(value).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn placement_and_its_rollout_wait_for_a_cluster_on_hold() -> Result<()> {
    let fleet = fleet().await?;
    let hub = &fleet.hub;
    declare(hub, &HELD).await?;
    for cluster in HELD {
        let label = json!({"metadata": {"labels": {"held": "true"}}});
        hub.patch(&ObjectRef::managed_cluster(cluster), &label).await?;
    }
    hub.apply(&ObjectRef::placement("held").with(json!({"spec": {
        "clusterSets": ["global"],
        "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"held": "true"}}}}],
    }})))
    .await?;
    let placement = ("placement", &["argocd/held"][..]);
    let file = |value| config_map(value).to_string();
    let app = App::start_on(hub, "held", &[placement], &[("settings.yaml", &file("1"))], false).await?;
    for cluster in HELD {
        placed(hub, cluster, "1").await?;
    }

    run(hub, "hold held-2")?;
    until_enforced(hub, "held-2").await?;
    app.push(&[("settings.yaml", &file("2"))]).await?;
    for cluster in ["held-1", "held-3"] {
        placed(hub, cluster, "2").await?;
    }
    shows(hub, &app.application(), &["held-2: on hold"]).await?;
    ensure!(values(hub, "held").await? == ["2", "1", "2"], "the others go on");
    // Ends by itself.
    run(hub, "hold held-2 --until 5s")?;
    placed(hub, "held-2", "2").await?;
    shows(hub, &app.application(), &[]).await?;

    let one_by_one = [("rollout", &["Progressive"][..]), ("rollout-max-concurrency", &["1"])];
    app.set(&[&[placement], &one_by_one[..]].concat()).await?;
    app.push(&[("settings.yaml", &file("3"))]).await?;
    for cluster in HELD {
        complete(hub, cluster, "3").await?;
    }
    run(hub, "hold held-2")?;
    until_enforced(hub, "held-2").await?;
    app.push(&[("settings.yaml", &file("4"))]).await?;
    complete(hub, "held-1", "4").await?;
    let next = placed(hub, "held-3", "3").await?;
    hub.holds_for(&next, Duration::from_secs(10), delivers("3")).await?;
    ensure!(values(hub, "held").await? == ["4", "3", "3"], "the next cluster waits");
    run(hub, "release held-2")?;
    complete(hub, "held-2", "4").await?;
    complete(hub, "held-3", "4").await?;
    app.end().await
}
