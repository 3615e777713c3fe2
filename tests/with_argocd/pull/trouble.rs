//! Tests that the hub reports an Application that does not run on its cluster as unhealthy.

use super::{PulledApplication, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::application::messages;

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
