//! Checks that a new version rolls out from cluster to cluster while its agents are healthy.

use crate::stage::{self, Stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::{ManagedCluster, ObjectRef, is_true};
use testing::read_condition;

const PLACEMENTS: &str = "cluster.open-cluster-management.io/v1beta1";

/// Rolls out a version whose agents do not start: it stops at the first cluster, and is withdrawn when the old one is requested.
/// A better version reaches all clusters, one after the other. No cluster loses its agent meanwhile.
pub(crate) async fn rolls_out_one_cluster_at_a_time(stage: &Stage) -> Result<()> {
    let Stage {
        hub,
        cluster1,
        cluster2,
        ..
    } = stage;
    let [before] = &entries(stage).await?[..] else {
        anyhow::bail!("the previous rollout has not ended");
    };
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1, "progressDeadline": "15s"}});
    let ask = async |image: Value| {
        let agent = json!({"images": {"supervisor": image}, "rolloutStrategy": strategy});
        stage.patch(&json!({"agent": agent})).await
    };

    // OCM reads the update strategies of every version from the default template, which keeps existing CRDs.
    let crd = ObjectRef::crd("applications.argoproj.io");
    let edited = json!({"spec": {"names": {"categories": ["edited"]}}});
    cluster1.patch(&crd, &edited).await?;

    // New Pods in cluster1 do not start.
    schedule(cluster1, false).await?;
    ask(json!("example.com/argocd-ocm-cmp:v10")).await?;
    let stopped = hub
        .wait_for(&stage::fleet(), |fleet| {
            read_condition(fleet, "AgentsUpToDate")[0] == "False"
        })
        .await?;
    assert_eq!(
        read_condition(&stopped, "AgentsUpToDate"),
        [
            "False",
            "RolloutStopped",
            "0 of 2 clusters have the desired version, 1 at a time; stopped: 1 failed: cluster1"
        ]
    );
    assert_eq!(read_condition(&stopped, "Ready")[0], "False");
    assert!(image(cluster1).await?.ends_with(":v10"));
    assert!(
        !image(cluster2).await?.ends_with(":v10"),
        "the second cluster keeps the working version"
    );
    assert!(image_is_ready(cluster2).await?);
    let [first, next] = &entries(stage).await?[..] else {
        anyhow::bail!("a rollout has two entries");
    };
    assert_eq!(first, before);
    assert_ne!(next, before);
    assert_eq!(decided(stage, "fleet-argocd-agent").await?, ["cluster1", "cluster2"]);
    assert_eq!(decided(stage, "fleet-argocd-agent-next").await?, ["cluster1"]);

    ask(Value::Null).await?;
    let is_back = |agent: &Value| !supervisor_image(agent).ends_with(":v10");
    cluster1.wait_for(&stage::agent(), is_back).await?;
    schedule(cluster1, true).await?;
    wait_for_end(stage, before).await?;
    hub.wait_gone(&stage::template(next)).await?;

    ask(json!("example.com/argocd-ocm-cmp:v11")).await?;
    let is_new = |agent: &Value| supervisor_image(agent).ends_with(":v11");
    cluster1.wait_for(&stage::agent(), is_new).await?;
    assert!(
        !image(cluster2).await?.ends_with(":v11"),
        "the second cluster waits for the first"
    );
    cluster2.wait_for(&stage::agent(), is_new).await?;
    let works = generations(stage).await?;
    let [_, next] = &entries(stage).await?[..] else {
        anyhow::bail!("the rollout ends when all agents are healthy");
    };
    wait_for_end(stage, next).await?;
    assert_eq!(generations(stage).await?, works, "the end of a rollout applies nothing");
    hub.wait_gone(&stage::template(before)).await?;
    let crd = cluster1.read(&crd).await?;
    assert_eq!(crd["spec"]["names"]["categories"], json!(["edited"]));

    ask(Value::Null).await?;
    wait_for_end(stage, before).await
}

/// Waits until there is one entry, of that template, and nothing of the rollout is left.
async fn wait_for_end(stage: &Stage, template: &str) -> Result<()> {
    let Stage { hub, .. } = stage;
    hub.wait_for(&stage::management(), |management| templates(management) == [template])
        .await?;
    for kind in ["PlacementDecision", "Placement"] {
        let suffix = if kind == "Placement" { "" } else { "-decision-1" };
        let name = format!("fleet-argocd-agent-next{suffix}");
        let gone = ObjectRef::namespaced(PLACEMENTS, kind, "argocd", &name);
        hub.wait_gone(&gone).await?;
    }
    let fleet = hub.wait_for(&stage::fleet(), |fleet| is_true(fleet, "Ready")).await?;
    let [status, reason, message] = read_condition(&fleet, "AgentsUpToDate");
    ensure!(status == "True", "{reason}: {message}");
    assert_eq!(message, "2 of 2 clusters have the desired version");
    Ok(())
}

/// Returns the templates that OCM gets, entry by entry.
fn templates(add_on: &Value) -> Vec<&str> {
    let entries = add_on["spec"]["installStrategy"]["placements"].as_array();
    let entries = entries.into_iter().flatten();
    entries
        .filter_map(|entry| entry["configs"][0]["name"].as_str())
        .collect()
}

async fn entries(stage: &Stage) -> Result<Vec<String>> {
    let add_on = stage.hub.read(&stage::management()).await?;
    Ok(templates(&add_on).into_iter().map(str::to_owned).collect())
}

/// Returns the clusters in the decisions of one of our Placements.
async fn decided(stage: &Stage, placement: &str) -> Result<Vec<String>> {
    let name = format!("{placement}-decision-1");
    let decision = ObjectRef::placement_decision(&name);
    let decision = stage.hub.get(&decision).await?.context(name)?;
    let all = decision["status"]["decisions"].as_array().context("decisions")?;
    let names = all.iter().filter_map(|entry| entry["clusterName"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Sets if new Pods run on a cluster.
async fn schedule(cluster: &ManagedCluster, schedulable: bool) -> Result<()> {
    for node in cluster.list("v1", "Node").await? {
        let name = node["metadata"]["name"].as_str().context("a node without a name")?;
        let node = ObjectRef::node(name);
        cluster
            .patch(&node, &json!({"spec": {"unschedulable": !schedulable}}))
            .await?;
    }
    Ok(())
}

async fn image(cluster: &ManagedCluster) -> Result<String> {
    let agent = cluster.read(&stage::agent()).await?;
    Ok(supervisor_image(&agent).to_owned())
}

/// Returns the image of the supervisor. That of argocd-agent would reach all clusters at once.
fn supervisor_image(agent: &Value) -> &str {
    let image = &agent["spec"]["template"]["spec"]["initContainers"][0]["image"];
    image.as_str().unwrap_or_default()
}

async fn image_is_ready(cluster: &ManagedCluster) -> Result<bool> {
    let agent = cluster.read(&stage::agent()).await?;
    Ok(agent["status"]["readyReplicas"] == 1)
}

/// Returns the generation of the add-on's work, cluster by cluster.
async fn generations(stage: &Stage) -> Result<Vec<Value>> {
    let mut generations = Vec::new();
    for cluster in stage.clusters() {
        let work = ObjectRef::manifest_work(cluster.name(), "addon-argocd-agent-addon-deploy-0");
        let work = stage.hub.read(&work).await?;
        generations.push(work["metadata"]["generation"].clone());
    }
    Ok(generations)
}
