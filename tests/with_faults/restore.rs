//! Tests of a hub whose etcd is restored in place, with an older revision: watches would miss all changes.

use crate::stage::{Stage, WorkHealth, config_map, own_stage, writes, writes_of};
use anyhow::{Context, Result};
use testbed::application::DEGRADED;
use testbed::wait;

/// Waits until the controller has renewed its Lease after the hub's latest write.
async fn until_lease_is_renewed(stage: &Stage) -> Result<()> {
    let latest = config_map("latest");
    let written = stage.hub.create(&latest).await?;
    let revision =
        |object: &serde_json::Value| -> Option<u64> { object["metadata"]["resourceVersion"].as_str()?.parse().ok() };
    let latest = revision(&written).context("a resource version")?;
    let renewed = async || {
        let leases = stage.hub.list("coordination.k8s.io/v1", "Lease").await.ok()?;
        let mut ours = leases
            .iter()
            .filter(|lease| lease["metadata"]["namespace"] == *stage.cluster);
        ours.any(|lease| revision(lease) > Some(latest)).then_some(())
    };
    wait::eventually("the Lease is renewed", wait::DEADLINE, renewed).await
}

#[tokio::test]
async fn restored_etcd_is_read_again_and_nothing_is_deleted() -> Result<()> {
    let stage = own_stage("restored").await?;
    stage.hub.create_namespace("shop").await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller_for("application-status,pull", &proxy).await?;
    let application = stage.application("kept", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&application).await?;
    let (_, work) = stage.pulled_application("pulled").await?;

    let copy = stage.hub.copy_etcd()?;
    let lost = stage.application("lost", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&lost).await?;
    for at in 0..300 {
        stage.hub.create(&config_map(&format!("lost-{at}"))).await?;
    }
    until_lease_is_renewed(&stage).await?;
    let mark = proxy.mark();
    stage.hub.restore_etcd(&copy).await?;

    let created = stage.application("new", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&created).await?;
    stage
        .report_health("kept", WorkHealth::Degraded("it is broken"))
        .await?;
    stage.wait_for_condition(&application, DEGRADED, "it is broken").await?;
    assert!(stage.hub.get(&work).await?.is_some(), "the work is gone");
    let since = &proxy.requests()[mark..];
    assert_eq!(writes_of(since, &lost).len(), 0, "{:#?}", writes(since));
    let deletions: Vec<_> = writes(since)
        .into_iter()
        .filter(|write| write.starts_with("delete"))
        .collect();
    assert_eq!(deletions, [""; 0]);
    // What had not changed is not written: one write for the new Application, and one for the new state of the other.
    assert_eq!(writes_of(since, &application).len(), 1, "{:#?}", writes(since));
    drop(controller);
    Ok(())
}
