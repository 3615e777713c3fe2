//! Tests that an agent that does nothing, and an object of two Applications, are conditions on the Application.

use super::wait_for_event;
use crate::app::App;
use crate::stage::stage;
use crate::status;
use anyhow::Result;
use serde_json::{Value, json};
use testbed::application::{INFO, messages};
use testbed::{Hub, ObjectRef, new_condition, wait};

const UNREACHABLE: &str = "ManagedClusterUnreachableWarning";
const OVERDUE: &str = "ManifestWorkOverdueWarning";

/// A cluster that OCM calls available, and whose work agent does not run.
const CLUSTER: &str = "cluster-of-the-silent";

/// Sets the availability of the managed cluster in OCM.
async fn set_availability(hub: &Hub, status: &str) -> Result<()> {
    let condition = new_condition("ManagedClusterConditionAvailable", status, "", &json!(1));
    let conditions = json!({"status": {"conditions": [condition]}});
    let cluster = ObjectRef::managed_cluster(CLUSTER);
    hub.patch_status(&cluster, &conditions).await.map(drop)
}

#[tokio::test]
async fn stopped_work_agent_is_named_after_two_minutes_and_during_the_deletion() -> Result<()> {
    let stage = stage().await?;
    let (hub, name) = (&stage.hub, "controller-stopped");
    hub.declare_managed_cluster(CLUSTER).await?;
    set_availability(hub, "True").await?;
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
    let settings: [(&str, &[&str]); 1] = [("clusters", &[CLUSTER])];
    let app = App::start_on(hub, name, &settings, &[("a.json", &config_map)], false).await?;
    let reason = format!("waiting for the agent of managed cluster {CLUSTER} to apply it, for more than 2 minutes");
    let message = format!("{CLUSTER}: {reason}");
    let is_reported = async || {
        let now = hub.get(&app.application()).await.ok()??;
        (messages(&now, OVERDUE) == [&*message]).then_some(now)
    };
    let application = wait::eventually("it is overdue", 2 * wait::DEADLINE, is_reported).await?;
    assert!(messages(&application, UNREACHABLE).is_empty(), "{application:#}");
    wait_for_event(hub, &application, ("Warning", "ManifestWorkOverdue"), 1, &reason).await?;
    let (code, stdout, _) = status::printed(hub.kubeconfig_path(), &[name])?;
    let line = format!("{name} waits: {message}: check that klusterlet-work-agent runs there, and read its log");
    assert!(code == Some(1) && stdout.lines().any(|row| row == line), "{stdout}");

    // The registration agent stops too, and OCM no longer knows whether the cluster is available.
    set_availability(hub, "Unknown").await?;
    let unreachable = format!("{CLUSTER}: its agent does not report to the hub; showing the last reported state");
    let is_unreachable =
        |app: &Value| messages(app, UNREACHABLE) == [&*unreachable] && messages(app, OVERDUE).is_empty();
    hub.wait_for(&app.application(), is_unreachable).await?;
    wait_for_event(hub, &application, ("Warning", "ManagedClusterUnreachable"), 1, CLUSTER).await?;
    set_availability(hub, "True").await?;

    // The agent adds this finalizer, and removes it when it has removed the objects.
    let work = ObjectRef::manifest_work(CLUSTER, name);
    let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
    let of_agent = json!(["cluster.open-cluster-management.io/manifest-work-cleanup"]);
    hub.patch(&work, &finalizers(of_agent)).await?;
    hub.delete(&app.application()).await?;
    let is_deleting = |app: &Value| messages(app, INFO) == ["deleting: 1 work left on 1 cluster"];
    hub.wait_for(&app.application(), is_deleting).await?;
    hub.patch(&work, &finalizers(Value::Null)).await?;
    hub.wait_gone(&app.application()).await
}
