//! Tests of Argo CD's tenancy rules, for Applications whose Argo CD is on the managed cluster.

use super::{CLUSTER, HUB_NAME, PulledApplication, Stage, stage};
use crate::controller::wait_for_event;
use anyhow::Result;
use ocm::pull_model::CLUSTER_NAMESPACE;
use serde_json::{Value, json};
use testbed::ObjectRef;
use testbed::application::messages;

const ERROR: &str = "ManifestWorkError";

/// Creates an Application in this namespace of the hub, and the namespace on the cluster.
async fn application_in<'s>(stage: &'s Stage, namespace: &str, name: &str) -> Result<PulledApplication<'s>> {
    stage.hub.create_namespace(namespace).await?;
    stage.cluster1.create_namespace(namespace).await?;
    let mut app = PulledApplication::new(stage, name)?;
    app.object["metadata"]["namespace"] = json!(namespace);
    // The cluster's Argo CD may not know the project, and then deletes nothing.
    app.object["metadata"]["finalizers"] = Value::Null;
    Ok(app)
}

/// Waits until an Application is rejected with this message, and checks that it has no work.
async fn wait_for_refusal(app: &PulledApplication<'_>, message: &str) -> Result<()> {
    let hub = &app.stage.hub;
    hub.wait_for(&app.application(), |application| {
        messages(application, ERROR) == [message]
    })
    .await?;
    assert_eq!(app.works().await?, [Value::Null; 0]);
    Ok(())
}

#[tokio::test]
async fn application_in_another_namespace_deploys_where_its_project_permits() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let project = ObjectRef::app_project("pull-tenant")
        .with(json!({"spec": {"sourceRepos": ["*"], "destinations": [{"name": "cluster2", "namespace": "*"}]}}));
    let project = ObjectRef::of(&hub.create(&project).await?);
    let mut app = application_in(&stage, "pull-tenant", "pull-tenant-shop").await?;
    app.object["spec"]["project"] = json!("pull-tenant");
    app.object["metadata"]["annotations"][CLUSTER_NAMESPACE] = json!("argocd");
    let created = app.create().await?;
    let message = "the annotation apps.open-cluster-management.io/ocm-managed-cluster-app-namespace is only for \
                   Applications in Namespace argocd: remove it";
    wait_for_refusal(&app, message).await?;
    wait_for_event(hub, &created, ("Warning", "ManifestWorkRefused"), 1, message).await?;
    app.patch(&json!({"metadata": {"annotations": {CLUSTER_NAMESPACE: null}}}))
        .await?;
    let message = "AppProject argocd/pull-tenant does not permit Applications in Namespace pull-tenant: add it to \
                   `sourceNamespaces`";
    wait_for_refusal(&app, message).await?;
    let sources = json!({"spec": {"sourceNamespaces": ["pull-*"]}});
    hub.patch(&project, &sources).await?;
    let message = "AppProject argocd/pull-tenant does not permit ManagedCluster cluster1 with namespace \
                   \"pull-tenant-shop\": add `name: cluster1` and that namespace to `destinations`";
    wait_for_refusal(&app, message).await?;
    let destinations = json!({"spec": {"destinations": [
        {"name": "cluster1", "namespace": "pull-tenant-*"},
        {"name": "*", "namespace": "!kube-*"},
    ]}});
    hub.patch(&project, &destinations).await?;
    let delivered = hub
        .wait_for(&app.application(), |application| {
            messages(application, ERROR).is_empty()
        })
        .await?;
    assert_eq!(delivered["metadata"]["annotations"][CLUSTER], "cluster1");
    hub.wait_for(&app.work().await?, |_| true).await?;
    app.end().await
}

#[tokio::test]
async fn ignores_applications_in_unserved_namespaces() -> Result<()> {
    let stage = stage().await?;
    let app = application_in(&stage, "pull-closed", "pull-closed-shop").await?;
    app.create().await?;
    let message = "Argo CD does not serve Applications in Namespace pull-closed: add it to `application.namespaces` of \
                   ConfigMap argocd/argocd-cmd-params-cm";
    wait_for_refusal(&app, message).await?;
    // In the namespace of a managed cluster it gets no condition either: argocd-agent's principal writes it there.
    stage.hub.declare_managed_cluster("pull-autonomous").await?;
    let mut mirrored = PulledApplication::new(&stage, "pull-mirrored")?;
    mirrored.object["metadata"]["namespace"] = json!("pull-autonomous");
    mirrored.object["metadata"]["finalizers"] = Value::Null;
    mirrored.create().await?;
    // A later Application is served, so this one was reconciled.
    let later = PulledApplication::new(&stage, "pull-after-mirrored")?.start().await?;
    assert_eq!(mirrored.on_hub().await?["status"], Value::Null);
    assert_eq!(mirrored.works().await?, [Value::Null; 0]);
    later.end().await?;
    mirrored.end().await?;
    app.end().await
}

/// Returns the identity of a managed cluster's agent on the hub: the user and groups in its certificate.
fn agent_of(cluster: &str) -> [String; 3] {
    [
        format!("--as=system:open-cluster-management:{cluster}:agent"),
        format!("--as-group=system:open-cluster-management:{cluster}"),
        "--as-group=system:authenticated".to_owned(),
    ]
}

#[tokio::test]
async fn cluster_cannot_claim_an_application_of_another() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let victim = PulledApplication::new(&stage, "pull-victim")?;
    let mut neighbour = PulledApplication::new(&stage, "pull-neighbour")?;
    neighbour.object["metadata"]["annotations"][CLUSTER] = json!("cluster2");
    neighbour.object["metadata"]["finalizers"] = Value::Null;
    let (victim, neighbour) = tokio::try_join!(victim.start(), neighbour.start())?;
    let stray = neighbour.work().await?;

    // The agent of cluster2 claims the other Application in its own work, and blocks the work's deletion with a finalizer.
    let agent = agent_of("cluster2");
    let as_agent = |arguments: &[&str]| {
        let all = arguments.iter().copied().chain(agent.iter().map(String::as_str));
        hub.kubectl(&all.collect::<Vec<_>>())
    };
    let of_cluster2 = ["-n=cluster2", "manifestwork", &stray.name];
    let claim = json!({"metadata": {
        "annotations": {HUB_NAME: "pull-victim"},
        "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup", "example.com/held"],
    }});
    let patch = format!("--patch={claim}");
    as_agent(&[&["patch", "--type=merge", &patch], &of_cluster2[..]].concat())?;
    as_agent(&[&["delete", "--wait=false"], &of_cluster2[..]].concat()).expect_err("the agent may not delete works");

    // The controller repairs the cluster's own Application, and the other one is unchanged.
    let is_right = |work: &Value| work["metadata"]["annotations"][HUB_NAME] == "pull-neighbour";
    let work = hub.wait_for(&stray, is_right).await?;
    assert_eq!(work["metadata"]["deletionTimestamp"], Value::Null, "{work:#}");
    let commit = victim.scale(2)?;
    victim.runs(&commit).await?;

    // Even after its own Application is deleted, it cannot block the deletion of the other.
    hub.delete_and_wait(&neighbour.application()).await?;
    let claim = json!({"metadata": {"annotations": {HUB_NAME: "pull-victim"}}});
    let patch = format!("--patch={claim}");
    as_agent(&[&["patch", "--type=merge", &patch], &of_cluster2[..]].concat())?;
    victim.end().await?;
    hub.read(&stray).await?;
    hub.patch(&stray, &json!({"metadata": {"finalizers": null}})).await?;
    hub.delete_and_wait(&stray).await
}
