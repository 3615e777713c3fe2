//! Tests of two controllers for two Argo CDs on one hub: each registers, maintains and deletes only its own clusters.

use crate::gitopscluster::{condition, goc, hub, secret, spec, until};
use crate::gitopscluster_crd::object;
use crate::stage::{Replica, Stage};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::ObjectRef;
use testbed::proxy::{Proxy, RecordedRequest};

const CLUSTERS: [&str; 2] = ["own-one", "own-two"];
/// The namespace of the second Argo CD.
const SECOND: &str = "own-gitops";
const OURS: [&str; 2] = [
    "gitopscluster.argocd-ocm-cmp.github.io/argocd",
    "gitopscluster.argocd-ocm-cmp.github.io/own-gitops",
];

/// Starts the controller for the Argo CD of a namespace.
async fn controller(stage: &Stage, argocd: &str, proxy: &Proxy) -> Result<Replica> {
    let argocd_namespace = format!("--argocd-namespace={argocd}");
    let arguments = ["--controllers=gitopscluster", "--leader-elect=false", &argocd_namespace];
    let replica = stage.replica_with(&arguments, &format!("of-{argocd}"), proxy).await?;
    replica.until_ready().await?;
    Ok(replica)
}

fn of_second(cluster: &str) -> ObjectRef {
    ObjectRef {
        namespace: Some(SECOND.to_owned()),
        ..secret(cluster)
    }
}

/// Returns a GitOpsCluster for the second Argo CD.
fn for_second(placement: &str) -> Value {
    let mut spec = spec(placement);
    spec["argoServer"]["argoNamespace"] = json!(SECOND);
    spec
}

fn finalizers(object: &Value) -> Vec<&str> {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the writes to a GitOpsCluster, and to the Secrets of a namespace.
fn writes_to(requests: &[RecordedRequest], name: &str, secrets_of: &str) -> Vec<String> {
    let is_of_it = |request: &&RecordedRequest| {
        let of_goc = request.resource.starts_with("gitopsclusters") && request.name.as_deref() == Some(name);
        let of_secret = request.resource == "secrets" && request.path.contains(&format!("/namespaces/{secrets_of}/"));
        request.is_write() && (of_goc || of_secret)
    };
    requests.iter().filter(is_of_it).map(ToString::to_string).collect()
}

/// Waits until the second controller has handled all earlier watch events of GitOpsClusters: it writes for a later change.
async fn wait_for_second_controller(stage: &Stage, round: u32) -> Result<()> {
    let change = json!({"spec": {"managedServiceAccountRef": format!("round-{round}")}});
    let changed = stage.hub.patch(&goc("second"), &change).await?;
    let is_seen = |it: &Value| it["status"]["conditions"][0]["observedGeneration"] == changed["metadata"]["generation"];
    stage.hub.wait_for(&goc("second"), is_seen).await.map(drop)
}

#[tokio::test]
async fn two_controllers_keep_and_remove_only_their_own_objects() -> Result<()> {
    let stage = hub(&CLUSTERS).await?;
    let hub = &stage.hub;
    hub.create_namespace(SECOND).await?;
    let open = json!({"metadata": {"labels": {"apps.open-cluster-management.io/gitops-argo-namespace": "true"}}});
    hub.patch(&ObjectRef::namespace(SECOND), &open).await?;
    hub.select("first", &["own-one"]).await?;
    hub.select("second", &["own-two"]).await?;
    let [proxy, second_proxy] = [stage.proxy().await?, stage.proxy().await?];
    let first = controller(&stage, "argocd", &proxy).await?;
    let second = controller(&stage, SECOND, &second_proxy).await?;
    hub.create(&object("v1beta1", "first", &spec("first"))).await?;
    hub.create(&object("v1beta1", "second", &for_second("second"))).await?;
    let now = until(&stage, "first", "Ready", "True", "").await?;
    assert_eq!(finalizers(&now), [OURS[0]]);
    let now = until(&stage, "second", "Ready", "True", "").await?;
    assert_eq!(finalizers(&now), [OURS[1]]);
    assert!(hub.get(&secret("own-one")).await?.is_some() && hub.get(&of_second("own-two")).await?.is_some());

    // Changes of the spec: the controller that does not serve it writes nothing, not even temporarily.
    wait_for_second_controller(&stage, 0).await?;
    let [first_mark, mark] = [proxy.mark(), second_proxy.mark()];
    for round in 1..=3 {
        let change = json!({"spec": {"createPolicyTemplate": round % 2 == 1}});
        hub.patch(&goc("first"), &change).await?;
        let not_implemented = if round % 2 == 1 { "False" } else { "True" };
        until(&stage, "first", "SpecImplemented", not_implemented, "").await?;
        wait_for_second_controller(&stage, round).await?;
    }
    assert_eq!(writes_to(&second_proxy.requests()[mark..], "first", "argocd"), [""; 0]);
    // The first controller also writes nothing for the GitOpsCluster of the second.
    assert_eq!(writes_to(&proxy.requests()[first_mark..], "second", SECOND), [""; 0]);

    check_deletion_by_its_controller(&stage, first, (&second_proxy, mark)).await?;
    let first = controller(&stage, "argocd", &proxy).await?;
    hub.wait_gone(&goc("first")).await?;
    assert!(
        hub.get(&secret("own-one")).await?.is_none(),
        "its Secret is deleted first"
    );
    assert_eq!(writes_to(&second_proxy.requests()[mark..], "first", "argocd"), [""; 0]);
    assert!(hub.get(&of_second("own-two")).await?.is_some());

    check_handover(&stage).await?;
    hub.delete(&goc("second")).await?;
    hub.wait_gone(&goc("second")).await?;
    first.stop().await?;
    second.stop().await?;
    hub.kubectl(&["delete", "namespace", SECOND, "--wait=false"]).map(drop)
}

/// Checks that a GitOpsCluster stays while its controller is stopped, with its Secret.
async fn check_deletion_by_its_controller(
    stage: &Stage,
    first: Replica,
    (second, mark): (&Proxy, usize),
) -> Result<()> {
    let hub = &stage.hub;
    first.stop().await?;
    hub.delete(&goc("first")).await?;
    wait_for_second_controller(stage, 4).await?;
    let stays = hub.get(&goc("first")).await?.unwrap_or_default();
    ensure!(stays["metadata"]["deletionTimestamp"].is_string(), "{stays:#}");
    assert_eq!(finalizers(&stays), [OURS[0]]);
    assert_eq!(condition(&stays, "ArgoServerVerified")[0], "True");
    assert!(hub.get(&secret("own-one")).await?.is_some());
    assert_eq!(writes_to(&second.requests()[mark..], "first", "argocd"), [""; 0]);
    Ok(())
}

/// Checks that a GitOpsCluster that moves between the two is handed over, with its Secret.
async fn check_handover(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    hub.create(&object("v1beta1", "moving", &spec("first"))).await?;
    until(stage, "moving", "Ready", "True", "").await?;
    let change = json!({"spec": {"argoServer": {"argoNamespace": SECOND}}});
    hub.patch(&goc("moving"), &change).await?;
    hub.wait_for(&of_second("own-one"), |_| true).await?;
    hub.wait_gone(&secret("own-one")).await?;
    let is_handed_over = |it: &Value| finalizers(it) == [OURS[1]];
    hub.wait_for(&goc("moving"), is_handed_over).await?;
    until(stage, "moving", "Ready", "True", "").await?;
    hub.delete(&goc("moving")).await?;
    hub.wait_gone(&goc("moving")).await?;
    hub.wait_gone(&of_second("own-one")).await
}
