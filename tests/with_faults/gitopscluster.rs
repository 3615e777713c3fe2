//! Tests of GitOpsClusters with a real API server: writes are accepted, Secrets of others are untouched, and nothing is written
//! twice.

use crate::gitopscluster_crd::{install, named, object};
use crate::stage::{Replica, Stage, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::process::{self, Process};
use testbed::proxy::Proxy;
use testbed::{ObjectRef, wait};

const CONTROLLER: &str = "gitopscluster";

/// Returns a hub with the kind, without cluster Secrets, and with these managed clusters.
pub(crate) async fn hub(clusters: &[&str]) -> Result<Stage> {
    let stage = stage(clusters[0]).await?;
    for cluster in &clusters[1..] {
        stage.hub.declare_managed_cluster(cluster).await?;
    }
    install(&stage).await?;
    let secrets = "argocd.argoproj.io/secret-type=cluster";
    stage
        .hub
        .kubectl(&["-n", "argocd", "delete", "secrets", "-l", secrets])?;
    let placements =
        "placements.cluster.open-cluster-management.io,placementdecisions.cluster.open-cluster-management.io";
    stage.hub.kubectl(&["-n", "argocd", "delete", "--all", placements])?;
    Ok(stage)
}

pub(crate) fn secret(cluster: &str) -> ObjectRef {
    let name = format!("{cluster}-application-manager-cluster-secret");
    ObjectRef::secret("argocd", &name)
}

fn of_placement(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::namespaced("cluster.open-cluster-management.io/v1beta1", kind, "argocd", name)
}

/// Creates a Placement and its decisions, as OCM's controller writes them.
pub(crate) async fn select(stage: &Stage, placement: &str, clusters: &[&str]) -> Result<()> {
    decide(stage, placement, clusters).await?;
    let status = json!({"status": {"conditions": [], "numberOfSelectedClusters": clusters.len()}});
    stage
        .hub
        .patch_status(&of_placement("Placement", placement), &status)
        .await
        .map(drop)
}

async fn decide(stage: &Stage, placement: &str, clusters: &[&str]) -> Result<()> {
    let decision = format!("{placement}-decision-1");
    let object = |kind: &str, name: &str| {
        ObjectRef::namespaced("cluster.open-cluster-management.io/v1beta1", kind, "argocd", name).with(json!({}))
    };
    let mut selecting = object("Placement", placement);
    selecting["spec"] = json!({});
    let mut decided = object("PlacementDecision", &decision);
    decided["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/placement": placement});
    for object in [selecting, decided] {
        stage.hub.apply(&object).await?;
    }
    let decisions: Vec<_> = clusters
        .iter()
        .map(|name| json!({"clusterName": name, "reason": ""}))
        .collect();
    let status = json!({"status": {"decisions": decisions}});
    stage
        .hub
        .patch_status(&of_placement("PlacementDecision", &decision), &status)
        .await
        .map(drop)
}

/// Returns a spec for the clusters of a Placement.
pub(crate) fn spec(placement: &str) -> Value {
    json!({
        "argoServer": {"cluster": "notused", "argoNamespace": "argocd"},
        "createBlankClusterSecrets": true,
        "placementRef": {"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": placement},
    })
}

pub(crate) fn goc(name: &str) -> ObjectRef {
    named("v1beta1", name)
}

/// Returns the status, the reason and the message of a condition.
pub(crate) fn condition<'o>(object: &'o Value, kind: &str) -> [&'o str; 3] {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|it| it["type"] == kind);
    ["status", "reason", "message"].map(|key| found.and_then(|it| it[key].as_str()).unwrap_or_default())
}

pub(crate) async fn until(stage: &Stage, name: &str, kind: &str, status: &str, words: &str) -> Result<Value> {
    let has_condition = |it: &Value| {
        let [is, _, message] = condition(it, kind);
        let is_observed = it["status"]["conditions"][0]["observedGeneration"] == it["metadata"]["generation"];
        is == status && message.contains(words) && is_observed
    };
    stage.hub.wait_for(&goc(name), has_condition).await
}

async fn controller(stage: &Stage, proxy: &Proxy) -> Result<Replica> {
    stage.controller_for(CONTROLLER, proxy).await
}

async fn label(stage: &Stage, cluster: &str, value: &str) -> Result<Value> {
    let managed = ObjectRef::managed_cluster(cluster);
    let labels = json!({"metadata": {"labels": {"change": value}}});
    stage.hub.patch(&managed, &labels).await?;
    let is_there = |secret: &Value| secret["metadata"]["labels"]["change"] == value;
    stage.hub.wait_for(&secret(cluster), is_there).await
}

