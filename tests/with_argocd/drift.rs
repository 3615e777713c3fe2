//! Tests that the Application stays Synced after a sync, however unusual its manifests, with both of Argo CD's diff strategies.

use crate::controller::of_argocd;
use crate::delivery::works_of;
use crate::stage::{application, shipped, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{GitRepository, Hub, ObjectRef, is_synced, new_condition};

async fn stays_synced(name: &str, server_side_diff: bool) -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let git = GitRepository::new()?;
    git.commit_folder(&shipped("tests/data/manifests"), name)?;
    let mut app = application(name, &git)?;
    app["spec"]["destination"]["namespace"] = json!("shop");
    if server_side_diff {
        app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true"});
    }
    // A separate cluster, because two works with the same objects would conflict.
    app["spec"]["source"]["plugin"]["env"] = json!([
        {"name": "TARGET_CLUSTER", "value": name},
        {"name": "ALLOW_SECRETS", "value": "true"},
    ]);
    hub.create_namespace(name).await?;
    hub.create_application(&app).await?;
    let app = ObjectRef::application(name);
    tokio::select! {
        synced = hub.wait_for(&app, is_synced) => synced?,
        error = apply_everything(hub, name) => return error,
    };
    let synced = works_of(hub, name).await?;
    let manifests: usize = synced
        .iter()
        .filter_map(|work| Some(work["spec"]["workload"]["manifests"].as_array()?.len()))
        .sum();
    assert!(manifests >= 90, "{manifests} manifests");

    // A minute of refreshes: a difference appears at the first comparison, or at one after the agent wrote its status.
    for refresh in 1..=12 {
        let refreshed = hub.refresh_application(name, "hard").await?;
        assert!(is_synced(&refreshed), "refresh {refresh}: {:#}", refreshed["status"]);
        assert!(of_argocd(&refreshed).is_empty(), "{:#?}", of_argocd(&refreshed));
        hub.holds_for(&app, Duration::from_secs(5), is_synced).await?;
    }
    let generations = |works: &[Value]| -> Vec<(Value, Value)> {
        let of = |work: &Value| (work["metadata"]["name"].clone(), work["metadata"]["generation"].clone());
        works.iter().map(of).collect()
    };
    assert_eq!(
        generations(&works_of(hub, name).await?),
        generations(&synced),
        "the work was written again"
    );
    hub.delete(&app).await
}

/// Simulates an agent that applies everything at once, so that the sync waves proceed.
async fn apply_everything(hub: &Hub, cluster: &str) -> Result<()> {
    loop {
        for work in works_of(hub, cluster).await? {
            let generation = &work["metadata"]["generation"];
            if work["status"]["conditions"][0]["observedGeneration"] == *generation {
                continue;
            }
            let applied = new_condition("Applied", "True", "", generation);
            let manifests = work["spec"]["workload"]["manifests"].as_array().context("manifests")?;
            // Complete objects are healthy, whatever their kind.
            let of_object = |(ordinal, object): (usize, &Value)| {
                let (group, _) = object["apiVersion"].as_str()?.split_once('/').unwrap_or_default();
                let metadata = &object["metadata"];
                Some(json!({
                    "resourceMeta": {"ordinal": ordinal, "group": group, "kind": object["kind"], "name": metadata["name"],
                        "namespace": metadata["namespace"].as_str().unwrap_or_default()},
                    "conditions": [&applied, new_condition("Complete", "True", "", generation)],
                }))
            };
            let manifests: Option<Vec<_>> = manifests.iter().enumerate().map(of_object).collect();
            let resources = json!({"manifests": manifests.context("an apiVersion")?});
            let status = json!({"status": {"conditions": [applied], "resourceStatus": resources}});
            let name = work["metadata"]["name"].as_str().context("a name")?;
            hub.patch_status(&ObjectRef::manifest_work(cluster, name), &status)
                .await?;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn unsafe_manifests_stay_synced_under_both_diff_strategies() -> Result<()> {
    tokio::try_join!(
        stays_synced("drift-default", false),
        stays_synced("drift-server-side", true)
    )
    .map(drop)
}
