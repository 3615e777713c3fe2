//! After a sync the Application stays Synced, however awkward its manifests, under both of Argo CD's ways to compare.

use crate::stage::{application, shipped, stage};
use anyhow::{Context, Result};
use serde_json::json;
use std::time::Duration;
use testbed::{GitRepository, ObjectRef, is_synced};

async fn stays_synced(name: &str, server_side_diff: bool) -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let hub = &stage.hub;
    let git = GitRepository::new()?;
    git.commit_folder(&shipped("tests/manifests"), name)?;
    let mut app = application(name, &git)?;
    app["spec"]["destination"]["namespace"] = json!("shop");
    if server_side_diff {
        app["metadata"]["annotations"] = json!({"argocd.argoproj.io/compare-options": "ServerSideDiff=true"});
    }
    // Not on the cluster that others use: two works with the same objects would contend for them.
    app["spec"]["source"]["plugin"]["env"][0]["value"] = json!(name);
    hub.create_namespace(name).await?;
    hub.create_application(&app).await?;
    let app = ObjectRef::application(name);
    hub.wait_for(&app, is_synced).await?;
    let work = ObjectRef::manifest_work(name, name);
    let synced = hub.get(&work).await?.context("the work is there")?;
    let manifests = synced["spec"]["workload"]["manifests"]
        .as_array()
        .context("manifests")?
        .len();
    assert!(manifests >= 60, "{manifests} manifests");

    // A minute of refreshes: a difference shows at the first comparison, or at one after the agent wrote its status.
    for refresh in 1..=12 {
        let seen = hub.refresh_application(name, "hard").await?;
        assert!(is_synced(&seen), "refresh {refresh}: {:#}", seen["status"]);
        assert!(
            seen["status"]["conditions"].is_null(),
            "{:#}",
            seen["status"]["conditions"]
        );
        hub.holds_for(&app, Duration::from_secs(5), is_synced).await?;
    }
    let still = hub.get(&work).await?.context("the work is there")?;
    assert_eq!(
        still["metadata"]["generation"], synced["metadata"]["generation"],
        "nothing was written again"
    );
    hub.delete(&app).await
}

#[tokio::test]
async fn awkward_manifests_stay_synced_under_the_default_diff() -> Result<()> {
    stays_synced("drift-default", false).await
}

#[tokio::test]
async fn awkward_manifests_stay_synced_under_server_side_diff() -> Result<()> {
    stays_synced("drift-server-side", true).await
}
