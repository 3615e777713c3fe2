//! Tests of the objects that install argocd-agent on clusters, and of GitOpsClusters.

use super::{MANAGED_BY, OURS, account, is_refused};
use crate::stage::stage;
use anyhow::Result;
use serde_json::{Value, json};
use testbed::ObjectRef;

const FILES: &[&str] = &[
    "deploy/gitopscluster_crd.yaml",
    "deploy/deploy_gitopscluster.yaml",
    "deploy/deploy_argocd_agent.yaml",
];
const PLACEMENTS: &str = "cluster.open-cluster-management.io/v1beta1";

/// Returns an object in Argo CD's namespace.
fn in_argocd(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"namespace": "argocd", "name": name});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    if !spec.is_null() {
        object["spec"] = spec;
    }
    object
}

#[tokio::test]
async fn agent_objects_need_our_label_and_names() -> Result<()> {
    let stage = stage("admission-agents").await?;
    let hub = &stage.hub;
    let account = account(hub, FILES).await?;
    let theirs = in_argocd(PLACEMENTS, "Placement", "admission-theirs", json!({}));
    let why = "that have its label";
    is_refused(account.create(&theirs).await, why)?;
    let theirs = ObjectRef::of(&hub.create(&theirs).await?);
    let decision = in_argocd(PLACEMENTS, "PlacementDecision", "admission-theirs", Value::Null);
    let decision = ObjectRef::of(&hub.create(&decision).await?);
    for object in [&theirs, &decision] {
        let patch = json!({"metadata": {"labels": {MANAGED_BY: OURS}}});
        is_refused(account.patch(object, &patch).await, why)?;
        is_refused(account.delete(object).await, why)?;
    }
    let decided = json!({"status": {"decisions": [{"clusterName": "evil", "reason": ""}]}});
    is_refused(account.patch_status(&decision, &decided).await, why)?;
    let mut ours = in_argocd(PLACEMENTS, "Placement", "admission-ours", json!({}));
    ours["metadata"]["labels"] = json!({MANAGED_BY: OURS});
    account.create(&ours).await?;
    account.delete(&ObjectRef::of(&ours)).await?;
    let mut addon = in_argocd(
        "addon.open-cluster-management.io/v1alpha1",
        "ClusterManagementAddOn",
        "admission-addon",
        json!({}),
    );
    addon["metadata"]["namespace"] = Value::Null;
    let config = in_argocd("v1", "ConfigMap", "argocd-ssh-known-hosts-cm-2", Value::Null);
    for object in [addon, config] {
        is_refused(account.create(&object).await, "under the names that it uses")?;
    }

    let principal = ObjectRef::deployment("argocd", "argocd-agent-principal").with(json!({"spec": {
        "selector": {"matchLabels": {"app": "p"}},
        "template": {
            "metadata": {"labels": {"app": "p"}},
            "spec": {"containers": [{"name": "p", "image": "example.com/p:1"}]},
        },
    }}));
    let principal = ObjectRef::of(&hub.create(&principal).await?);
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "p", "image": "example.com/evil:1"}]}}}});
    let annotated = |key: &str| json!({"spec": {"template": {"metadata": {"annotations": {key: "x"}}}}});
    for patch in [image, json!({"spec": {"replicas": 5}}), annotated("example.com/other")] {
        is_refused(account.patch(&principal, &patch).await, "nothing of a Deployment")?;
    }
    account
        .patch(&principal, &annotated("argocd-ocm-cmp.github.io/certificates"))
        .await?;
    for object in [principal, decision, theirs] {
        hub.delete(&object).await?;
    }
    Ok(())
}

#[tokio::test]
async fn only_finalizers_and_status_of_a_gitopscluster_are_writable() -> Result<()> {
    let stage = stage("admission-gitopsclusters").await?;
    let hub = &stage.hub;
    let account = account(hub, FILES).await?;
    let placement = json!({"kind": "Placement", "apiVersion": PLACEMENTS, "name": "none"});
    let spec = json!({"argoServer": {"argoNamespace": "argocd"}, "placementRef": placement});
    let goc = in_argocd(
        "apps.open-cluster-management.io/v1beta1",
        "GitOpsCluster",
        "admission",
        spec,
    );
    let goc = ObjectRef::of(&hub.create(&goc).await?);
    for (patch, why) in [
        (
            json!({"spec": {"argoServer": {"argoNamespace": "evil"}}}),
            "nothing of a GitOpsCluster",
        ),
        (
            json!({"metadata": {"annotations": {"a": "b"}}}),
            "nothing of a GitOpsCluster",
        ),
        (
            json!({"metadata": {"finalizers": ["example.com/theirs"]}}),
            "no finalizer of a GitOpsCluster",
        ),
    ] {
        is_refused(account.patch(&goc, &patch).await, why)?;
    }
    let all = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    let finalizer = "argocd-ocm-cmp.github.io/gitopscluster";
    hub.patch(&goc, &all(&["example.com/theirs"])).await?;
    account.patch(&goc, &all(&["example.com/theirs", finalizer])).await?;
    is_refused(
        account.patch(&goc, &all(&[finalizer])).await,
        "no finalizer of a GitOpsCluster",
    )?;
    account.patch(&goc, &all(&["example.com/theirs"])).await?;
    hub.patch(&goc, &all(&[])).await?;
    hub.delete(&goc).await
}
