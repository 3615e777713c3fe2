//! Tests that an unchanged state costs no requests, and a change costs one write.

use crate::stage::{Stage, WorkHealth, lists, stage, writes, writes_of};
use anyhow::Result;
use serde_json::json;
use testbed::ObjectRef;
use testbed::application::{APPLY_ERROR, DEGRADED, INFO};
use testbed::proxy::RecordedRequest;

/// Creates Applications in every state.
async fn fleet(stage: &Stage) -> Result<Vec<ObjectRef>> {
    let mut applications = Vec::new();
    for at in 0..10 {
        for (name, health) in [
            ("well", WorkHealth::Healthy),
            ("badly", WorkHealth::Degraded("it is broken")),
            ("refused", WorkHealth::ApplyFailed("it is refused")),
        ] {
            applications.push(stage.application(&format!("{name}-{at}"), health).await?);
        }
    }
    Ok(applications)
}

/// Changes one Application and waits for its condition: then earlier changes are reconciled.
async fn change(stage: &Stage, application: &ObjectRef, why: &'static str) -> Result<()> {
    stage
        .report_health(&application.name, WorkHealth::Degraded(why))
        .await?;
    stage.wait_for_condition(application, DEGRADED, why).await.map(drop)
}

/// Asserts that only this Application was written, once.
fn assert_only(requests: &[RecordedRequest], application: &ObjectRef) {
    let mut all = writes(requests);
    all.retain(|write| !write.contains("/events"));
    let end = format!("/applications/{}: ", application.name);
    assert!(all.len() == 1 && all[0].contains(&end), "{all:#?}");
}

#[tokio::test]
async fn change_costs_one_write_and_a_restart_none() -> Result<()> {
    let stage = stage("idle").await?;
    let hub = &stage.hub;
    let applications = fleet(&stage).await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    for application in &applications {
        let (kind, text) = match &*application.name {
            name if name.starts_with("badly") => (DEGRADED, "it is broken"),
            name if name.starts_with("refused") => (APPLY_ERROR, "it is refused"),
            _ => (INFO, "healthy on 1"),
        };
        stage.wait_for_condition(application, kind, text).await?;
    }
    let requests = proxy.requests();
    for application in &applications {
        assert_eq!(writes_of(&requests, application).len(), 1, "{application}");
    }

    // Agents write a status again with the same content, users add labels: no write follows.
    let mark = proxy.mark();
    for application in &applications {
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        hub.patch(application, &label).await?;
        let work = ObjectRef::manifest_work(&stage.cluster, &application.name);
        hub.patch(&work, &label).await?;
        hub.patch_status(
            &work,
            &json!({"status": {"conditions": hub.get(&work).await?
            .map_or(json!([]), |work| again(&work["status"]["conditions"]))}}),
        )
        .await?;
    }
    change(&stage, &applications[0], "it broke").await?;
    let requests = proxy.requests();
    assert_only(&requests[mark..], &applications[0]);
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    controller.stop().await?;

    // Through a separate proxy, so that requests of the first are not counted.
    let proxy = stage.proxy().await?;
    let _controller = stage.controller(&proxy).await?;
    change(&stage, &applications[0], "it broke again").await?;
    let requests = proxy.requests();
    assert_only(&requests, &applications[0]);
    let listed = lists(&requests);
    assert_eq!(listed.len(), 6, "each kind is listed once: {listed:#?}");
    Ok(())
}

/// Returns the same conditions with another time.
fn again(conditions: &serde_json::Value) -> serde_json::Value {
    let mut conditions = conditions.clone();
    for condition in conditions.as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = json!("2021-01-01T00:00:00Z");
    }
    conditions
}
