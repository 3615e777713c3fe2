//! Tests that an object that a cluster rejects does not block others: a custom resource without its CRD, a version that is not
//! served.

use crate::app::{self, permit_agent};
use crate::delivery::{delivered, objects_of, works};
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::application::has_health;
use testbed::{GitRepository, ObjectRef, condition, is_applied, is_synced};

/// Returns a custom resource; a commit changes its `size`.
fn custom(group: &str, kind: &str, name: &str, size: u32) -> String {
    ObjectRef::cluster(&format!("{group}/v1"), kind, name)
        .with(json!({"spec": {"size": size}}))
        .to_string()
}

fn config_map(name: &str, colour: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": colour}}).to_string()
}

fn crd(group: &str, kind: &str) -> Value {
    app::crd(group, kind, &format!("{}s", kind.to_lowercase()), "Namespaced")
}

/// Returns the agent's message about the only object of a work, which it cannot apply.
async fn refused(stage: &Stage, work: &str) -> Result<String> {
    let is_refused = |work: &Value| condition(work, "Applied").is_some_and(|applied| applied["status"] == "False");
    let work = ObjectRef::manifest_work("cluster1", work);
    let work = stage.hub.wait_for(&work, is_refused).await?;
    let manifest = json!({"status": work["status"]["resourceStatus"]["manifests"][0]});
    let applied = condition(&manifest, "Applied").context("no condition Applied")?;
    Ok(applied["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn missing_crds_block_no_other_object() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let (name, group) = ("isolation", "isolation.example.com");
    permit_agent(cluster1, group, &[group]).await?;
    cluster1.create(&crd(group, "Gadget")).await?;
    cluster1.wait_for_crds().await?;
    let custom = |kind: &str, name: &str, size: u32| custom(group, kind, name, size);
    let git = GitRepository::new()?;
    git.commit(&[
        ("isolation/settings.json", &config_map("settings", "green")),
        ("isolation/removed.json", &config_map("removed", "green")),
        ("isolation/gadget.json", &custom("Gadget", "kept", 1)),
        ("isolation/gadget-removed.json", &custom("Gadget", "removed", 1)),
        // The cluster has no such kinds.
        ("isolation/widget.json", &custom("Widget", "missing", 1)),
        ("isolation/widget-too.json", &custom("Widget", "missing-too", 1)),
        ("isolation/gizmo.json", &custom("Gizmo", "missing", 1)),
    ])?;
    app::create(stage, name, &git, |_| ()).await?;
    let config_map_named = |config_map: &str| ObjectRef::config_map(name, config_map);
    let custom_named = |kind: &str, custom: &str| ObjectRef::namespaced(&format!("{group}/v1"), kind, name, custom);
    for object in [
        config_map_named("settings"),
        config_map_named("removed"),
        custom_named("Gadget", "kept"),
        custom_named("Gadget", "removed"),
    ] {
        cluster1.wait_for(&object, |_| true).await?;
    }

    // While they cannot be applied, a commit changes, removes and adds objects.
    git.remove(&["isolation/removed.json", "isolation/gadget-removed.json"])?;
    git.commit(&[
        ("isolation/settings.json", &config_map("settings", "blue")),
        ("isolation/gadget.json", &custom("Gadget", "kept", 2)),
        ("isolation/added.json", &config_map("added", "blue")),
    ])?;
    hub.refresh_application(name, "hard").await?;
    cluster1
        .wait_for_value(&config_map_named("settings"), "/data/colour", "blue")
        .await?;
    cluster1.wait_for(&config_map_named("added"), |_| true).await?;
    cluster1
        .wait_for_value(&custom_named("Gadget", "kept"), "/spec/size", 2)
        .await?;
    cluster1.wait_gone(&config_map_named("removed")).await?;
    cluster1.wait_gone(&custom_named("Gadget", "removed")).await?;

    // The Application shows it, and the work shows the reason.
    let app = ObjectRef::application(name);
    hub.wait_for(&app, |app| is_synced(app) && has_health(app, "Degraded"))
        .await?;
    for kind in ["Widget", "Gizmo"] {
        let work = format!("{name}.part-{}.{group}", kind.to_lowercase());
        let message = refused(stage, &work).await?;
        let reason = format!("the server doesn't have a resource type {kind:?}");
        assert!(message.ends_with(&reason), "{message}");
    }
    let main = works(hub, name)
        .await?
        .remove(name)
        .context("no work for the other objects")?;
    assert!(is_applied(&main), "{:#}", main["status"]);
    assert_eq!(
        objects_of(&main),
        BTreeSet::from(["ConfigMap added".to_owned(), "ConfigMap settings".to_owned()])
    );

    // The CRDs are installed. The agent backs off, and retries at once when its work changes.
    cluster1.create(&crd(group, "Widget")).await?;
    cluster1.create(&crd(group, "Gizmo")).await?;
    cluster1.wait_for_crds().await?;
    let work = ObjectRef::manifest_work("cluster1", &format!("{name}.part-gizmo.{group}"));
    hub.patch(&work, &json!({"metadata": {"labels": {"try": "again"}}}))
        .await?;
    let commit = git.commit(&[("isolation/widget.json", &custom("Widget", "missing", 3))])?;
    delivered(hub, name, &commit).await?;
    for (object, size) in [
        (custom_named("Widget", "missing"), 3),
        (custom_named("Widget", "missing-too"), 1),
        (custom_named("Gizmo", "missing"), 1),
    ] {
        let object = cluster1.read(&object).await?;
        assert_eq!(object["spec"]["size"], size);
    }
    hub.delete(&app).await
}
