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
        "status": {"resources": works.iter().map(resource).collect::<Vec<_>>()},
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
    end(stage, &all).await?;
    end(stage, &applications).await
}

#[tokio::test]
async fn hides_works_of_another_argo_cd() -> Result<()> {
    let stage = stage().await?;
    let (east, west, app) = ("status-east", "status-west", "in-two-places");
    let kubeconfig = stage.hub.kubeconfig_path();
    let marked = |name: &str, installation: Option<&str>| {
        let id = ("argocd.argoproj.io/tracking-id", tracking_id(app, name));
        let installation = installation.map(|id| ("argocd.argoproj.io/installation-id", id.to_owned()));
        let annotations: Value = [id]
            .into_iter()
            .chain(installation)
            .map(|(key, id)| (key.to_owned(), json!(id)))
            .collect();
        work(name, &json!({"annotations": annotations}))
    };
    let all = [
        marked("in-two-places", Some("east")),
        marked("in-two-places.part-wave1", Some("west")),
        marked("in-two-places.part-wave2", None),
    ];
    for work in &all {
        stage.hub.apply(work).await?;
    }
    let [of_east, of_west, of_none] = [0, 1, 2].map(|at| all[at]["metadata"]["name"].as_str().unwrap_or_default());
    for (namespace, shown) in [(east, of_east), (west, of_west)] {
        let installation = namespace.trim_start_matches("status-");
        argocd_cm(stage, namespace, &json!({"installationID": installation})).await?;
        let (code, stdout, stderr) = printed(kubeconfig, &[app, "-n", namespace, "--wait"])?;
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert_is_progress(&stderr, app);
        assert_eq!(works(&stdout), [shown]);
    }
    // An Argo CD without an id owns those without.
    let (_, stdout, _) = printed(kubeconfig, &[app])?;
    assert_eq!(works(&stdout), [of_none]);
    // A user who is not permitted to read Argo CD's settings sees all of them.
    let who = account(stage, "status-of-any", &["manifestworks"], &["get", "list"])?;
    let stdout = wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let printed = printed(&who, &[app, "-n", east, "--cluster=cluster1", "-o", "json"]).ok();
        printed.filter(|printed| printed.0 != Some(2)).map(|printed| printed.1)
    })
    .await?;
    let report: Value = serde_json::from_str(&stdout)?;
    let mut names: Vec<_> = report["works"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|work| &work["name"])
        .collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, [of_east, of_west, of_none]);
    end(stage, &all).await
}
