//! Tests with a hub on which OCM's Placements select clusters.

mod applicationset;
mod holds;
pub(crate) mod placement;
mod report;
mod rolling_sync;

use crate::controller::Controller;
use crate::stage::{argocd, hub_with, shipped_objects};
use anyhow::Result;
use serde_json::json;
use testbed::{Borrowed, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, Shared};
use tokio::sync::OnceCell;

/// The hub with all of OCM's controllers, Argo CD with ApplicationSets, the controller, and three clusters, here in the order of
/// their names.
pub(crate) struct Fleet {
    pub(crate) hub: Hub,
    pub(crate) cluster1: ManagedCluster,
    pub(crate) second: ManagedCluster,
    pub(crate) third: ManagedCluster,
    _controller: Controller,
    /// Done once the reports of ApplicationSets are installed.
    reports: OnceCell<()>,
}

impl Fleet {
    pub(crate) fn clusters(&self) -> [&ManagedCluster; 3] {
        [&self.cluster1, &self.second, &self.third]
    }

    /// Labels a managed cluster, so that a Placement selects it, or removes the label.
    pub(crate) async fn label(&self, cluster: &str, label: &str, value: Option<&str>) -> Result<()> {
        let cluster = ObjectRef::managed_cluster(cluster);
        let labels = json!({"metadata": {"labels": {label: value}}});
        self.hub.patch(&cluster, &labels).await.map(drop)
    }
}

/// Returns the fleet that the tests here share.
async fn fleet() -> Result<Borrowed<Fleet>> {
    static FLEET: Shared<Fleet> = Shared::new();
    FLEET.borrow(|| Box::pin(set_up())).await
}

/// Starts a hub with the objects that several ApplicationSets need.
pub(crate) async fn hub() -> Result<Hub> {
    let hub = hub_with("proj.yaml cm_plugin.yaml deploy/appset_placement.yaml").await?;
    // Placements of these tests are in Argo CD's namespace, where proj.yaml permits no ManifestWorkReplicaSet.
    let project = ObjectRef::app_project("managed-clusters");
    let everywhere = json!([{"server": "https://kubernetes.default.svc", "namespace": "*"}]);
    hub.patch(&project, &json!({"spec": {"destinations": everywhere}}))
        .await?;
    hub.apply(&shipped_objects("examples/appset.yaml")?[0]).await?;
    Ok(hub)
}

async fn set_up() -> Result<Fleet> {
    let hub = hub().await?;
    let argocd = argocd(&hub, "plugin-for-a-fleet").await?.with_rolling_sync();
    let cluster = |name| hub.add_managed_cluster(name, ManagedClusterOptions::default());
    let (cluster1, second, third, argocd, ocm, controller) = tokio::join!(
        cluster("cluster1"),
        cluster("second"),
        cluster("third"),
        hub.start_argocd(argocd),
        hub.start_ocm_controllers(),
        Controller::start(&hub)
    );
    argocd?;
    ocm?;
    Ok(Fleet {
        cluster1: cluster1?,
        second: second?,
        third: third?,
        _controller: controller?,
        reports: OnceCell::new(),
        hub,
    })
}
