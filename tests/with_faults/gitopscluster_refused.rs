//! Tests that writes for a GitOpsCluster that the API server denies are reported as a condition and an Event on it, until they
//! are accepted.

use crate::gitopscluster::{goc, hub, secret, spec, until};
use crate::gitopscluster_crd::object;
use crate::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};
use testing::read_condition;

/// A policy that denies the Secret of the first cluster, and every finalizer on the GitOpsCluster `bare`.
const DENY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: goc-refused
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: ['']
      apiVersions: ['*']
      operations: [CREATE]
      resources: [secrets]
    - apiGroups: [apps.open-cluster-management.io]
      apiVersions: ['*']
      operations: [UPDATE]
      resources: [gitopsclusters]
  validations:
  - expression: >-
      object.kind == 'Secret' ? !object.metadata.name.startsWith('refused-one') :
      object.metadata.name != 'bare' || !has(object.metadata.finalizers)
    message: not on this hub
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: goc-refused
spec:
  policyName: goc-refused
  validationActions: [Deny]
";

const POLICIES: &str = "validatingadmissionpolicybinding,validatingadmissionpolicy";

/// Waits until the policy is effective.
async fn wait_until_denied(stage: &Stage) -> Result<()> {
    let probe = ObjectRef::secret("argocd", "refused-one-probe").with(json!({}));
    let denied = async || {
        let created = stage.hub.create(&probe).await;
        if created.is_ok() {
            stage.hub.delete(&ObjectRef::of(&probe)).await.ok()?;
        }
        created.is_err().then_some(())
    };
    wait::eventually("the Secret is denied", wait::DEADLINE, denied).await
}

#[tokio::test]
async fn refused_writes_set_a_condition_until_they_are_accepted() -> Result<()> {
    let stage = hub(&["refused-one", "refused-two"]).await?;
    let hub = &stage.hub;
    hub.apply_yaml(DENY)?;
    wait_until_denied(&stage).await?;
    hub.select("both", &["refused-one", "refused-two"]).await?;
    hub.select("two", &["refused-two"]).await?;
    hub.create(&object("v1beta1", "both", &spec("both"))).await?;
    hub.create(&object("v1beta1", "bare", &spec("two"))).await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller_for("gitopscluster", &proxy).await?;
    let refused = refused(&stage).await;
    let counted = controller
        .metric(r#"argocd_ocm_cmp_warnings_total{controller="gitopscluster",reason="WriteRefused"}"#)
        .await;

    // Also after a failure: other tests use the hub.
    hub.kubectl(&["delete", POLICIES, "goc-refused"])?;
    refused?;
    ensure!(counted? >= 2, "the metric does not count the Events");
    for name in ["both", "bare"] {
        let accepted = |gitops_cluster: &Value| {
            read_condition(gitops_cluster, "WritesAccepted") == [""; 3]
                && !read_condition(gitops_cluster, "Ready")[0].is_empty()
        };
        hub.wait_for(&goc(name), accepted).await?;
    }
    until(&stage, "both", "Ready", "True", "").await?;
    assert!(hub.get(&secret("refused-one")).await?.is_some());
    for name in ["both", "bare"] {
        hub.delete_and_wait(&goc(name)).await?;
    }
    controller.stop().await
}

async fn refused(stage: &Stage) -> Result<()> {
    // The message about a denied Secret omits the API server's text, which may quote the Secret.
    let words = "Secret argocd/refused-one-application-manager-cluster-secret cannot be created: ";
    let now = until(stage, "both", "WritesAccepted", "False", words).await?;
    let [_, reason, message] = read_condition(&now, "WritesAccepted");
    ensure!(
        reason == "WriteRefused" && !message.contains("not on this hub"),
        "{message}"
    );
    ensure!(read_condition(&now, "Ready")[2].contains(message), "{now:#}");
    stage.wait_for_warning(&goc("both"), "WriteRefused", message).await?;
    ensure!(
        stage.hub.get(&secret("refused-two")).await?.is_some(),
        "the Secret of the other cluster is written"
    );
    // The finalizer of a GitOpsCluster is written before its first Secret, and its status before the finalizer.
    let now = until(stage, "bare", "WritesAccepted", "False", "not on this hub").await?;
    let [_, _, message] = read_condition(&now, "WritesAccepted");
    ensure!(
        message.starts_with("GitOpsCluster argocd/bare cannot be changed: "),
        "{message}"
    );
    stage.wait_for_warning(&goc("bare"), "WriteRefused", message).await?;
    ensure!(now["metadata"]["finalizers"].is_null(), "{now:#}");
    let mut events = stage.events(&goc("bare")).await?;
    events.retain(|event| event["reason"] == "WriteRefused");
    ensure!(events.len() == 1, "retries are counted in one Event: {events:#?}");
    Ok(())
}

#[tokio::test]
async fn refused_tenant_fields_set_a_condition_an_event_and_a_metric() -> Result<()> {
    const TENANT: &str = "refused-tenant";
    let stage = hub(&["refused-fields"]).await?;
    let hub = &stage.hub;
    hub.create_namespace(TENANT).await?;
    let label = |value: Value| json!({"metadata": {"labels": {"apps.open-cluster-management.io/gitops-argo-namespace": value}}});
    let argocd = ObjectRef::namespace("argocd");
    hub.patch(&argocd, &label(json!("true"))).await?;
    let mut tenant = object(
        "v1beta1",
        "fields",
        &json!({
            "placementRef": {"kind": "Placement", "name": "some"},
            "argoServer": {"argoNamespace": "argocd"},
            "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true}},
            "agent": {"images": {"agent": "registry.example.com/agent:1"}},
        }),
    );
    tenant["metadata"]["namespace"] = json!(TENANT);
    let tenant = ObjectRef::of(&hub.create(&tenant).await?);
    let proxy = stage.proxy().await?;
    let controller = stage.controller_for("gitopscluster", &proxy).await?;
    let refused = |gitops_cluster: &Value| {
        let [status, reason, message] = read_condition(gitops_cluster, "SpecPermitted");
        (status, reason) == ("False", "NotPermitted") && message.contains("can set agent.images")
    };
    let now = hub.wait_for(&tenant, refused).await?;
    let [_, _, message] = read_condition(&now, "SpecPermitted");
    stage.wait_for_warning(&tenant, "FieldRefused", message).await?;
    let counted = r#"argocd_ocm_cmp_warnings_total{controller="gitopscluster",reason="FieldRefused"}"#;
    assert_eq!(controller.metric(counted).await?, 1);
    hub.delete_and_wait(&tenant).await?;
    hub.patch(&argocd, &label(Value::Null)).await?;
    controller.stop().await
}
