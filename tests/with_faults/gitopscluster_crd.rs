//! The kind GitOpsCluster on a real API server: both peers' objects are taken as they are, under either version, and what cannot
//! be meant is refused with a reason.

use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testbed::{ObjectRef, wait};

const GROUP: &str = "apps.open-cluster-management.io";

/// Installs the CRD, and waits until both versions are served.
pub(crate) async fn install(stage: &Stage) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("gitopscluster_crd.yaml");
    stage.hub.apply_yaml(&fs::read_to_string(file)?)?;
    let both = ["v1alpha1", "v1beta1"].map(|version| format!("gitopsclusters.{version}.{GROUP}"));
    let served = async || {
        let is_served = |kind: &String| stage.hub.kubectl(&["get", kind, "--all-namespaces"]).is_ok();
        both.iter().all(is_served).then_some(())
    };
    wait::eventually("both versions are served", wait::DEADLINE, served).await
}

/// A GitOpsCluster of this version.
pub(crate) fn object(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": "GitOpsCluster",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": spec,
    })
}

pub(crate) fn named(version: &str, name: &str) -> ObjectRef {
    ObjectRef::namespaced(&format!("{GROUP}/{version}"), "GitOpsCluster", "argocd", name)
}

fn placement() -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "all", "namespace": "argocd"})
}

/// What users of the peers write, with all fields that those have.
fn of_the_peers() -> [(&'static str, &'static str, Value); 6] {
    let argocd = json!({"cluster": "notused", "argoNamespace": "argocd"});
    let manifest = json!({
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": "argocd", "namespace": "argocd"},
        "spec": {"server": {"enabled": false}, "sourceNamespaces": ["*"]},
    });
    let addon = json!({
        "enabled": true,
        "overrideExistingConfigs": true,
        "gitOpsOperatorImage": "registry.example.com/operator@sha256:0",
        "argoCDAgent": {
            "enabled": true, "serverAddress": "", "serverPort": "", "mode": "managed", "propagateHubCA": true,
        },
        "olmSubscription": {
            "enabled": true, "channel": "latest", "name": "gitops", "namespace": "operators", "source": "operators",
            "sourceNamespace": "market", "installPlanApproval": "Automatic",
        },
    });
    [
        (
            "v1alpha1",
            "pull",
            json!({"placementRef": placement(), "argoCDAgentAddon": {"mode": "managed"}}),
        ),
        (
            "v1alpha1",
            "pull-empty",
            json!({"placementRef": placement(), "argoCDAgentAddon": {}}),
        ),
        (
            "v1alpha1",
            "pull-all",
            json!({"placementRef": placement(), "argoCDAgentAddon": {
                "mode": "autonomous", "principalServerAddress": "hub.example.com", "principalServerPort": "443",
                "agentNamespace": "argocd", "operatorNamespace": "operators",
                "argoCDCRManifestWork": {"manifests": [manifest]},
            }}),
        ),
        (
            "v1beta1",
            "acm",
            json!({"placementRef": placement(), "argoServer": argocd}),
        ),
        (
            "v1beta1",
            "acm-blank",
            json!({"placementRef": placement(), "argoServer": argocd, "createBlankClusterSecrets": true,
                "createPolicyTemplate": true, "managedServiceAccountRef": "push"}),
        ),
        (
            "v1beta1",
            "acm-agent",
            json!({"placementRef": placement(), "argoServer": argocd, "gitopsAddon": addon}),
        ),
    ]
}

/// What a merge patch of it would leave as it is.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| has(whole, part))),
        (whole, part) => whole == part,
    }
}