/// Returns the first cluster's Secret, as ACM writes it.
fn of_acm() -> Value {
    ObjectRef::secret("argocd", "goc-one-application-manager-cluster-secret").with(json!({
        "metadata": {"labels": {
                "argocd.argoproj.io/secret-type": "cluster",
                "apps.open-cluster-management.io/acm-cluster": "true",
                "apps.open-cluster-management.io/cluster-name": "goc-one",
                "apps.open-cluster-management.io/cluster-server": "goc-one-control-plane",
                "apps.open-cluster-management.io/data-source": "blank",
            }},
        "stringData": {"name": "goc-one", "server": "https://goc-one-control-plane"},
    }))
}

/// Returns the third cluster's Secret, as a user writes it for a direct connection of Argo CD.
fn push() -> Value {
    ObjectRef::secret("argocd", "push").with(json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "goc-three", "server": "https://goc-three.example.com", "config": "{\"password\":\"hunter2\"}"},
    }))
}

/// Checks that a cluster that leaves loses its Secret, after the Placement has changed as well, and that a Placement without
/// decisions deletes nothing.
async fn check_leaving_and_empty_decisions(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    decide(stage, "goc", &["goc-one", "goc-two"]).await?;
    until(stage, "goc", "PlacementResolved", "Unknown", "no cluster is removed").await?;
    assert!(hub.get(&secret("goc-three")).await?.is_some());
    select(stage, "goc", &["goc-one", "goc-two"]).await?;
    hub.wait_gone(&secret("goc-three")).await?;
    until(stage, "goc", "Ready", "True", "").await?;
    select(stage, "goc", &[]).await?;
    until(
        stage,
        "goc",
        "PlacementResolved",
        "False",
        "selects no cluster; registered clusters stay registered",
    )
    .await?;
    for cluster in ["goc-one", "goc-two"] {
        assert!(hub.get(&secret(cluster)).await?.is_some(), "{cluster}");
    }
    Ok(())
}

