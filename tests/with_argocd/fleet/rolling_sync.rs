//! Tests of the shipped ApplicationSet that delivers a commit in waves.

use super::fleet;
use crate::stage::{shipped, shipped_object, shipped_objects};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use testbed::{GitRepository, Hub, ObjectRef};

/// The namespace on the clusters, and the label of the managed clusters.
const NAME: &str = "waves";

fn set() -> ObjectRef {
    ObjectRef::application_set("guestbook-waves")
}

fn application(cluster: &str) -> ObjectRef {
    ObjectRef::application(&format!("guestbook-waves-{cluster}"))
}

/// Returns the state in the waves of each cluster's Application for a commit; it is empty for another commit.
fn states(set: &Value, commit: &str) -> [String; 3] {
    let all = set["status"]["applicationStatus"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    ["cluster1", "second", "third"].map(|cluster| {
        let name = application(cluster).name;
        let of_it = |entry: &&Value| entry["application"] == *name && entry["targetRevisions"][0] == commit;
        let state = all.iter().find(of_it).and_then(|entry| entry["status"].as_str());
        state.unwrap_or_default().to_owned()
    })
}

/// Returns the node selector of the Deployment that is delivered to a cluster.
async fn delivered(hub: &Hub, cluster: &str) -> Result<Value> {
    let work = ObjectRef::manifest_work(cluster, &application(cluster).name);
    let work = hub.read(&work).await?;
    let manifests = work["spec"]["workload"]["manifests"].as_array().context("manifests")?;
    let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment");
    Ok(deployment.context("a Deployment")?["spec"]["template"]["spec"]["nodeSelector"].clone())
}

/// Waits until Argo CD compares the Applications of the second wave, so that it does not do so again for some seconds: if it saw a
/// commit there first, it would find the first wave healthy and go on. Then commits, and compares the first wave.
async fn commit(hub: &Hub, git: &GitRepository, deployment: &str) -> Result<String> {
    for cluster in ["second", "third"] {
        hub.refresh_application(&application(cluster).name, "normal").await?;
    }
    let commit = git.commit(&[("guestbook/deployment.yaml", deployment)])?;
    hub.refresh_application(&application("cluster1").name, "normal").await?;
    Ok(commit)
}

/// Applies the example, with other labels of clusters, another repository and another namespace.
async fn apply_example(hub: &Hub, git: &GitRepository) -> Result<()> {
    for mut object in shipped_objects("examples/rolling_sync.yaml")? {
        if object["kind"] == "Placement" {
            let selector = &mut object["spec"]["predicates"][0]["requiredClusterSelector"]["labelSelector"];
            let wave = selector["matchLabels"]["guestbook"].take();
            selector["matchLabels"] = json!({NAME: wave});
        } else if object["kind"] == "ApplicationSet" {
            let spec = &mut object["spec"]["template"]["spec"];
            spec["source"]["repoURL"] = json!(git.url());
            spec["destination"]["namespace"] = json!(NAME);
        }
        hub.apply(&object).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_arrives_in_waves_and_stops_at_a_wave_that_is_not_healthy() -> Result<()> {
    let fleet = fleet().await?;
    let hub = &fleet.hub;
    let git = GitRepository::new()?;
    let first = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    for cluster in fleet.clusters() {
        cluster.create_namespace(NAME).await?;
    }
    for (cluster, wave) in [("cluster1", "canary"), ("second", "fleet"), ("third", "fleet")] {
        let secret = shipped_object("examples/cluster_secret.yaml")?.to_string();
        hub.apply(&serde_json::from_str(&secret.replace("cluster1", cluster))?)
            .await?;
        fleet.label(cluster, NAME, Some(wave)).await?;
    }
    apply_example(hub, &git).await?;
    hub.wait_for(&set(), |set| states(set, &first) == ["Healthy"; 3])
        .await?;

    // Its Pods fit no node, so the first wave does not become healthy.
    let deployment = fs::read_to_string(shipped("guestbook/deployment.yaml"))?;
    let stuck = deployment.replace(
        "    spec:\n      containers:",
        "    spec:\n      nodeSelector: {missing: node}\n      containers:",
    );
    let second = commit(hub, &git, &stuck).await?;
    hub.wait_for(&set(), |set| {
        states(set, &second) == ["Progressing", "Waiting", "Waiting"]
    })
    .await?;
    let delivered_to = async |cluster| delivered(hub, cluster).await;
    ensure!(delivered_to("cluster1").await? == json!({"missing": "node"}));
    for cluster in ["second", "third"] {
        ensure!(delivered_to(cluster).await?.is_null(), "{cluster} did not wait");
    }

    let third = commit(hub, &git, &deployment.replace("replicas: 1", "replicas: 2")).await?;
    hub.wait_for(&set(), |set| states(set, &third) == ["Healthy"; 3])
        .await?;
    ensure!(delivered_to("cluster1").await?.is_null());
    hub.delete(&set()).await?;
    for cluster in ["cluster1", "second", "third"] {
        hub.wait_gone(&application(cluster)).await?;
    }
    Ok(())
}
