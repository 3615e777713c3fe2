//! Tests of targets by Placement, with an Application for each: the shipped ApplicationSet, with OCM's real placement controller.

use super::{Fleet, fleet};
use crate::stage::{shipped, shipped_object, shipped_objects};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::TcpListener;
use testbed::application::is_healthy;
use testbed::{GitRepository, Hub, ObjectRef, condition, is_applied, is_synced, is_true};

/// One ApplicationSet of the fleet, with its Placement.
struct Set<'h> {
    hub: &'h Hub,
    /// The name of the Placement and the ApplicationSet, and of the label that selects clusters.
    name: &'static str,
}

impl Set<'_> {
    /// Returns the shipped Placement and ApplicationSet with this name.
    fn shipped(&self) -> Result<[Value; 2]> {
        let [_, placement, set] = <[Value; 3]>::try_from(shipped_objects("examples/appset.yaml")?)
            .map_err(|objects| anyhow::anyhow!("not three objects: {objects:?}"))?;
        let renamed = |object: Value| serde_json::from_str(&object.to_string().replace("guestbook", self.name));
        Ok([renamed(placement)?, renamed(set)?])
    }

    fn set(&self) -> ObjectRef {
        ObjectRef::application_set(self.name)
    }

    fn placement(&self) -> ObjectRef {
        ObjectRef::placement(self.name)
    }

    fn decision(&self, number: usize) -> ObjectRef {
        ObjectRef {
            kind: "PlacementDecision".to_owned(),
            name: format!("{}-decision-{number}", self.name),
            ..self.placement()
        }
    }

    fn application(&self, cluster: &str) -> ObjectRef {
        ObjectRef::application(&format!("{}-{cluster}", self.name))
    }

    fn work(&self, cluster: &str) -> ObjectRef {
        ObjectRef::manifest_work(cluster, &format!("{}-{cluster}", self.name))
    }

    /// Makes the Placement select the cluster, or deselect it.
    async fn select(&self, cluster: &str, selected: bool) -> Result<()> {
        let label = if selected { json!("true") } else { Value::Null };
        let labels = json!({"metadata": {"labels": {self.name: label}}});
        self.hub
            .patch(&ObjectRef::managed_cluster(cluster), &labels)
            .await
            .map(drop)
    }

    /// Waits until a decision of the Placement names these clusters.
    async fn decided(&self, number: usize, clusters: &[&str]) -> Result<()> {
        let decided = |object: &Value| {
            let decisions = object["status"]["decisions"].as_array().into_iter().flatten();
            decisions.map(|decision| &decision["clusterName"]).eq(clusters)
        };
        self.hub.wait_for(&self.decision(number), decided).await.map(drop)
    }

    /// Makes the controller reconcile the ApplicationSet now instead of after a minute.
    async fn request_refresh(&self) -> Result<()> {
        let refresh = json!({"metadata": {"annotations": {REFRESH: "true"}}});
        self.hub.patch(&self.set(), &refresh).await.map(drop)
    }

    /// Waits until the controller has reconciled it.
    async fn wait_for_reconcile(&self) -> Result<()> {
        self.request_refresh().await?;
        let done = |set: &Value| set["metadata"]["annotations"][REFRESH].is_null();
        self.hub.wait_for(&self.set(), done).await.map(drop)
    }

    /// Returns the clusters that have an Application of the ApplicationSet.
    async fn clusters(&self) -> Result<Vec<String>> {
        let applications = self.hub.list("argoproj.io/v1alpha1", "Application").await?;
        let names = applications
            .iter()
            .filter_map(|application| application["metadata"]["name"].as_str());
        let ours = names.filter_map(|name| name.strip_prefix(self.name)?.strip_prefix('-'));
        Ok(ours.map(str::to_owned).collect())
    }
}

const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

/// Returns the cluster Secret of a managed cluster as documented in examples/cluster_secret.yaml.
fn cluster_secret(cluster: &str) -> Result<Value> {
    let secret = shipped_object("examples/cluster_secret.yaml")?.to_string();
    Ok(serde_json::from_str(&secret.replace("cluster1", cluster))?)
}

/// Returns the identity of an object that must stay.
async fn identity(hub: &Hub, object: &ObjectRef) -> Result<Value> {
    let live = hub.read(object).await?;
    let metadata = &live["metadata"];
    ensure!(metadata["deletionTimestamp"].is_null(), "{object} is going");
    Ok(metadata["uid"].clone())
}

