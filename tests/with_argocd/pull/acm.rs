//! Tests of the Red Hat ACM dialect.

use super::{
    FINALIZER, HUB_NAME, PLACEMENT, PULL, add_cluster, application, controller, own_by_set, runs, serve_all_namespaces,
    serves, works_of,
};
use crate::controller::wait_for_event;
use crate::stage::shipped;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::application::messages;
use testbed::{GitRepository, Hub, ObjectRef};

const OF_SET: &str = "apps.open-cluster-management.io/application-set";
const SET_HASH: &str = "apps.open-cluster-management.io/application-set-hash";

/// The namespace of users who are not administrators of the hub.
const TENANT: &str = "tenant";

/// Returns the AppProject in which they may deploy.
fn project() -> Value {
    ObjectRef::app_project("tenants").with(json!({"spec": {
        "sourceNamespaces": [TENANT],
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    }}))
}

/// Delivers an Application of an ApplicationSet in Argo CD's namespace, and waits until it has ACM's labels.
async fn check_set_hash(hub: &Hub, git: &GitRepository) -> Result<()> {
    let mut of_set = application("acm-of-set", git);
    own_by_set(hub, &mut of_set).await?;
    let of_set = ObjectRef::of(&hub.create(&of_set).await?);
    hub.apply_yaml(PLACEMENT)?;
    hub.wait_for_value(&of_set, "/status/sync/status", "Synced").await?;
    let work = works_of(hub, &of_set).await?.pop().context("a work")?;
    // ACM finds the works of a set by these labels: the hash is that of "argocd/appset-1".
    let labels = &work["metadata"]["labels"];
    assert_eq!(labels[OF_SET], "true", "{work:#}");
    assert_eq!(labels[SET_HASH], "b208dbecfe0a5f65581d608faac0e95c9a302b34", "{work:#}");
    assert!(labels.get(PULL).is_none(), "{work:#}");
    Ok(())
}

#[tokio::test]
async fn tenant_may_use_clusters_selected_by_its_placements() -> Result<()> {
    let hub = Hub::start().await?;
    let (cluster, ocm, controller) = tokio::join!(
        add_cluster(&hub, "cluster1"),
        hub.start_ocm_controllers(),
        controller(&hub, &[("ARGOCD_OCM_CMP_PULL_DIALECT", "acm")])
    );
    ocm?;
    let (cluster, _controller) = (cluster?, controller?);
    hub.create_namespace(TENANT).await?;
    serve_all_namespaces(&hub).await?;
    let project = hub.create(&project()).await?;
    let git = GitRepository::new()?;
    let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let mut object = application("acm-guestbook", &git);
    object["metadata"]["namespace"] = json!(TENANT);
    object["spec"]["project"] = json!("tenants");
    let created = hub.create(&object).await?;
    let app = ObjectRef::of(&created);

    let message = "no Placement in Namespace tenant selects ManagedCluster cluster1";
    let is_refused = |app: &Value| messages(app, "ManifestWorkError") == [message];
    hub.wait_for(&app, is_refused).await?;
    wait_for_event(&hub, &created, ("Warning", "ManifestWorkRefused"), 1, message).await?;
    // A Placement in another namespace changes nothing.
    check_set_hash(&hub, &git).await?;
    hub.wait_for(&app, is_refused).await?;
    assert!(works_of(&hub, &app).await?.is_empty());
    hub.apply_yaml(&PLACEMENT.replace("namespace: argocd", "namespace: tenant"))?;
    let now = hub.wait_for(&app, |app| runs(app, &commit)).await?;
    assert!(messages(&now, "ManifestWorkError").is_empty(), "{now:#}");

    let work = works_of(&hub, &app).await?.pop().context("a work")?;
    assert_eq!(work["metadata"]["labels"][PULL], "true");
    assert!(work["metadata"]["labels"].get(OF_SET).is_none());
    assert_eq!(work["metadata"]["annotations"][HUB_NAME], "acm-guestbook");
    let guestbook = ObjectRef::deployment("acm-guestbook", "guestbook-ui");
    serves(&cluster, &guestbook, 1).await?;
    let live = cluster.read(&app).await?;
    assert_eq!(live["metadata"]["finalizers"], json!([FINALIZER]));
    let namespace = ObjectRef::namespace(TENANT);
    let labels = cluster.read(&namespace).await?["metadata"]["labels"].take();
    assert_eq!(labels["argocd.argoproj.io/managed-by"], "argocd", "{labels:#}");
    let tenants = ObjectRef::of(&project);
    let delivered = cluster.read(&tenants).await?;
    assert_eq!(delivered["spec"], project["spec"]);

    // A change of the hub's AppProject is soon copied to the cluster's.
    hub.patch(&tenants, &json!({"spec": {"description": "changed"}}))
        .await?;
    cluster.wait_for_value(&tenants, "/spec/description", "changed").await?;

    // Other Applications may need the AppProject and the Namespace.
    hub.delete_and_wait(&app).await?;
    cluster.wait_gone(&guestbook).await?;
    for stays in [namespace, tenants] {
        let now = cluster.read(&stays).await?;
        assert!(now["metadata"]["deletionTimestamp"].is_null(), "{now:#}");
        assert!(now["metadata"]["ownerReferences"].is_null(), "{now:#}");
    }
    Ok(())
}
