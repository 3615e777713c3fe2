//! Tests of errors in Argo CD: our one line, the same on every refresh, while the deployed objects stay.

use crate::stage::{application, stage};
use anyhow::{Context, Result};
use serde_json::Value;
use testbed::{GitRepository, ObjectRef, is_applied, is_synced, wait};

const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\ndata:\n  colour: green\n";

const EMPTY: &str = "error: no manifests: the folder has no Kubernetes object in a .yaml, .yml or .json file that include and exclude \
                     select; to remove everything from the cluster on purpose, set allow-empty";

#[tokio::test]
async fn empty_folder_is_an_error_and_deletes_nothing() -> Result<()> {
    let name = "emptied";
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let git = GitRepository::new()?;
    git.commit(&[(&format!("{name}/config.yaml"), &GOOD.replace("NAME", name))])?;
    hub.create_application(&application(name, &git)?).await?;
    let (app, work) = (ObjectRef::application(name), ObjectRef::manifest_work("cluster1", name));
    hub.wait_for(&app, is_synced).await?;
    let deployed = hub.wait_for(&work, is_applied).await?;
    let config_map = ObjectRef::config_map("default", name);
    cluster1.wait_for(&config_map, |_| true).await?;

    git.commit(&[("emptied/README.md", "Nothing to see.\n")])?;
    git.remove(&["emptied/config.yaml"])?;
    let shown = comparison_error(&hub.refresh_application(name, "hard").await?).context("a ComparisonError")?;
    assert!(shown.ends_with(EMPTY), "{shown}");
    assert!(!shown.contains("panicked"), "{shown}");
    for _ in 0..2 {
        let again = comparison_error(&hub.refresh_application(name, "hard").await?).context("a ComparisonError")?;
        assert_eq!(again, shown, "every refresh reports the same");
    }
    let live = hub.read(&work).await?;
    assert_eq!(live["metadata"]["generation"], deployed["metadata"]["generation"]);
    assert_eq!(live["metadata"]["uid"], deployed["metadata"]["uid"]);
    let live = cluster1.read(&config_map).await?;
    assert_eq!(live["data"]["colour"], "green");

    // After the correction, Argo CD shows no error.
    git.commit(&[(
        &format!("{name}/config.yaml"),
        &GOOD.replace("NAME", name).replace("green", "blue"),
    )])?;
    wait::eventually("the Application recovers", wait::DEADLINE, async || {
        let app = hub.refresh_application(name, "hard").await.ok()?;
        (is_synced(&app) && comparison_error(&app).is_none()).then_some(())
    })
    .await?;
    cluster1.wait_for_value(&config_map, "/data/colour", "blue").await?;
    hub.delete(&app).await
}

pub(crate) fn comparison_error(application: &Value) -> Option<String> {
    let conditions = application["status"]["conditions"].as_array()?;
    let error = conditions
        .iter()
        .find(|condition| condition["type"] == "ComparisonError")?;
    error["message"].as_str().map(str::to_owned)
}