#[tokio::test]
async fn what_is_written_for_either_peer_is_taken_and_read_as_the_other() -> Result<()> {
    let Some(stage) = stage("goc-crd").await? else {
        return Ok(());
    };
    install(&stage).await?;
    for (version, name, spec) in of_the_peers() {
        let written = stage.hub.create(&object(version, name, &spec)).await.context(name)?;
        for version in ["v1alpha1", "v1beta1"] {
            let read = stage.hub.get(&named(version, name)).await?.context(name)?;
            assert_eq!(read["spec"], written["spec"], "{name} as {version}");
            assert!(has(&read["spec"], &spec), "{name} loses something: {}", read["spec"]);
        }
    }
    let empty = stage
        .hub
        .get(&named("v1beta1", "pull-empty"))
        .await?
        .context("it is there")?;
    assert_eq!(empty["spec"]["argoCDAgentAddon"]["mode"], "managed");
    let shown = stage.hub.kubectl(&["-n", "argocd", "get", "goc", "acm"])?;
    let head: Vec<_> = shown.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["NAME", "READY", "CLUSTERS", "PLACEMENT", "AGE"]);
    stage.hub.kubectl(&["-n", "argocd", "delete", "goc", "--all"])?;
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_the_reason() -> Result<()> {
    let Some(stage) = stage("goc-refused").await? else {
        return Ok(());
    };
    install(&stage).await?;
    let argocd = || json!({"argoNamespace": "argocd"});
    let agent = |agent: Value| json!({"placementRef": placement(), "argoCDAgentAddon": agent});
    let addon = |addon: Value| json!({"placementRef": placement(), "argoServer": argocd(), "gitopsAddon": addon});
    let at = |placement: Value| json!({"placementRef": placement, "argoServer": argocd()});
    let mode = "the mode is managed or autonomous";
    let port = "a port is a number from 1 to 65535";
    let cases = [
        (agent(json!({"mode": "manual"})), mode),
        (agent(json!({"mode": ""})), mode),
        (
            addon(json!({"enabled": true, "argoCDAgent": {"mode": "Managed"}})),
            mode,
        ),
        (agent(json!({"principalServerPort": "0"})), port),
        (agent(json!({"principalServerPort": "65536"})), port),
        (
            addon(json!({"enabled": true, "argoCDAgent": {"serverPort": "https"}})),
            port,
        ),
        (
            addon(json!({"argoCDAgent": {"enabled": true}})),
            "argoCDAgent.enabled needs gitopsAddon.enabled",
        ),
        (
            addon(json!({"olmSubscription": {"enabled": true}})),
            "olmSubscription.enabled needs gitopsAddon.enabled",
        ),
        (
            addon(json!({"olmSubscription": {"installPlanApproval": "Never"}})),
            r#"supported values: "Automatic", "Manual""#,
        ),
        (
            agent(json!({"argoCDCRManifestWork": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd"}},
            ]}})),
            "one of the manifests must be an ArgoCD of argoproj.io/v1beta1",
        ),
        (
            agent(json!({"argoCDCRManifestWork": {"manifests": []}})),
            "should have at least 1 items",
        ),
        (
            at(json!({"kind": "PlacementRule", "name": "all"})),
            "the kind is Placement",
        ),
        (
            at(json!({"apiVersion": "apps.open-cluster-management.io/v1", "name": "all"})),
            "a Placement is of cluster.open-cluster-management.io",
        ),
        (at(json!({"kind": "Placement"})), "a Placement has a name"),
        (json!({"argoServer": argocd()}), "spec.placementRef: Required value"),
        (
            json!({"placementRef": placement()}),
            "either argoServer (as in v1beta1) or argoCDAgentAddon (as in v1alpha1) is required",
        ),
        (
            json!({"placementRef": placement(), "argoServer": argocd(), "argoCDAgentAddon": {}, "gitopsAddon": {}}),
            "only one of them may be given",
        ),
        (
            json!({"placementRef": placement(), "argoServer": {"cluster": "notused"}}),
            "spec.argoServer.argoNamespace: Required value",
        ),
    ];
    for (spec, reason) in cases {
        for version in ["v1alpha1", "v1beta1"] {
            let Err(refused) = stage.hub.create(&object(version, "refused", &spec)).await else {
                panic!("{version} is taken: {spec}");
            };
            let said = format!("{refused:#}");
            assert!(said.contains(reason), "{version} {spec}: {said}");
        }
    }
    Ok(())
}
