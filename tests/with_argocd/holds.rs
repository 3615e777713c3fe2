//! Tests of holds with Argo CD: an Application changes its other clusters, and catches up after the end.

use crate::app::App;
use crate::stage::{program, shipped, stage};
use crate::status::printed;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::{Hub, ObjectRef, wait};

const FROZEN: &str = "frozen1";

fn run(hub: &Hub, words: &[&str]) -> Result<String> {
    hub.run(program(), words)
}

/// Creates works until that is refused: a policy takes effect with a delay.
async fn until_enforced(hub: &Hub) -> Result<()> {
    let refused = async || {
        let probe = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"namespace": FROZEN, "generateName": "probe-"},
            "spec": {"workload": {"manifests": [config_map("probe")]}},
        });
        hub.create(&probe).await.err()
    };
    wait::eventually("the hold is enforced", wait::DEADLINE, refused)
        .await
        .map(drop)
}

fn config_map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"value": value}})
}

fn delivers(value: &str) -> impl Fn(&Value) -> bool {
    move |work| work["spec"]["workload"]["manifests"][0]["data"]["value"] == value
}

#[tokio::test(flavor = "multi_thread")]
async fn application_changes_its_other_clusters_and_catches_up() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    hub.declare_managed_cluster(FROZEN).await?;
    hub.kubectl(&[
        "apply",
        "-f",
        shipped("deploy/holds.yaml").to_str().context("a plain path")?,
    ])?;
    let clusters = [("clusters", &["cluster1", FROZEN][..])];
    let file = |value| config_map(value).to_string();
    let app = App::start(stage, "holding", &clusters, &[("settings.yaml", &file("before"))]).await?;
    let frozen = ObjectRef::manifest_work(FROZEN, "holding");
    hub.wait_for(&frozen, delivers("before")).await?;

    // A hold is often longer than the usual retries, and Argo CD does not repeat a failed sync.
    let retry = json!({"limit": -1, "backoff": {"duration": "5s", "factor": 1}});
    let retries = json!({"spec": {"syncPolicy": {"retry": retry}}});
    hub.patch(&app.application(), &retries).await?;
    run(hub, &["hold", FROZEN, "--reason", "storage migration"])?;
    until_enforced(hub).await?;
    app.push(&[("settings.yaml", &file("after"))]).await?;
    hub.wait_for(&app.work(), delivers("after")).await?;
    let says = |it: &Value| {
        let message = it["status"]["operationState"]["message"].to_string();
        message.contains("managed cluster frozen1 is on hold: storage migration")
    };
    hub.wait_for(&app.application(), says).await?;
    let still = hub.get(&frozen).await?.context("the work is gone")?;
    ensure!(delivers("before")(&still), "{still:#}");
    let shown = printed(hub.kubeconfig_path(), &["holding"])?;
    ensure!(
        shown
            .1
            .contains("\nmanaged cluster frozen1 is on hold: storage migration\n"),
        "{shown:?}"
    );

    run(hub, &["release", FROZEN])?;
    hub.wait_for(&frozen, delivers("after")).await?;
    app.end().await
}
