//! Tests of two replicas: one writes, and the other takes over when it ends; nothing is written twice.

use crate::stage::{WorkHealth, stage, writes};
use anyhow::{Context, Result, ensure};
use testbed::application::DEGRADED;
use testbed::proxy::RecordedRequest;

const LEADER: &str = "argocd_ocm_cmp_leader";

#[tokio::test]
async fn second_replica_takes_over_from_a_killed_leader_and_releases_its_lease() -> Result<()> {
    let stage = stage("killed-leader").await?;
    let mut applications = Vec::new();
    for at in 0..20 {
        applications.push(stage.application(&format!("shop-{at}"), WorkHealth::Healthy).await?);
    }
    let (first, second) = (stage.proxy().await?, stage.proxy().await?);
    let leader = stage.controller(&first).await?;
    let follower = stage.replica("follower", &second).await?;
    follower.until_ready().await?;
    ensure!(follower.metric(LEADER).await? == 0, "both write");
    for application in &applications {
        stage.wait_until_healthy(application).await?;
    }
    assert_eq!(writes(&second.requests()), [""; 0]);

    // The leader is killed while it writes.
    let mark = first.mark();
    for application in &applications {
        stage
            .report_health(&application.name, WorkHealth::Degraded("it is broken"))
            .await?;
    }
    first
        .until("the first replica writes", |requests| {
            requests[mark.min(requests.len())..].iter().any(is_write_of_some)
        })
        .await?;
    leader.kill();
    follower.until_metric(LEADER, |leads| leads > 0).await?;
    for application in &applications {
        let updated = stage.wait_for_condition(application, DEGRADED, "it is broken").await?;
        // Each Application is created, and written once for each state.
        assert_eq!(updated["metadata"]["generation"], 3, "{updated:#}");
    }
    let requests = second.requests();
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| is_write_of_some(request) && request.answer.is_some_and(|code| code != 200))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    for event in stage.hub.list("v1", "Event").await? {
        assert_eq!(event["count"], 1, "{event:#}");
    }

    follower.stop().await?;
    let requests = second.requests();
    let mut renewals = requests
        .iter()
        .rev()
        .filter(|request| request.resource == "leases" && request.is_write());
    let last = renewals.next().and_then(|request| request.body.as_ref());
    let last = last.context("the Lease was written")?;
    // An empty holder lets the next replica acquire the Lease before it expires.
    assert_eq!(last["spec"]["holderIdentity"], "", "{last}");
    Ok(())
}

fn is_write_of_some(request: &RecordedRequest) -> bool {
    request.is_write() && request.resource == "applications"
}
