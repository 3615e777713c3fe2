//! Tests of holds with the pull model: works wait, and catch up by themselves.

use super::{CLUSTER, PulledApplication, stage};
use crate::holds::{declare, run, shows, until_enforced};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const PAUSED: &str = "pull-paused";

#[tokio::test(flavor = "multi_thread")]
async fn works_of_a_cluster_on_hold_wait_and_catch_up_by_themselves() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    declare(hub, &[PAUSED]).await?;
    let mut app = PulledApplication::new(&stage, "pull-held")?;
    app.object["metadata"]["annotations"][CLUSTER] = json!(PAUSED);
    run(hub, &["hold", PAUSED, "--reason", "storage migration"])?;
    until_enforced(hub, PAUSED).await?;
    app.create().await?;
    let on_hold = format!("{PAUSED}: on hold: storage migration");
    shows(hub, &app.application(), &[&on_hold]).await?;
    ensure!(app.works().await?.is_empty(), "a new work waits");
    run(hub, &["hold", PAUSED, "--until", "5s"])?;
    shows(hub, &app.application(), &[]).await?;
    let work = app.work().await?;

    run(hub, &["hold", PAUSED, "--reason", "storage migration"])?;
    until_enforced(hub, PAUSED).await?;
    shows(hub, &app.application(), &[&on_hold]).await?;
    app.patch(&json!({"spec": {"source": {"path": "other"}}})).await?;
    hub.delete(&app.application()).await?;
    let kept = hub.read(&work).await?;
    let source = |it: &Value| it["spec"]["workload"]["manifests"][0]["spec"]["source"]["path"].clone();
    ensure!(
        source(&kept) == "guestbook" && kept["metadata"]["deletionTimestamp"].is_null(),
        "{kept:#}"
    );
    ensure!(hub.get(&app.application()).await?.is_some(), "the Application is gone");
    run(hub, &["release", PAUSED])?;
    hub.wait_gone(&work).await?;
    app.end().await
}