/// Makes a cluster unreachable for OCM, which adds a taint.
async fn make_unreachable(hub: &Hub, cluster: &str) -> Result<()> {
    let cluster = ObjectRef::managed_cluster(cluster);
    let live = hub.read(&cluster).await?;
    let mut conditions = live["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().context("its conditions")? {
        if condition["type"] == "ManagedClusterConditionAvailable" {
            condition["status"] = json!("Unknown");
        }
    }
    hub.patch_status(&cluster, &json!({"status": {"conditions": conditions}}))
        .await?;
    let is_tainted = |cluster: &Value| {
        let taints = cluster["spec"]["taints"].as_array();
        taints.is_some_and(|taints| {
            taints.iter().any(|taint| {
                taint["key"] == "cluster.open-cluster-management.io/unreachable" && taint["effect"] == "NoSelect"
            })
        })
    };
    hub.wait_for(&cluster, is_tainted).await.map(drop)
}

#[tokio::test]
async fn cluster_gets_a_work_on_joining_and_loses_it_on_leaving() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet { hub, cluster1, .. } = &*fleet;
    let guestbook = Set { hub, name: "guestbook" };
    for cluster in ["cluster2", "cluster3", "unknown"] {
        hub.declare_managed_cluster(cluster).await?;
    }
    // Argo CD knows all but one. One of them has a server that would receive a connection of Argo CD.
    for cluster in ["cluster1", "cluster2", "cluster3"] {
        hub.apply(&cluster_secret(cluster)?).await?;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let server = format!("https://{}", listener.local_addr()?);
    let secret = ObjectRef::secret("argocd", "cluster3-application-manager-cluster-secret");
    hub.patch(&secret, &json!({"stringData": {"server": server}})).await?;

    let git = GitRepository::new()?;
    git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let [placement, mut set] = guestbook.shipped()?;
    hub.kubectl_with_input("apply -f -", &placement.to_string())?;
    for cluster in ["cluster1", "cluster2", "unknown"] {
        guestbook.select(cluster, true).await?;
    }
    guestbook.decided(1, &["cluster1", "cluster2", "unknown"]).await?;
    // Only the URL of the repository differs from the shipped file.
    set["spec"]["template"]["spec"]["source"]["repoURL"] = json!(git.url());
    hub.kubectl_with_input("apply -f -", &set.to_string())?;

    // An Application and a work exist for each cluster that is selected and known.
    let deployment = ObjectRef::deployment("default", "guestbook-ui");
    for cluster in ["cluster1", "cluster2"] {
        hub.wait_for(&guestbook.application(cluster), is_synced).await?;
        hub.wait_for(&guestbook.work(cluster), |_| true).await?;
    }
    hub.wait_for(&guestbook.work("cluster1"), is_applied).await?;
    cluster1
        .wait_for(&deployment, |deployment| is_true(deployment, "Available"))
        .await?;
    hub.wait_for(&guestbook.application("cluster1"), is_healthy).await?;
    assert_eq!(guestbook.clusters().await?, ["cluster1", "cluster2"]);

    // One cluster joins.
    guestbook.select("cluster3", true).await?;
    guestbook
        .decided(1, &["cluster1", "cluster2", "cluster3", "unknown"])
        .await?;
    guestbook.wait_for_reconcile().await?;
    hub.wait_for(&guestbook.application("cluster3"), is_synced).await?;
    hub.wait_for(&guestbook.work("cluster3"), |_| true).await?;

    // One cluster is unreachable, and stays. One leaves, and its Application and work are deleted with all their objects.
    let mut others = Vec::new();
    for cluster in ["cluster2", "cluster3"] {
        for object in [guestbook.application(cluster), guestbook.work(cluster)] {
            others.push((identity(hub, &object).await?, object));
        }
    }
    make_unreachable(hub, "cluster2").await?;
    guestbook.select("cluster1", false).await?;
    guestbook.decided(1, &["cluster2", "cluster3", "unknown"]).await?;
    guestbook.wait_for_reconcile().await?;
    hub.wait_gone(&guestbook.application("cluster1")).await?;
    hub.wait_gone(&guestbook.work("cluster1")).await?;
    cluster1.wait_gone(&deployment).await?;
    for (before, object) in &others {
        assert_eq!(identity(hub, object).await?, *before, "{object}");
    }

    // A deleted Placement does not mean that no cluster is selected.
    hub.delete(&guestbook.placement()).await?;
    hub.wait_gone(&guestbook.decision(1)).await?;
    guestbook.request_refresh().await?;
    let message = "no clusterDecisionResources found";
    hub.wait_for(&guestbook.set(), |set| {
        condition(set, "ErrorOccurred").is_some_and(|error| error["message"] == message && error["status"] == "True")
    })
    .await?;
    for (before, object) in &others {
        assert_eq!(identity(hub, object).await?, *before, "{object}");
    }

    hub.delete(&guestbook.set()).await?;
    for (_, object) in &others {
        hub.wait_gone(object).await?;
    }
    let connection = listener.accept();
    assert!(
        connection.is_err(),
        "Argo CD has connected to a managed cluster: {connection:?}"
    );
    Ok(())
}
