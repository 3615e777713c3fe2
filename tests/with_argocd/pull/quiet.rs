//! Tests that the controller writes nothing when nothing changes.

use super::{PulledApplication, Stage, runs, stage};
use crate::controller::ACCOUNT;
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;
use testbed::application::messages;
use testbed::wait;

/// Returns the controller's write requests for objects with these names.
fn writes(stage: &Stage, names: &[&str]) -> Result<Vec<Value>> {
    let mut requests = stage.hub.requests_by(ACCOUNT)?;
    requests.retain(|event| {
        let writes = matches!(event["verb"].as_str(), Some("create" | "update" | "patch" | "delete"));
        let name = event["objectRef"]["name"].as_str().unwrap_or_default();
        // The names of Events begin with the name of the object.
        writes && names.iter().any(|prefix| name.starts_with(prefix))
    });
    Ok(requests)
}

/// Checks that nothing is written for a running Application while its cluster compares it repeatedly.
async fn check_no_writes(app: &PulledApplication<'_>) -> Result<()> {
    let stage = app.stage;
    let work = app.work().await?;
    let names = [app.name.as_str(), work.name.as_str()];
    assert!(!writes(stage, &names)?.is_empty(), "otherwise the test proves nothing");
    let compared = async || {
        let live = stage.cluster1.read(&app.application()).await?;
        anyhow::Ok(live["status"]["reconciledAt"].to_string())
    };
    // Its Argo CD compares every ten seconds, and the agent reports within the next two. The first report contains earlier
    // changes.
    let mut written = Vec::new();
    for _ in 0..2 {
        let before = compared().await?;
        let again = async || (compared().await.ok()? > before).then_some(());
        wait::eventually("Argo CD compares the Application", wait::DEADLINE, again).await?;
        let runs = |application: &Value| runs(application, &app.commit);
        let duration = Duration::from_secs(5);
        stage.hub.holds_for(&app.application(), duration, runs).await?;
        written.push(writes(stage, &names)?);
    }
    assert_eq!(
        written[0].len(),
        written[1].len(),
        "{:#?}",
        &written[1][written[0].len()..]
    );
    Ok(())
}

#[tokio::test]
async fn hubs_condition_on_an_unknown_cluster_is_left_alone() -> Result<()> {
    let stage = stage().await?;
    let mut app = PulledApplication::new(&stage, "pull-unknown-server")?;
    // On the cluster the destination is the cluster itself.
    app.object["spec"]["destination"]["server"] = json!("https://unknown.example.com:6443");
    let app = app.start().await?;
    check_no_writes(&app).await?;
    // Argo CD 3.2 on the hub adds this condition at every watch event, although the Application is not its own; 3.6 does not. Each
    // write of the controller removes it, so the controller must stop writing.
    let has_condition = |app: &Value| matches!(messages(app, "InvalidSpecError")[..], [message] if message.contains("unknown.example.com"));
    let mut conditions = app.on_hub().await?["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if conditions
        .iter()
        .all(|condition| condition["type"] != "InvalidSpecError")
    {
        conditions.push(json!({
            "type": "InvalidSpecError",
            "message": "error getting cluster by server \"https://unknown.example.com:6443\": NotFound",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }));
        app.patch(&json!({"status": {"conditions": conditions}})).await?;
    }
    stage.hub.wait_for(&app.application(), has_condition).await?;
    check_no_writes(&app).await?;
    let now = app.on_hub().await?;
    assert!(has_condition(&now), "{now:#}");
    app.end().await
}
