//! Three replicas among which the work is divided, of which one after the other dies while a fleet reports: all is written, each state
//! once, by one of them.

use crate::stage::{DEGRADED, Fares, Replica, Stage, stage};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use testbed::proxy::{Proxy, Seen};
use testbed::wait;

const SHARDS: &str = "argocd_ocm_cmp_shards ";

async fn start(stage: &Stage, name: &str) -> Result<(Proxy, Replica)> {
    let proxy = stage.proxy().await?;
    let replica = stage.replica_with(&["--shards=3"], name, &proxy).await?;
    replica.until_ready().await?;
    Ok((proxy, replica))
}

/// Waits until each has one of the shards.
async fn are_even(replicas: &[(Proxy, Replica)]) -> Result<()> {
    for (_, replica) in replicas {
        replica.until_metric(SHARDS, |shards| shards == 1).await?;
    }
    Ok(())
}

fn is_write(seen: &Seen) -> bool {
    seen.is_write() && seen.resource == "applications"
}

/// Which Applications a replica has written since, and that nothing was refused.
fn written(proxy: &Proxy, since: usize) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for seen in proxy.requests().into_iter().skip(since).filter(is_write) {
        // What was under way when it died has no answer.
        ensure!(seen.answer.is_none_or(|code| code == 200), "{seen}");
        names.insert(seen.name.context("a name")?);
    }
    Ok(names)
}

#[tokio::test]
async fn nothing_is_lost_and_nothing_written_twice_while_shards_move() -> Result<()> {
    let Some(stage) = stage("shards").await? else {
        return Ok(());
    };
    let mut applications = Vec::new();
    for at in 0..30 {
        applications.push(stage.application(&format!("shop-{at}"), Fares::Well).await?);
    }
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(start(&stage, name).await?);
    }
    are_even(&replicas).await?;
    for application in &applications {
        stage.until_well(application).await?;
    }

    let mut states = 1;
    for (round, text) in ["it is broken", "it is still broken", "it is past repair"]
        .into_iter()
        .enumerate()
    {
        let marks: Vec<_> = replicas.iter().map(|(proxy, _)| proxy.mark()).collect();
        for application in &applications {
            stage.says(&application.name, Fares::Badly(text)).await?;
        }
        // The first dies in the midst of its work.
        let begun = |requests: &[Seen]| requests.iter().skip(marks[0]).any(is_write);
        replicas[0].0.until("it has begun", begun).await?;
        let (dead, replica) = replicas.remove(0);
        replica.kill();
        states += 1;
        for application in &applications {
            let told = stage.until_told(application, DEGRADED, text).await?;
            // It is created, and written once for each state.
            assert_eq!(told["metadata"]["generation"], states + 1, "{told:#}");
        }
        let mut all = BTreeSet::new();
        for (proxy, mark) in [&dead]
            .into_iter()
            .chain(replicas.iter().map(|(proxy, _)| proxy))
            .zip(&marks)
        {
            let names = written(proxy, *mark)?;
            ensure!(!names.is_empty(), "each has its part in round {round}");
            all.extend(names);
        }
        assert_eq!(all.len(), applications.len());
        // Another comes in its place, and gets its share of what the others hold by now.
        let left = async || {
            let mut held = 0;
            for (_, replica) in &replicas {
                held += replica.metric(SHARDS).await.ok()?;
            }
            (held == 3).then_some(())
        };
        wait::eventually("the others hold all", wait::DEADLINE, left).await?;
        replicas.push(start(&stage, ["four", "five", "six"][round]).await?);
        are_even(&replicas).await?;
    }
    Ok(())
}
