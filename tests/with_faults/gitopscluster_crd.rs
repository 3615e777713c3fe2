//! Tests of the GitOpsCluster CRD on a real API server: objects of both other implementations are accepted unchanged, in either
//! version, and invalid ones are rejected with a reason.

use crate::documents::documents;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use hub_state::model::GitOpsCluster;
use ocm::gitops_cluster::{
    CertificateExpiry, ClusterState, Clusters, Condition, GitOpsClusterStatus, PrincipalAddress,
};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use testbed::{ObjectRef, wait};

const GROUP: &str = "apps.open-cluster-management.io";

/// Installs the CRD, and waits until both versions are served.
pub(crate) async fn install(stage: &Stage) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/gitopscluster_crd.yaml");
    stage.hub.apply_yaml(&fs::read_to_string(file)?)?;
    let both = ["v1alpha1", "v1beta1"].map(|version| format!("gitopsclusters.{version}.{GROUP}"));
    let served = async || {
        let is_served = |kind: &String| stage.hub.kubectl(&["get", kind, "--all-namespaces"]).is_ok();
        both.iter().all(is_served).then_some(())
    };
    wait::eventually("both versions are served", wait::DEADLINE, served).await
}

/// Returns a GitOpsCluster of this version.
pub(crate) fn object(version: &str, name: &str, spec: &Value) -> Value {
    ObjectRef::namespaced(&format!("{GROUP}/{version}"), "GitOpsCluster", "argocd", name).with(json!({"spec": spec}))
}

pub(crate) fn named(version: &str, name: &str) -> ObjectRef {
    ObjectRef::namespaced(&format!("{GROUP}/{version}"), "GitOpsCluster", "argocd", name)
}

/// Returns the entries of a mapping in YAML.
pub(crate) fn entries(text: &str) -> Result<Map<String, Value>> {
    let document = documents(text)?.pop().context("a document")?;
    Ok(document.as_object().context("a mapping")?.clone())
}

/// Returns a status with all fields.
fn status() -> GitOpsClusterStatus {
    let then = || "2026-06-01T12:00:00Z".to_owned();
    GitOpsClusterStatus {
        argo_namespace: Some("argocd".to_owned()),
        certificates: vec![CertificateExpiry {
            name: "argocd-agent-ca".to_owned(),
            not_after: then(),
        }],
        cluster_states: vec![ClusterState {
            name: "eu1".to_owned(),
            state: "Pending".to_owned(),
            certificate_not_after: Some(then()),
            message: Some("it comes".to_owned()),
        }],
        cluster_states_cut: Some(1),
        clusters: Some(Clusters {
            connected: Some(1),
            degraded: Some(2),
            installed: Some(3),
            registered: Some(4),
            selected: Some(5),
        }),
        conditions: vec![Condition {
            last_transition_time: then(),
            message: String::new(),
            observed_generation: Some(1),
            reason: "Failed".to_owned(),
            status: "False".to_owned(),
            kind: "Ready".to_owned(),
        }],
        last_update_time: Some(then()),
        message: Some("wait".to_owned()),
        phase: Some("failed".to_owned()),
        server: Some(PrincipalAddress {
            address: "hub.example.com".to_owned(),
            port: "443".to_owned(),
        }),
    }
}

/// Returns true if a merge patch with `part` would not change `object`.
fn has(object: &Value, part: &Value) -> bool {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| object.get(key).is_some_and(|object| has(object, part))),
        (object, part) => object == part,
    }
}

#[tokio::test]
async fn accepts_objects_of_either_peer_in_both_versions() -> Result<()> {
    let stage = stage("goc-crd").await?;
    install(&stage).await?;
    for (name, example) in entries(include_str!("gitopscluster_crd/valid.yaml"))? {
        let (version, spec) = (example["version"].as_str().context("a version")?, &example["spec"]);
        // kubectl rejects a field that is not in the CRD.
        let manifest = object(version, &name, spec).to_string();
        stage.hub.apply_yaml(&manifest).with_context(|| name.clone())?;
        let written = stage.hub.read(&named(version, &name)).await?;
        for version in ["v1alpha1", "v1beta1"] {
            let read = stage.hub.read(&named(version, &name)).await?;
            assert_eq!(read["spec"], written["spec"], "{name} as {version}");
            assert!(has(&read["spec"], spec), "{name} loses something: {}", read["spec"]);
            let request = GitOpsCluster::from_json(&read.to_string()).expect(&name).spec;
            let wants = !name.starts_with("acm") || name == "acm-agent";
            assert_eq!(
                (request.agent.is_some(), request.is_agent_invalid),
                (wants, false),
                "{name}"
            );
        }
    }
    let empty = stage.hub.read(&named("v1beta1", "pull-empty")).await?;
    assert_eq!(empty["spec"]["argoCDAgentAddon"]["mode"], "managed");
    let status = json!({"status": status()});
    stage.hub.patch_status(&named("v1beta1", "acm"), &status).await?;
    let read = stage.hub.read(&named("v1alpha1", "acm")).await?;
    assert_eq!(read["status"], status["status"]);
    let shown = stage.hub.kubectl("-n argocd get goc acm --output=wide")?;
    let lines: Vec<Vec<_>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = "NAME READY CLUSTERS REGISTERED INSTALLED CONNECTED AGE DEGRADED PLACEMENT SERVER MESSAGE";
    assert_eq!(lines[0].join(" "), head);
    assert_eq!(lines[1][..6], ["acm", "False", "5", "4", "3", "1"]);
    assert_eq!(lines[1][7..], ["2", "all", "hub.example.com", "wait"]);
    stage.hub.kubectl("-n argocd delete goc --all")?;
    Ok(())
}

#[tokio::test]
async fn invalid_specs_are_refused_with_the_reason() -> Result<()> {
    let stage = stage("goc-refused").await?;
    install(&stage).await?;
    let mut invalid = entries(include_str!("gitopscluster_crd/invalid.yaml"))?;
    let mut many = invalid["at least 1 chars long"][0].clone();
    many["agent"]["revokedClusters"] = (0..1001).map(|number| number.to_string()).collect();
    invalid.insert("must have at most 1000 items".to_owned(), json!([many]));
    for (reason, specs) in invalid {
        for spec in specs.as_array().context("a list")? {
            for version in ["v1alpha1", "v1beta1"] {
                let Err(refused) = stage.hub.create(&object(version, "refused", spec)).await else {
                    panic!("{version} is taken: {spec}");
                };
                let message = format!("{refused:#}");
                assert!(message.contains(&reason), "{version} {spec}: {message}");
            }
        }
    }
    Ok(())
}
