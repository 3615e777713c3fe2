//! Tests of Applications with equal names in two namespaces, and of names at the length limits.

use super::{PulledApplication, serves, stage};
use anyhow::Result;
use serde_json::{Value, json};

/// Returns a name of this length that begins with the name of the test.
fn long(name: &str, length: usize) -> Value {
    json!(format!("{name}-{:x<1$}", "", length - name.len() - 1))
}

#[tokio::test]
async fn longest_name_that_argo_cd_supports_works() -> Result<()> {
    let stage = stage().await?;
    let mut app = PulledApplication::new(&stage, "pull-long-name")?;
    // Argo CD looks for a file `.argocd-source-NAME.yaml`, and file names are limited to 255 characters.
    app.object["metadata"]["name"] = long("pull-long-name", 235);
    let app = app.start().await?;
    let work = app.work().await?;
    assert!(work.name.len() <= 188, "{work}");
    let commit = app.scale(2)?;
    app.runs(&commit).await?;
    serves(&stage.cluster1, &app.guestbook(), 2).await?;
    app.end().await?;
    stage.hub.wait_gone(&work).await
}
