//! Tests of the deletion of an Application of the hub.

use super::{FINALIZER, PulledApplication, Stage, serves, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::ObjectRef;

/// Deletes an Application with that finalizer, and waits until it is deleted from the hub and the cluster. If it had another one
/// before, it is deleted as by `argocd app delete`, which patches the finalizers first.
async fn delete<'s>(
    stage: &'s Stage,
    name: &str,
    before: Option<&str>,
    finalizer: Option<&str>,
) -> Result<PulledApplication<'s>> {
    let mut app = PulledApplication::new(stage, name)?;
    app.object["metadata"]["finalizers"] = json!(before.as_slice());
    let app = app.start().await?;
    serves(&stage.cluster1, &app.guestbook(), 1).await?;
    let work = app.work().await?;
    if before != finalizer {
        let patch = json!({"metadata": {"finalizers": finalizer.as_slice()}});
        stage.hub.patch(&app.application(), &patch).await?;
    }
    stage.hub.delete_and_wait(&app.application()).await?;
    if finalizer.is_some() {
        // The hub's Application is deleted only after the cluster's.
        assert!(stage.hub.get(&work).await?.is_none(), "{work}");
        assert!(stage.cluster1.get(&app.application()).await?.is_none());
        stage.cluster1.wait_gone(&app.guestbook()).await?;
    }
    stage.hub.wait_gone(&work).await?;
    stage.cluster1.wait_gone(&app.application()).await?;
    Ok(app)
}

#[tokio::test]
async fn each_cascade_finalizer_deletes_the_deployed_objects_and_none_keeps_them() -> Result<()> {
    let stage = stage().await?;
    let [foreground, background] = ["foreground", "background"].map(|how| format!("{FINALIZER}/{how}"));
    let plain = Some(FINALIZER);
    let (foreground, background) = (Some(&*foreground), Some(&*background));
    let (plain, foreground, background, orphan, cascade, no_cascade) = tokio::join!(
        delete(&stage, "pull-deleted", plain, plain),
        delete(&stage, "pull-deleted-foreground", foreground, foreground),
        delete(&stage, "pull-deleted-background", background, background),
        delete(&stage, "pull-left-behind", None, None),
        delete(&stage, "pull-cascade", None, plain),
        delete(&stage, "pull-no-cascade", plain, None)
    );
    plain.and(foreground).and(background).and(cascade)?;
    for app in [orphan?, no_cascade?] {
        let service = ObjectRef::namespaced("v1", "Service", &app.name, "guestbook-ui");
        for object in [app.guestbook(), service] {
            let stays = |live: &Value| live["metadata"]["deletionTimestamp"].is_null();
            stage.cluster1.wait_for(&object, stays).await?;
        }
    }
    Ok(())
}
