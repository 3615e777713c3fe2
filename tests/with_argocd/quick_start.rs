//! The README's quick start, from `kubectl apply` to removal, with the shipped files and nothing else.

use crate::stage::{shipped, shipped_object, stage};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use testbed::{GitRepository, ObjectRef, is_applied, is_synced, is_true};

#[tokio::test]
async fn the_guestbook_goes_from_git_to_the_cluster_and_away_again() -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let git = GitRepository::new()?;
    git.commit_folder(&shipped("guestbook"), "guestbook")?;
    // The one thing that cannot be as shipped: where the repository is.
    let mut app = shipped_object("app.yaml")?;
    app["spec"]["source"]["repoURL"] = json!(git.url());
    hub.kubectl_with_input(&["apply", "-f", "-"], &app.to_string())?;

    let guestbook = ObjectRef::application("guestbook");
    let work = ObjectRef::manifest_work("cluster1", "guestbook");
    let deployment = ObjectRef::deployment("default", "guestbook-ui");
    let service = ObjectRef::namespaced("v1", "Service", "default", "guestbook-ui");
    hub.wait_for(&guestbook, is_synced).await?;
    hub.wait_for(&work, |work| is_applied(work) && is_true(work, "Available"))
        .await?;
    cluster1
        .wait_for(&deployment, |deployment| is_true(deployment, "Available"))
        .await?;
    cluster1
        .wait_for(&service, |service| service["spec"]["ports"][0]["port"] == 80)
        .await?;

    let manifest = fs::read_to_string(shipped("guestbook/deployment.yaml"))?;
    let changed = manifest.replace("replicas: 1", "replicas: 3");
    assert_ne!(manifest, changed);
    git.commit(&[("guestbook/deployment.yaml", &changed)])?;
    hub.refresh_application("guestbook", "hard").await?;
    cluster1
        .wait_for(&deployment, |deployment| deployment["status"]["availableReplicas"] == 3)
        .await?;

    git.remove(&["guestbook/service.yaml"])?;
    hub.refresh_application("guestbook", "hard").await?;
    cluster1.wait_gone(&service).await?;
    let kept = cluster1.get(&deployment).await?.context("the Deployment stays")?;
    assert_eq!(kept["status"]["availableReplicas"], 3);

    hub.delete(&guestbook).await?;
    hub.wait_gone(&guestbook).await?;
    hub.wait_gone(&work).await?;
    cluster1.wait_gone(&deployment).await
}
