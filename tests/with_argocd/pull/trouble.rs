//! Tests that the hub reports an Application that does not run on its cluster as unhealthy.

use super::{CLUSTER, PulledApplication, health, stage};
use crate::controller::{APPLY_ERROR, messages};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::ManagedClusterOptions;

#[tokio::test]
async fn cluster_without_argo_cd_is_reported() -> Result<()> {
    let stage = stage().await?;
    let options = ManagedClusterOptions {
        nodes: 0,
        ..ManagedClusterOptions::default()
    };
    let bare = stage.hub.add_managed_cluster("pull-bare", options).await?;
    let mut app = PulledApplication::new(&stage, "pull-without-argocd")?;
    app.object["metadata"]["annotations"][CLUSTER] = json!("pull-bare");
    app.create().await?;
    let refused = |app: &Value| {
        let messages = messages(app, APPLY_ERROR);
        messages.len() == 1
            && messages[0].starts_with("pull-bare: ")
            && messages[0].contains(r#"doesn't have a resource type "Application""#)
            && health(app) == "Degraded"
    };
    let now = stage.hub.wait_for(&app.application(), refused).await?;
    assert_eq!(now["status"]["sync"]["status"], "Unknown", "{now:#}");

    // There is nothing to delete on the cluster, so the deletion completes.
    app.end().await?;
    drop(bare);
    Ok(())
}

#[tokio::test]
async fn reports_errors_of_the_clusters_argo_cd() -> Result<()> {
    let stage = stage().await?;
    let mut app = PulledApplication::new(&stage, "pull-no-folder")?;
    app.object["spec"]["source"]["path"] = json!("nowhere");
    app.create().await?;
    let failed = |app: &Value| {
        let messages = messages(app, "ComparisonError");
        messages.len() == 1
            && messages[0].starts_with("cluster1: ")
            && messages[0].contains("nowhere: app path does not exist")
            && app["status"]["sync"]["status"] == "Unknown"
    };
    stage.hub.wait_for(&app.application(), failed).await?;
    app.patch(&json!({"spec": {"source": {"path": "guestbook"}}})).await?;
    let now = app.runs(&app.commit).await?;
    assert!(messages(&now, "ComparisonError").is_empty(), "{now:#}");
    app.end().await
}
