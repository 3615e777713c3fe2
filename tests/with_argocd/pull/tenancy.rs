//! Argo CD's rules of tenancy, for Applications whose Argo CD is on the managed cluster.

use super::{CLUSTER, CLUSTER_NAMESPACE, Pulled, Stage, stage};
use crate::controller::{is_noted, told};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::ObjectRef;

const ERROR: &str = "ManifestWorkError";

/// An Application in this namespace of the hub, which is made with the namespace on the cluster.
async fn elsewhere(stage: &'static Stage, namespace: &str, name: &str) -> Result<Pulled> {
    stage.hub.create_namespace(namespace).await?;
    stage.cluster1.create_namespace(namespace).await?;
    let mut app = Pulled::new(stage, name)?;
    app.object["metadata"]["namespace"] = json!(namespace);
    Ok(app)
}

/// Waits until an Application is refused with this message, and nothing is made of it.
async fn is_refused(app: &Pulled, message: &str) -> Result<()> {
    let hub = &app.stage.hub;
    hub.wait_for(&app.application(), |it| told(it, ERROR) == [message])
        .await?;
    assert_eq!(app.works().await?, [Value::Null; 0]);
    Ok(())
}

#[tokio::test]
async fn an_application_outside_argo_cds_namespace_goes_where_its_project_permits() -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let hub = &stage.hub;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "pull-tenant", "namespace": "argocd"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"name": "cluster2", "namespace": "*"}]},
    });
    let project = ObjectRef::of(&hub.create(&project).await?);
    let mut app = elsewhere(stage, "pull-tenant", "pull-tenant-shop").await?;
    app.object["spec"]["project"] = json!("pull-tenant");
    app.object["metadata"]["annotations"][CLUSTER_NAMESPACE] = json!("argocd");
    let created = app.create().await?;
    let message = "the annotation apps.open-cluster-management.io/ocm-managed-cluster-app-namespace is only for \
                   Applications in Namespace argocd: remove it";
    is_refused(&app, message).await?;
    is_noted(hub, &created, ("Warning", "ManifestWorkRefused"), 1, message).await?;
    app.patch(&json!({"metadata": {"annotations": {CLUSTER_NAMESPACE: null}}}))
        .await?;
    let message = "AppProject argocd/pull-tenant does not permit Applications in Namespace pull-tenant: add it to \
                   `sourceNamespaces`";
    is_refused(&app, message).await?;
    let sources = json!({"spec": {"sourceNamespaces": ["pull-*"]}});
    hub.patch(&project, &sources).await?;
    let message = "AppProject argocd/pull-tenant does not permit ManagedCluster cluster1 with namespace \
                   \"pull-tenant-shop\": add `name: cluster1` and that namespace to `destinations`";
    is_refused(&app, message).await?;
    let destinations = json!({"spec": {"destinations": [
        {"name": "cluster1", "namespace": "pull-tenant-*"},
        {"name": "*", "namespace": "!kube-*"},
    ]}});
    hub.patch(&project, &destinations).await?;
    let delivered = hub
        .wait_for(&app.application(), |it| told(it, ERROR).is_empty())
        .await?;
    assert_eq!(delivered["metadata"]["annotations"][CLUSTER], "cluster1");
    hub.wait_for(&app.work().await?, |_| true).await?;
    app.end().await
}

#[tokio::test]
async fn an_application_counts_only_in_namespaces_that_argo_cd_serves() -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let app = elsewhere(stage, "pull-closed", "pull-closed-shop").await?;
    app.create().await?;
    let message = "Argo CD does not serve Applications in Namespace pull-closed: add it to `application.namespaces` of \
                   ConfigMap argocd/argocd-cmd-params-cm";
    is_refused(&app, message).await?;
    // In the namespace of a managed cluster nothing is said of it either: argocd-agent's principal writes it there.
    stage.hub.declare_managed_cluster("pull-autonomous").await?;
    let mut mirrored = Pulled::new(stage, "pull-mirrored")?;
    mirrored.object["metadata"]["namespace"] = json!("pull-autonomous");
    mirrored.object["metadata"]["finalizers"] = Value::Null;
    mirrored.create().await?;
    // What comes later is served, so this one was looked at.
    let later = Pulled::new(stage, "pull-after-mirrored")?.start().await?;
    assert_eq!(mirrored.on_hub().await?["status"], Value::Null);
    assert_eq!(mirrored.works().await?, [Value::Null; 0]);
    later.end().await?;
    mirrored.end().await?;
    app.end().await
}
