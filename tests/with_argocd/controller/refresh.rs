//! Tests that a new message with the same health reaches Argo CD, which refreshes an Application only when the health of a
//! resource changes.

use super::{health, shown};
use crate::app::App;
use crate::stage::stage;
use anyhow::Result;
use jiff::Timestamp;
use ocm::health::{self as work_health, Clock};
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};

/// Returns a Deployment of two Pods that may not share a node, on nodes with a label: on the only node, one runs as soon as the
/// node has that label.
fn web(name: &str) -> String {
    let labels = json!({"app": name});
    let apart = json!({"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"});
    ObjectRef::cluster("apps/v1", "Deployment", "web")
        .with(json!({"spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {name: "true"},
                    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
                    "containers": [{"name": "web", "image": "nginx"}],
                },
            },
        }}))
        .to_string()
}

#[tokio::test]
async fn changed_message_of_the_same_health_reaches_argo_cd() -> Result<()> {
    let stage = stage().await?;
    let (hub, name) = (&stage.hub, "controller-refresh");
    stage.cluster1.create_namespace(name).await?;
    let app = App::start(stage, name, &[], &[("web.json", &web(name))]).await?;
    let message = |available: u32| {
        let message = format!("waiting for rollout to finish: {available} of 2 updated replicas are available");
        ("Progressing".to_owned(), format!("Deployment {name}/web: {message}"))
    };
    let shows = async |expected: (String, String)| {
        let is_shown = async || (shown(hub, name)? == expected).then_some(());
        wait::eventually("Argo CD shows it", wait::DEADLINE, is_shown).await
    };
    shows(message(0)).await?;

    hub.wait_for(&app.application(), |app| health(app) == "Progressing")
        .await?;

    // In these tests, Argo CD compares every Application again after some seconds, elsewhere after minutes. So the test checks
    // who requested the refresh.
    let label = json!({"metadata": {"labels": {name: "true"}}});
    hub.patch(&app.application(), &label).await?;
    let recording = hub.record("argoproj.io/v1alpha1", "Application", name).await?;
    let node = ObjectRef::node("node-1");
    stage.cluster1.patch(&node, &label).await?;
    let has_message = |work: &Value| {
        let evaluated = work_health::evaluate(&work.to_string(), &Clock::at(Timestamp::now()));
        evaluated.is_ok_and(|work| work.summary().contains("1 of 2 updated replicas"))
    };
    let work = hub.wait_for(&app.work(), has_message).await?;
    let is_requested = async || {
        let has_refresh = |app: &Value| app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "normal";
        let has_refresh = |app: &Value| has_refresh(app) && version(app) > version(&work);
        recording.states().iter().any(has_refresh).then_some(())
    };
    wait::eventually("the controller requests a refresh", wait::DEADLINE, is_requested).await?;
    shows(message(1)).await?;
    for state in recording.states() {
        assert_eq!(
            health(&state),
            "Progressing",
            "otherwise the test proves nothing: {:#}",
            state["status"]
        );
    }
    app.end().await
}

/// Returns the resource version of an object as a number: the API server has one counter for all objects.
fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
