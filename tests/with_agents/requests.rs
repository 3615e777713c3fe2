//! Tests of certificate requests that must be refused.

use crate::stage::{Stage, addon, data};
use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use pki::Certificate;
use serde_json::{Value, json};
use testbed::{ObjectRef, certificate_request, is_true};
use testing::read_condition;

const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";

/// Returns the name of the agent of a cluster.
fn agent_of(cluster: &str) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:argocd-agent-addon:agent:argocd-agent-addon-agent")
}

/// Creates a request as the registration agent of a cluster does, and waits for its result.
async fn request_certificate(
    stage: &Stage,
    name: &str,
    of: &str,
    by: &str,
    is_done: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let labels = json!({
        "open-cluster-management.io/addon-name": "argocd-agent-addon",
        "open-cluster-management.io/cluster-name": by,
    });
    let object = ObjectRef::cluster("certificates.k8s.io/v1", "CertificateSigningRequest", name).with(json!({
        "metadata": {"labels": labels},
        "spec": {
            "request": ByteString(certificate_request(&agent_of(of))?.into_bytes()),
            "signerName": SIGNER,
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    }));
    let user = format!("--as=system:open-cluster-management:{by}:agent");
    let group = format!("--as-group=system:open-cluster-management:{by}");
    let arguments = [
        "create",
        &user,
        &group,
        "--as-group=system:open-cluster-management:managed-clusters",
    ];
    let arguments = [&arguments[..], &["--as-group=system:authenticated", "-f", "-"]].concat();
    stage.hub.kubectl_with_input(&arguments, &object.to_string())?;
    let request = ObjectRef::cluster("certificates.k8s.io/v1", "CertificateSigningRequest", name);
    stage.hub.wait_for(&request, is_done).await
}

/// Checks that a cluster gets certificates for its own agent only.
pub(crate) async fn check_foreign_requests(stage: &Stage) -> Result<()> {
    let has_certificate = |request: &Value| request["status"]["certificate"].is_string();
    let over = |request: &Value| has_certificate(request) || is_true(request, "Denied") || is_true(request, "Failed");
    let request = request_certificate(
        stage,
        "addon-cluster2-argocd-agent-addon-own",
        "cluster2",
        "cluster2",
        over,
    )
    .await?;
    ensure!(has_certificate(&request), "{:#}", request["status"]);
    let others = request_certificate(
        stage,
        "addon-cluster2-argocd-agent-addon-other",
        "cluster1",
        "cluster2",
        over,
    )
    .await?;
    ensure!(
        !has_certificate(&others),
        "cluster2 got a certificate for cluster1: {:#}",
        others["status"]
    );
    let why = others["status"].to_string();
    ensure!(
        why.contains("the agent of ManagedCluster cluster2 requests the name"),
        "{why}"
    );
    Ok(())
}

/// Checks that agents get the certificates that they request: otherwise each would retry at once, until OCM throttles it.
pub(crate) async fn check_request_count(stage: &Stage) -> Result<()> {
    const REQUESTS_MAX: usize = 10;
    let all = stage
        .hub
        .list("certificates.k8s.io/v1", "CertificateSigningRequest")
        .await?;
    for cluster in ["cluster1", "cluster2"] {
        let prefix = format!("addon-{cluster}-");
        let names = all.iter().filter_map(|request| request["metadata"]["name"].as_str());
        let requests = names.filter(|name| name.starts_with(&prefix)).count();
        ensure!(requests < REQUESTS_MAX, "{cluster} has asked {requests} times");
    }
    Ok(())
}

/// Returns the fingerprints of the certificates that were issued to a cluster's agent.
pub(crate) async fn issued(stage: &Stage, cluster: &str) -> Result<Vec<String>> {
    let record = ObjectRef::secret("argocd", &format!("argocd-agent-issued-{cluster}"));
    let record = stage.hub.read(&record).await?;
    let requests = record["data"].as_object().into_iter().flatten();
    let mut all = Vec::new();
    for (request, _) in requests {
        let text = data(&record, request)?;
        for certificate in Certificate::read_all(text.as_bytes())? {
            all.push(certificate.fingerprint().to_ascii_uppercase());
        }
    }
    Ok(all)
}

/// Checks that a GitOpsCluster of a tenant, admitted by Argo CD's namespace, can neither revoke a cluster that it does not have
/// nor change the principal's certificate.
pub(crate) async fn foreign_revocations_have_no_effect(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    let label = |value: Value| json!({"metadata": {"labels": {"apps.open-cluster-management.io/gitops-argo-namespace": value}}});
    let argocd = ObjectRef::namespace("argocd");
    hub.patch(&argocd, &label(json!("true"))).await?;
    hub.create_namespace("team-a").await?;
    let principal = ObjectRef::secret("argocd", "argocd-agent-principal-tls");
    let before = hub.read(&principal).await?;
    let foreign = ObjectRef::namespaced(
        "apps.open-cluster-management.io/v1beta1",
        "GitOpsCluster",
        "team-a",
        "foreign",
    )
    .with(json!({
        "metadata": {"finalizers": ["argocd-ocm-cmp.github.io/gitopscluster"]},
        "spec": {
            "argoServer": {"argoNamespace": "argocd"},
            "placementRef": {"kind": "Placement", "name": "none"},
            "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "serverAddress": "attacker.example.com"}},
            "agent": {"revokedClusters": ["cluster1"]},
        },
    }));
    let foreign = ObjectRef::of(&hub.create(&foreign).await?);
    let is_refused = |gitops_cluster: &Value| {
        let [status, _, message] = read_condition(gitops_cluster, "SpecPermitted");
        status == "False"
            && message.contains("server address")
            && message.contains("cluster1 (of GitOpsCluster argocd/fleet)")
    };
    hub.wait_for(&foreign, is_refused).await?;
    let after = hub.read(&principal).await?;
    assert_eq!(before["data"]["tls.crt"], after["data"]["tls.crt"]);
    assert!(hub.get(&addon("cluster1")).await?.is_some());
    let blocklist = hub
        .get(&ObjectRef::config_map("argocd", "argocd-agent-tls-blocklist"))
        .await?;
    for fingerprint in issued(stage, "cluster1").await? {
        let is_blocked = blocklist
            .as_ref()
            .is_some_and(|blocklist| blocklist["data"][&fingerprint].is_string());
        ensure!(!is_blocked, "a foreign GitOpsCluster has blocked {fingerprint}");
    }
    hub.delete_and_wait(&foreign).await?;
    hub.patch(&argocd, &label(Value::Null)).await?;
    Ok(())
}