/// Checks that a deleted GitOpsCluster removes its own objects and then its finalizer.
async fn check_deletion_beside_another(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    select(stage, "goc-other", &["goc-three"]).await?;
    hub.create(&object("v1beta1", "goc-other", &spec("goc-other"))).await?;
    until(stage, "goc-other", "Ready", "True", "").await?;
    hub.delete(&goc("goc")).await?;
    hub.wait_gone(&goc("goc")).await?;
    for cluster in ["goc-one", "goc-two"] {
        assert!(hub.get(&secret(cluster)).await?.is_none(), "{cluster}");
    }
    assert!(hub.get(&secret("goc-three")).await?.is_some());
    hub.delete(&goc("goc-other")).await?;
    hub.wait_gone(&goc("goc-other")).await?;
    assert!(hub.get(&secret("goc-three")).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn registers_selected_clusters_until_deletion() -> Result<()> {
    let clusters = ["goc-one", "goc-two", "goc-three"];
    let stage = hub(&clusters).await?;
    let hub = &stage.hub;
    // Red Hat ACM wrote the Secret of the first cluster, another writer that of the third.
    let acms = hub.create(&of_acm()).await?;
    let push = hub.create(&push()).await?;
    select(&stage, "goc", &clusters).await?;
    hub.create(&object("v1beta1", "goc", &spec("goc"))).await?;

    let proxy = stage.proxy().await?;
    let running = controller(&stage, &proxy).await?;
    let words = "2 of 3 clusters are registered; goc-three: Argo CD knows this cluster by Secret argocd/push";
    let updated = until(&stage, "goc", "ClustersRegistered", "False", words).await?;
    assert_eq!(
        condition(&updated, "Ready")[..2],
        ["False", "ClusterRegistrationFailed"]
    );
    assert_eq!(updated["status"]["clusters"], json!({"selected": 3, "registered": 2}));
    assert_eq!(updated["status"]["phase"], "failed");
    assert_eq!(
        updated["metadata"]["finalizers"],
        json!(["gitopscluster.argocd-ocm-cmp.github.io/argocd"])
    );
    let adopted = hub.read(&secret("goc-one")).await?;
    assert_eq!(adopted["metadata"]["uid"], acms["metadata"]["uid"]);
    for cluster in ["goc-one", "goc-two"] {
        let made = hub.get(&secret(cluster)).await?.context(cluster)?;
        let owner = &made["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
        assert_eq!(owner, "argocd/goc", "{cluster}");
        assert_eq!(
            made["data"]["server"],
            encoded(&format!("https://{cluster}-control-plane")),
            "{cluster}"
        );
        assert_eq!(
            made["metadata"]["labels"]["apps.open-cluster-management.io/acm-cluster"],
            "true"
        );
    }
    let first = proxy.requests();
    let finalizer = first
        .iter()
        .position(|request| request.is_write() && request.resource == "gitopsclusters");
    let made = first
        .iter()
        .position(|request| request.is_write() && request.resource == "secrets");
    assert!(finalizer.context("a finalizer")? < made.context("a Secret")?);
    wait_for_event(&stage, "goc-three: Argo CD knows this cluster by Secret argocd/push").await?;

    // The conflict ends when the other writer's Secret is deleted. Only the new Secret is written.
    hub.delete(&ObjectRef::of(&push)).await?;
    let healthy = until(&stage, "goc", "Ready", "True", "").await?;
    assert_eq!(healthy["status"]["phase"], "successful");
    let shown = hub.kubectl(&["-n", "argocd", "get", "goc", "goc", "--no-headers"])?;
    let shown: Vec<_> = shown.split_whitespace().take(4).collect();
    assert_eq!(shown, ["goc", "True", "3", "3"]);

    assert!(!running.log()?.contains("hunter2"), "{}", running.log()?);
    check_leaving_and_empty_decisions(&stage).await?;
    check_deletion_beside_another(&stage).await?;
    running.stop().await
}

/// Checks that the permissions in the shipped files are sufficient and used.
#[tokio::test]
async fn shipped_permissions_suffice_and_are_used() -> Result<()> {
    let stage = hub(&["goc-rights", "goc-going"]).await?;
    let hub = &stage.hub;
    for file in [
        "deploy/deploy_controller.yaml",
        "deploy/admission_policy.yaml",
        "deploy/deploy_gitopscluster.yaml",
    ] {
        hub.kubectl(&["apply", "-f", &format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))])?;
    }
    let account = "argocd-ocm-cmp-controller";
    // Tests before this one on the same hub have used the account too.
    let earlier = hub.requests_by(account)?.len();
    let permissions: [&[&str]; 2] = [
        &["list", "secrets", "--namespace=argocd"],
        &["list", "gitopsclusters", "--namespace=default"],
    ];
    hub.wait_for_permissions("argocd", account, &permissions).await?;
    let port = testbed::ports::free()?;
    let home = tempfile::tempdir()?;
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        home.path(),
        &["--controllers=gitopscluster", "--leader-elect=false"],
        port,
        hub.service_account_kubeconfig("argocd", account)?,
    );
    let log = hub.logs().join("goc-rights.log");
    let running = Process::start("goc-rights", command, &log)?;

    select(&stage, "goc", &["goc-rights", "goc-going"]).await?;
    hub.create(&object("v1beta1", "goc", &spec("goc"))).await?;
    until(&stage, "goc", "Ready", "True", "").await?;
    label(&stage, "goc-rights", "1").await?;
    let going = ObjectRef::managed_cluster("goc-going");
    hub.delete(&going).await?;
    hub.wait_gone(&secret("goc-going")).await?;
    hub.delete(&goc("goc")).await?;
    hub.wait_gone(&goc("goc")).await?;
    assert!(hub.get(&secret("goc-rights")).await?.is_none());
    running.terminate().await?;
    let log = std::fs::read_to_string(log)?;
    assert!(!log.contains("forbidden"), "{log}");
    let requests = hub.requests_by(account)?.split_off(earlier);
    let verbs = |kind: &str| -> BTreeSet<String> {
        let of_kind = requests.iter().filter(|event| {
            let object = &event["objectRef"];
            let below = object["subresource"]
                .as_str()
                .map_or(String::new(), |part| format!("/{part}"));
            object["resource"]
                .as_str()
                .is_some_and(|resource| format!("{resource}{below}") == kind)
        });
        of_kind
            .filter_map(|event| event["verb"].as_str().map(str::to_owned))
            .collect()
    };
    // `list` is granted besides: for API servers without streaming lists.
    for (kind, expected) in [
        ("gitopsclusters", &["patch", "watch"][..]),
        ("gitopsclusters/status", &["patch"]),
        ("placements", &["watch"]),
        ("placementdecisions", &["watch"]),
        ("namespaces", &["watch"]),
        ("managedclusters", &["get", "watch"]),
        ("secrets", &["create", "delete", "patch", "watch"]),
    ] {
        assert_eq!(
            verbs(kind),
            expected.iter().map(|verb| (*verb).to_owned()).collect(),
            "{kind}"
        );
    }
    Ok(())
}

fn encoded(text: &str) -> Value {
    json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
}

/// Waits for an Event on the GitOpsCluster `goc` with these words.
pub(crate) async fn wait_for_event(stage: &Stage, words: &str) -> Result<()> {
    let event_exists = async || {
        let fields = "involvedObject.kind=GitOpsCluster,involvedObject.name=goc";
        let events = stage
            .hub
            .kubectl(&["-n", "argocd", "get", "events", "--field-selector", fields, "-o=json"]);
        let events: Value = serde_json::from_str(&events.ok()?).ok()?;
        let mut events = events["items"].as_array()?.iter();
        events
            .any(|event| event["message"].as_str().is_some_and(|it| it.contains(words)))
            .then_some(())
    };
    wait::eventually(words, wait::DEADLINE, event_exists).await
}
