//! Tests of Applications that move to another cluster.

use super::{CLUSTER, PulledApplication, serves, stage};
use anyhow::Result;
use serde_json::json;

#[tokio::test]
async fn changed_cluster_moves_the_application() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1, cluster2) = (&stage.hub, &stage.cluster1, &stage.cluster2);
    let app = PulledApplication::new(&stage, "pull-moves")?.start().await?;
    serves(cluster1, &app.guestbook(), 1).await?;
    let before = app.on_hub().await?;
    let work = app.work().await?;

    app.patch(&json!({"metadata": {"annotations": {CLUSTER: "cluster2"}}}))
        .await?;
    hub.wait_gone(&work).await?;
    cluster1.wait_gone(&app.application()).await?;
    cluster1.wait_gone(&app.guestbook()).await?;
    serves(cluster2, &app.guestbook(), 1).await?;
    let now = app.runs(&app.commit).await?;
    assert_eq!(now["spec"], before["spec"], "the spec on the hub is unchanged");
    assert_eq!(app.work().await?.namespace.as_deref(), Some("cluster2"));

    // An update changes the objects on the new cluster.
    let commit = app.scale(2)?;
    app.runs(&commit).await?;
    serves(cluster2, &app.guestbook(), 2).await?;
    app.end().await
}
