//! Tests of the objects that install argocd-agent on clusters, and of GitOpsClusters.

use super::{MANAGED_BY, OURS, account, is_refused, refuses_patches};
use crate::gitopscluster_crd::object;
use crate::stage::stage;
use anyhow::Result;
use serde_json::json;
use testbed::ObjectRef;

const FILES: &[&str] = &[
    "deploy/gitopscluster_crd.yaml",
    "deploy/deploy_gitopscluster.yaml",
    "deploy/deploy_argocd_agent.yaml",
];

#[tokio::test]
async fn agent_objects_need_our_label_and_names() -> Result<()> {
    let stage = stage("admission-agents").await?;
    let hub = &stage.hub;
    let account = account(hub, FILES).await?;
    let theirs = ObjectRef::placement("admission-theirs").with(json!({"spec": {}}));
    let why = "that have its label";
    is_refused(account.create(&theirs).await, why)?;
    let theirs = ObjectRef::of(&hub.create(&theirs).await?);
    let decision = ObjectRef::placement_decision("admission-theirs");
    hub.create(&decision.with(json!({}))).await?;
    for object in [&theirs, &decision] {
        let patch = json!({"metadata": {"labels": {MANAGED_BY: OURS}}});
        is_refused(account.patch(object, &patch).await, why)?;
        is_refused(account.delete(object).await, why)?;
    }
    let decided = json!({"status": {"decisions": [{"clusterName": "evil", "reason": ""}]}});
    is_refused(account.patch_status(&decision, &decided).await, why)?;
    let ours = ObjectRef::placement("admission-ours");
    let labelled = json!({"metadata": {"labels": {MANAGED_BY: OURS}}, "spec": {}});
    account.create(&ours.with(labelled)).await?;
    account.delete(&ours).await?;
    let addon = ObjectRef::cluster_management_addon("admission-addon").with(json!({"spec": {}}));
    let config = ObjectRef::config_map("argocd", "argocd-ssh-known-hosts-cm-2").with(json!({}));
    // The controller would read its settings from it.
    let settings = ObjectRef::config_map("argocd", "argocd-ocm-cmp-controller").with(json!({}));
    for object in [addon, config, settings] {
        is_refused(account.create(&object).await, "under the names that it uses")?;
    }

    let principal = ObjectRef::deployment("argocd", "argocd-agent-principal");
    // A test before this one on the same hub may have installed it.
    hub.delete_and_wait(&principal).await?;
    let labels = json!({"app": "p"});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "p", "image": "example.com/p:1"}]}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": pod});
    hub.create(&principal.with(json!({"spec": spec}))).await?;
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
    let placement =
        json!({"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": "none"});
    let spec = json!({"argoServer": {"argoNamespace": "argocd"}, "placementRef": placement});
    let goc = ObjectRef::of(&hub.create(&object("v1beta1", "admission", &spec)).await?);
    let refused = r"
nothing of a GitOpsCluster: [{spec: {argoServer: {argoNamespace: evil}}}, {metadata: {annotations: {a: b}}}]
no finalizer of a GitOpsCluster: [{metadata: {finalizers: [example.com/theirs]}}]
";
    refuses_patches(&account, &goc, refused).await?;
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
