//! Tests of two replicas: one writes, and the other takes over when it ends; nothing is written twice.

use crate::stage::{DEGRADED, Fares, Replica, Stage, stage, writes, writes_of};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};
use testbed::proxy::{Proxy, Seen};

const LEADER: &str = "argocd_ocm_cmp_leader";

/// Starts two replicas, the first of which writes, each with its own proxy.
async fn pair(stage: &Stage) -> Result<[(Proxy, Replica); 2]> {
    let first = stage.proxy().await?;
    let leader = stage.controller(&first).await?;
    let second = stage.proxy().await?;
    let follower = stage.replica("follower", &second).await?;
    follower.until_ready().await?;
    ensure!(follower.metric(LEADER).await? == 0, "both write");
    Ok([(first, leader), (second, follower)])
}

#[tokio::test]
async fn second_replica_takes_over_from_a_killed_leader() -> Result<()> {
    let Some(stage) = stage("killed-leader").await? else {
        return Ok(());
    };
    let mut applications = Vec::new();
    for at in 0..20 {
        applications.push(stage.application(&format!("shop-{at}"), Fares::Well).await?);
    }
    let [(first, leader), (second, follower)] = pair(&stage).await?;
    for application in &applications {
        stage.until_well(application).await?;
    }
    assert_eq!(writes(&second.requests()), [""; 0]);

    // It is killed in the middle of its work.
    let mark = first.mark();
    for application in &applications {
        stage.says(&application.name, Fares::Badly("it is broken")).await?;
    }
    first
        .until("it has begun", |requests| {
            requests[mark.min(requests.len())..].iter().any(is_write_of_some)
        })
        .await?;
    leader.kill();
    let killed = Instant::now();
    follower.until_metric(LEADER, |leads| leads > 0).await?;
    let took = killed.elapsed();
    // The unit tests of `lease` check the limit of 20 seconds with a simulated clock; here other processes use the machine as
    // well.
    println!("the second took over {took:?} after the first was killed");
    assert!(took < Duration::from_secs(60), "{took:?}");
    for application in &applications {
        let updated = stage.until_told(application, DEGRADED, "it is broken").await?;
        // It is created, and written once for each state.
        assert_eq!(updated["metadata"]["generation"], 3, "{updated:#}");
    }
    let requests = second.requests();
    let refused: Vec<_> = requests
        .iter()
        .filter(|seen| is_write_of_some(seen) && seen.answer.is_some_and(|code| code != 200))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    for event in stage.hub.list("v1", "Event").await? {
        assert_eq!(event["count"], 1, "{event:#}");
    }
    Ok(())
}

fn is_write_of_some(seen: &Seen) -> bool {
    seen.is_write() && seen.resource == "applications"
}

#[tokio::test]
async fn second_replica_takes_over_immediately_after_a_graceful_stop() -> Result<()> {
    let Some(stage) = stage("stopped-leader").await? else {
        return Ok(());
    };
    let application = stage.application("shop", Fares::Well).await?;
    let [(first, leader), (second, follower)] = pair(&stage).await?;
    stage.until_well(&application).await?;
    leader.stop().await?;
    let requests = first.requests();
    let mut renewals = requests
        .iter()
        .rev()
        .filter(|seen| seen.resource == "leases" && seen.is_write());
    let last = renewals.next().and_then(|seen| seen.body.as_ref());
    let last = last.context("the Lease was written")?;
    // So that the next holder need not wait for it to expire.
    assert_eq!(last["spec"]["holderIdentity"], "", "{last}");
    follower.until_metric(LEADER, |leads| leads > 0).await?;
    stage.says("shop", Fares::Badly("it is broken")).await?;
    stage.until_told(&application, DEGRADED, "it is broken").await?;
    let written = [&first, &second].map(|proxy| writes_of(&proxy.requests(), &application).len());
    assert_eq!(written, [1, 1]);
    Ok(())
}
