//! Tests of OCM's controllers of the hub, with a managed cluster.

use std::time::Instant;

use serde_json::json;
use testbed::{Hub, ManagedClusterOptions, ObjectRef};

#[tokio::test]
async fn replica_set_reaches_the_placements_clusters() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    hub.start_ocm_controllers().await?;
    let cluster1 = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;

    // Registration creates the cluster set, placement selects from it, and the work manager creates a work for the selection.
    let binding = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": "argocd"},
        "spec": {"clusterSet": "default"},
    });
    hub.apply(&binding).await?;
    hub.apply(&json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "all", "namespace": "argocd"},
        "spec": {},
    }))
    .await?;
    let decision = ObjectRef::namespaced(
        "cluster.open-cluster-management.io/v1beta1",
        "PlacementDecision",
        "argocd",
        "all-decision-1",
    );
    hub.wait_for(&decision, |it| {
        it["status"]["decisions"][0]["clusterName"] == "cluster1"
    })
    .await?;
    hub.apply(&json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "everywhere", "namespace": "argocd"},
        "spec": {
            "placementRefs": [{"name": "all"}],
            "manifestWorkTemplate": {"workload": {"manifests": [{
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "everywhere", "namespace": "default"},
            }]}},
        },
    }))
    .await?;
    cluster1
        .wait_for(&ObjectRef::config_map("default", "everywhere"), |_| true)
        .await?;
    Ok(())
}

#[tokio::test]
async fn cluster_joins_through_its_registration_agent() -> anyhow::Result<()> {
    let started = Instant::now();
    let hub = Hub::start().await?;
    hub.start_ocm_controllers().await?;
    let options = ManagedClusterOptions {
        registration_agent: true,
        ..ManagedClusterOptions::default()
    };
    let cluster1 = hub.add_managed_cluster("cluster1", options).await?;
    println!("joined after {:?}", started.elapsed());
    hub.create(&json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"namespace": "cluster1", "name": "hello"},
        "spec": {"workload": {"manifests": [{
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "hello", "namespace": "default"},
        }]}},
    }))
    .await?;
    cluster1
        .wait_for(&ObjectRef::config_map("default", "hello"), |_| true)
        .await?;
    Ok(())
}
