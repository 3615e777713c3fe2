//! Tests of holds with Argo CD and OCM: Applications change their other clusters, and catch up after the end.

use crate::app::App;
use crate::stage::{apply, program, stage};
use crate::status::printed;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::application::messages;
use testbed::{Arguments, Hub, ObjectRef, wait};

const FROZEN: &str = "frozen1";
const ON_HOLD: &str = "ManagedClusterOnHoldWarning";

pub(crate) fn run(hub: &Hub, words: &(impl Arguments + ?Sized)) -> Result<String> {
    hub.run(program(), words)
}

/// Declares managed clusters without agents, so that holds disturb no other test, and applies the policy.
pub(crate) async fn declare(hub: &Hub, clusters: &[&str]) -> Result<()> {
    for cluster in clusters {
        hub.declare_managed_cluster(cluster).await?;
    }
    apply(hub, "deploy/holds.yaml")
}

/// Waits until the Application shows exactly these holds.
pub(crate) async fn shows(hub: &Hub, application: &ObjectRef, holds: &[&str]) -> Result<()> {
    let shows = |application: &Value| messages(application, ON_HOLD) == holds;
    hub.wait_for(application, shows).await.map(drop)
}

/// Creates works until that is refused: a policy takes effect with a delay.
pub(crate) async fn until_enforced(hub: &Hub, cluster: &str) -> Result<()> {
    let refused = async || {
        let probe = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"namespace": cluster, "generateName": "probe-"},
            "spec": {"workload": {"manifests": [config_map("probe")]}},
        });
        hub.create(&probe).await.err()
    };
    wait::eventually("the hold is enforced", wait::DEADLINE, refused)
        .await
        .map(drop)
}

pub(crate) fn config_map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"value": value}})
}

pub(crate) fn delivers(value: &str) -> impl Fn(&Value) -> bool {
    move |work| work["spec"]["workload"]["manifests"][0]["data"]["value"] == value
}

#[tokio::test(flavor = "multi_thread")]
async fn application_changes_its_other_clusters_and_catches_up() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    declare(hub, &[FROZEN]).await?;
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
    until_enforced(hub, FROZEN).await?;
    app.push(&[("settings.yaml", &file("after"))]).await?;
    hub.wait_for(&app.work(), delivers("after")).await?;
    let says = |application: &Value| {
        let message = application["status"]["operationState"]["message"].to_string();
        message.contains("managed cluster frozen1 is on hold: storage migration")
    };
    hub.wait_for(&app.application(), says).await?;
    let still = hub.read(&frozen).await?;
    ensure!(delivers("before")(&still), "{still:#}");
    let shown = printed(hub.kubeconfig_path(), &["holding"])?;
    ensure!(
        shown
            .1
            .contains("\nmanaged cluster frozen1 is on hold: storage migration\n"),
        "{shown:?}"
    );

    shows(hub, &app.application(), &["frozen1: on hold: storage migration"]).await?;
    run(hub, &["release", FROZEN])?;
    hub.wait_for(&frozen, delivers("after")).await?;
    shows(hub, &app.application(), &[]).await?;

    run(hub, &["hold", FROZEN])?;
    until_enforced(hub, FROZEN).await?;
    hub.delete(&app.application()).await?;
    hub.wait_gone(&app.work()).await?;
    let live = hub.read(&frozen).await?;
    ensure!(live["metadata"]["deletionTimestamp"].is_null(), "{live:#}");
    ensure!(hub.get(&app.application()).await?.is_some(), "the Application is gone");
    run(hub, &["release", FROZEN])?;
    hub.wait_gone(&frozen).await?;
    app.end().await
}
