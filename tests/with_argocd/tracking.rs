//! Tests that `status` finds the works of an Argo CD with every tracking method, and leaves another Argo CD's alone.

use crate::account::account;
use crate::stage::{Stage, stage};
use crate::status::{assert_is_progress, cells, printed};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};

/// Returns a work that Argo CD has applied with these marks and this name, for the agent of `cluster1`.
fn work(name: &str, marks: &Value) -> Value {
    let config_map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    let mut work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": marks,
        "spec": {"workload": {"manifests": [config_map]}},
    });
    work["metadata"]["name"] = json!(name);
    work["metadata"]["namespace"] = json!("cluster1");
    work
}

fn tracking_id(application: &str, name: &str) -> String {
    format!("{application}:work.open-cluster-management.io/ManifestWork:cluster1/{name}")
}

/// Creates the argocd-cm of another Argo CD on this hub, in a new namespace.
async fn argocd_cm(stage: &Stage, namespace: &str, data: &Value) -> Result<()> {
    stage.hub.create_namespace(namespace).await?;
    let config_map = ObjectRef::config_map(namespace, "argocd-cm").with(json!({"data": data}));
    stage.hub.apply(&config_map).await.map(drop)
}

/// Returns the works in a table, by name.
fn works(table: &str) -> Vec<&str> {
    cells(table).iter().skip(1).map(|cells| cells[1]).collect()
}

/// Returns an Application that lists works as its own, as Argo CD does after it has compared them with Git. Argo CD does not
/// reconcile it.
fn application(namespace: &str, name: &str, works: &[&str]) -> Value {
    let resource = |work: &&str| {
        json!({
            "group": "work.open-cluster-management.io",
            "version": "v1",
            "kind": "ManifestWork",
            "namespace": "cluster1",
            "name": work,
            "status": "Synced",
        })
    };
    ObjectRef::namespaced("argoproj.io/v1alpha1", "Application", namespace, name).with(json!({
        "metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}},
        "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git"}},
        "status": {"sync": {"status": "Synced"}, "resources": works.iter().map(resource).collect::<Vec<_>>()},
    }))
}

async fn end(stage: &Stage, works: &[Value]) -> Result<()> {
    for work in works {
        stage.hub.delete(&ObjectRef::of(work)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn finds_works_by_the_configured_label() -> Result<()> {
    let stage = stage().await?;
    let (argocd, app) = ("status-by-label", "labelled");
    let data = json!({
        "application.resourceTrackingMethod": "label",
        "application.instanceLabelKey": "example.com/application",
    });
    argocd_cm(stage, argocd, &data).await?;
    let label = |application: &str| json!({"labels": {"example.com/application": application}});
    let of_another_argo_cd = json!({
        "labels": {"example.com/application": "another"},
        "annotations": {
            "argocd.argoproj.io/tracking-id": tracking_id(app, "labelled.part-wave2"),
            "argocd.argoproj.io/installation-id": "west",
        },
    });
    let all = [
        work("labelled-east", &label(app)),
        work("labelled-west", &label(app)),
        work("labelled-other", &label("another")),
        // A name of a part of this Application, with the tracking mark of another.
        work("labelled.part-wave1", &label("another")),
        // A mark that this Argo CD does not use.
        work(
            "labelled-copy",
            &json!({"annotations": {"argocd.argoproj.io/tracking-id": tracking_id(app, "labelled-copy")}}),
        ),
        work("labelled.part-wave2", &of_another_argo_cd),
    ];
    // Works with other names belong to the Application because Argo CD lists them.
    let applications = [
        application(argocd, app, &["labelled-east", "labelled-west"]),
        application("argocd", app, &["labelled-copy"]),
    ];
    for object in all.iter().chain(&applications) {
        stage.hub.apply(object).await?;
    }
    let (code, stdout, stderr) = printed(
        stage.hub.kubeconfig_path(),
        &[app, "--namespace", argocd, "--wait", "--timeout=3m"],
    )?;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_is_progress(&stderr, app);
    assert_eq!(works(&stdout), ["labelled-east", "labelled-west"], "{stdout}");
    let totals = "labelled is Healthy: 1 of 1 cluster healthy; objects: 2 Healthy\n";
    assert!(stdout.ends_with(totals), "{stdout}");

    // With the setting of the hub's Argo CD, which uses the annotation.
    let (_, stdout, _) = printed(stage.hub.kubeconfig_path(), &[app])?;
    assert_eq!(works(&stdout), ["labelled-copy", "labelled.part-wave1"], "{stdout}");

    // A user without permission to read Argo CD's settings also sees the work of another Argo CD.
    let who = account(stage, "status-of-any", &["manifestworks"], &["get", "list"])?;
    let stdout = wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let printed = printed(&who, &[app, "-n", argocd, "--clusters=cluster1"]).ok();
        printed.filter(|printed| printed.0 != Some(2)).map(|printed| printed.1)
    })
    .await?;
    assert_eq!(
        works(&stdout),
        ["labelled.part-wave1", "labelled.part-wave2"],
        "{stdout}"
    );
    end(stage, &all).await?;
    end(stage, &applications).await
}
