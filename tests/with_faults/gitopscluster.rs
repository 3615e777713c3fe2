//! A test of GitOpsClusters with a real API server: clusters are registered with the shipped permissions.

use crate::gitopscluster_crd::{install, named, object};
use crate::stage::{Stage, stage};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::ObjectRef;
use testbed::process::{self, Process};
use testing::read_condition;

/// Returns a hub with the kind, without cluster Secrets, and with these managed clusters.
pub(crate) async fn hub(clusters: &[&str]) -> Result<Stage> {
    let stage = stage(clusters[0]).await?;
    let hub = &stage.hub;
    for cluster in &clusters[1..] {
        hub.declare_managed_cluster(cluster).await?;
    }
    install(&stage).await?;
    let secrets = "argocd.argoproj.io/secret-type=cluster";
    hub.kubectl(&["-n", "argocd", "delete", "secrets", "-l", secrets])?;
    let placements =
        "placements.cluster.open-cluster-management.io,placementdecisions.cluster.open-cluster-management.io";
    hub.kubectl(&["-n", "argocd", "delete", "--all", placements])?;
    Ok(stage)
}

pub(crate) fn secret(cluster: &str) -> ObjectRef {
    let name = format!("{cluster}-application-manager-cluster-secret");
    ObjectRef::secret("argocd", &name)
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

pub(crate) async fn until(stage: &Stage, name: &str, kind: &str, status: &str, words: &str) -> Result<Value> {
    let has_condition = |gitops_cluster: &Value| {
        let [value, _, message] = read_condition(gitops_cluster, kind);
        let is_observed =
            gitops_cluster["status"]["conditions"][0]["observedGeneration"] == gitops_cluster["metadata"]["generation"];
        value == status && message.contains(words) && is_observed
    };
    stage.hub.wait_for(&goc(name), has_condition).await
}

#[tokio::test]
async fn shipped_permissions_suffice_and_are_used() -> Result<()> {
    let stage = hub(&["goc-rights", "goc-going"]).await?;
    let hub = &stage.hub;
    for file in "deploy/deploy_controller.yaml deploy/admission_policy.yaml deploy/deploy_gitopscluster.yaml".split(' ')
    {
        hub.kubectl(&["apply", "-f", &format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))])?;
    }
    let account = "argocd-ocm-cmp-controller";
    // Tests before this one on the same hub have used the account too.
    let earlier = hub.requests_by(account)?.len();
    let permissions: [&str; 2] = [
        "list secrets --namespace=argocd",
        "list gitopsclusters --namespace=default",
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

    hub.select("goc", &["goc-rights", "goc-going"]).await?;
    hub.create(&object("v1beta1", "goc", &spec("goc"))).await?;
    until(&stage, "goc", "Ready", "True", "").await?;
    let label = json!({"metadata": {"labels": {"change": "1"}}});
    hub.patch(&ObjectRef::managed_cluster("goc-rights"), &label).await?;
    hub.wait_for_value(&secret("goc-rights"), "/metadata/labels/change", "1")
        .await?;
    let going = ObjectRef::managed_cluster("goc-going");
    hub.delete(&going).await?;
    hub.wait_gone(&secret("goc-going")).await?;
    hub.delete_and_wait(&goc("goc")).await?;
    assert!(hub.get(&secret("goc-rights")).await?.is_none());
    running.terminate().await?;
    let log = std::fs::read_to_string(log)?;
    assert!(!log.contains("forbidden"), "{log}");
    let requests = hub.requests_by(account)?.split_off(earlier);
    let verbs = |kind: &str| -> BTreeSet<String> {
        let of_kind = requests.iter().filter(|event| {
            let text = |key: &str| event["objectRef"][key].as_str().unwrap_or_default();
            [text("resource"), text("subresource")].join("/").trim_end_matches('/') == kind
        });
        of_kind
            .filter_map(|event| event["verb"].as_str().map(str::to_owned))
            .collect()
    };
    for (kind, expected) in [
        ("gitopsclusters", &["list", "patch", "watch"][..]),
        ("gitopsclusters/status", &["patch"]),
        ("placements", &["list", "watch"]),
        ("placementdecisions", &["list", "watch"]),
        ("namespaces", &["list", "watch"]),
        ("managedclusters", &["get", "list", "watch"]),
        ("secrets", &["create", "delete", "list", "patch", "watch"]),
    ] {
        assert_eq!(
            verbs(kind),
            expected.iter().map(|verb| (*verb).to_owned()).collect(),
            "{kind}"
        );
    }
    Ok(())
}
