//! Checks the tables and works against a real API server.

use crate::stage::stage;
use anyhow::{Context, Result};
use manifest::kinds::{BUILT_IN, GroupKind, Scope};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use testbed::{ObjectRef, is_true};

#[tokio::test]
async fn built_in_kinds_match_the_api_server() -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    let table = cluster1.kubectl(&["api-resources", "--no-headers"])?;
    let mut kinds = 0;
    for line in table.lines() {
        // NAME [SHORTNAMES] APIVERSION NAMESPACED KIND
        let words: Vec<&str> = line.split_whitespace().collect();
        let [plural, .., api_version, namespaced, kind] = words.as_slice() else {
            panic!("{line}");
        };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if group.ends_with("open-cluster-management.io")
            || group.ends_with("argoproj.io")
            || group.ends_with("example.com")
        {
            continue;
        }
        let kind = GroupKind {
            group: group.into(),
            kind: (*kind).into(),
        };
        let known = kind.built_in().with_context(|| format!("{kind} is not in the table"))?;
        let scope = if *namespaced == "true" {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        assert_eq!((known.plural, known.scope), (*plural, scope), "{kind}");
        kinds += 1;
    }
    assert!(kinds > 50, "{kinds} kinds");
    let served = cluster1.kubectl(&["api-versions"])?;
    let served: Vec<&str> = served.lines().collect();
    for known in BUILT_IN {
        for version in known.always_served {
            let version = if known.group.is_empty() {
                (*version).to_owned()
            } else {
                format!("{}/{version}", known.group)
            };
            assert!(served.contains(&version.as_str()), "{version} of {}", known.kind);
        }
    }
    Ok(())
}

/// Returns the number of objects in Argo CD's manifests that the test delivers, which changes with its version.
fn objects_in(folder: &Path) -> Result<usize> {
    let mut objects = 0;
    for part in ["base", "crds", "cluster-rbac"] {
        for file in testbed::files(&folder.join(part), &["yaml"])? {
            let is_excluded = file.starts_with(folder.join("base/application-controller-deployment"));
            if !is_excluded && !file.ends_with("kustomization.yaml") {
                let text = fs::read_to_string(&file)?;
                objects += text.lines().filter(|line| line.starts_with("kind:")).count();
            }
        }
    }
    Ok(objects)
}

#[tokio::test]
async fn hub_accepts_argo_cds_own_manifests_as_one_application() -> Result<()> {
    let stage = stage().await?;
    // The work exceeds OCM's limit, so the API server has the CRD but not the webhook.
    let crd = ObjectRef::crd("manifestworks.work.open-cluster-management.io");
    let crd = stage.hub.read(&crd).await?;
    let crd = json!({"apiVersion": crd["apiVersion"], "kind": crd["kind"], "spec": crd["spec"],
                     "metadata": {"name": crd["metadata"]["name"]}});
    let cluster1 = &stage.cluster1;
    cluster1.apply(&crd).await?;
    cluster1
        .wait_for(&ObjectRef::of(&crd), |crd| is_true(crd, "Established"))
        .await?;
    cluster1.create_namespace("cluster1").await?;
    let folder = testbed::Parts::ensure()?.argocd_manifests();
    let output = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
        .args([
            "generate",
            "--cluster=cluster1",
            "--name=argo-cd",
            "--namespace=argocd",
            "--output=json",
        ])
        .args(["--include={base/*,crds/*,cluster-rbac/*}"])
        .args(["--exclude={*kustomization.yaml,base/application-controller-deployment/*}"])
        .args(["--manifest-limit=0", "--work-size=0", "--allow-secrets"])
        .arg(&folder)
        .env_clear()
        .output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let work = String::from_utf8(output.stdout)?;
    cluster1
        .kubectl_with_input(&["create", "--dry-run=server", "--validate=strict", "-f", "-"], &work)
        .context("the API server accepts the work")?;

    // The works contain all objects in order.
    let work: Value = serde_json::from_str(&work)?;
    let manifests = work["spec"]["workload"]["manifests"].as_array().context("manifests")?;
    assert_eq!(manifests.len(), objects_in(&folder)?);
    let mut kinds: Vec<&str> = manifests
        .iter()
        .filter_map(|manifest| manifest["kind"].as_str())
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "NetworkPolicy",
            "ServiceAccount",
            "Secret",
            "ConfigMap",
            "CustomResourceDefinition",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
            "Service",
            "Deployment",
            "StatefulSet",
        ]
    );
    Ok(())
}
