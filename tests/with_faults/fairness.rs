//! Tests that hanging writes of two hundred Applications do not delay other writes.

use crate::gitopscluster::hub;
use crate::gitopscluster_crd::object;
use crate::stage::{DEGRADED, Stage, WorkHealth, messages};
use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use testbed::proxy::{Fault, Proxy, RecordedRequest, Times};
use testbed::{ObjectRef, certificate_request};

const CLUSTER: &str = "fair";
const HANGING_WRITES: usize = 200;
/// The name of the agent of the cluster.
const AGENT: &str =
    "system:open-cluster-management:cluster:fair:addon:argocd-agent-addon:agent:argocd-agent-addon-agent";
const REQUEST: &str = "addon-fair-argocd-agent-addon-1";

fn is_hanging(request: &RecordedRequest) -> bool {
    request.is("patch", "applications") && request.name.as_ref().is_some_and(|name| name.starts_with("hang-"))
}

/// Requests the certificate of the cluster's agent, as its registration agent does.
fn request_certificate(stage: &Stage) -> Result<ObjectRef> {
    let request = ObjectRef::cluster("certificates.k8s.io/v1", "CertificateSigningRequest", REQUEST).with(json!({
        "metadata": {"labels": {
            "open-cluster-management.io/addon-name": "argocd-agent-addon",
            "open-cluster-management.io/cluster-name": CLUSTER,
        }},
        "spec": {
            "request": ByteString(certificate_request(AGENT)?.into_bytes()),
            "signerName": "open-cluster-management.io/argocd-agent-addon",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    }));
    let arguments = [
        "create",
        "--as=system:open-cluster-management:fair:agent",
        "--as-group=system:open-cluster-management:fair",
        "--as-group=system:open-cluster-management:managed-clusters",
        "--as-group=system:authenticated",
        "-f",
        "-",
    ];
    // The permissions of a registration agent are not part of this test.
    let permissions = ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "fair-agent").with(json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:open-cluster-management:fair"}],
    }));
    stage
        .hub
        .kubectl_with_input(&["create", "-f", "-"], &permissions.to_string())?;
    stage.hub.kubectl_with_input(&arguments, &request.to_string())?;
    Ok(ObjectRef::cluster(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        REQUEST,
    ))
}

/// Installs argocd-agent on the cluster, so that its agent gets certificates.
async fn install_agents(stage: &Stage) -> Result<()> {
    stage.hub.select("fair", &[CLUSTER]).await?;
    let spec = json!({
        "placementRef": {"kind": "Placement", "name": "fair"},
        "argoCDAgentAddon": {"principalServerAddress": "192.0.2.7", "principalServerPort": "443"},
    });
    stage.hub.create(&object("v1alpha1", "fair", &spec)).await?;
    Ok(())
}

async fn check_other_writes(stage: &Stage, proxy: &Proxy) -> Result<()> {
    // Another controller signs a certificate and writes it.
    let request = request_certificate(stage)?;
    let is_signed = |it: &Value| it["status"]["certificate"].is_string();
    stage.hub.wait_for(&request, is_signed).await?;
    // The same controller writes a status and an Event for the same namespace and cluster.
    let fine = stage.application("fine", WorkHealth::Degraded("it is broken")).await?;
    let degraded = stage.wait_for_condition(&fine, DEGRADED, "it is broken").await?;
    let message = messages(&degraded, DEGRADED)[0];
    stage.wait_for_warning(&fine, "ManifestWorkDegraded", message).await?;
    let requests = proxy.requests();
    let hanging: Vec<_> = requests.iter().filter(|request| is_hanging(request)).collect();
    let answered = hanging.iter().filter(|request| request.answer.is_some()).count();
    ensure!(
        hanging.len() >= 24 && answered == 0,
        "{} hang, {answered} were answered",
        hanging.len()
    );
    Ok(())
}

#[tokio::test]
async fn hanging_writes_of_200_applications_delay_nothing_else() -> Result<()> {
    let stage = hub(&[CLUSTER]).await?;
    install_agents(&stage).await?;
    let proxy = stage.proxy().await?;
    let controllers = "application-status,gitopscluster,argocd-agent";
    let controller = stage.controller_for(controllers, &proxy).await?;
    let listed = ObjectRef::placement_decision("fair-argocd-agent-decision-1");
    stage
        .hub
        .wait_for(&listed, |it| it["status"]["decisions"][0]["clusterName"] == CLUSTER)
        .await?;
    let authority = ObjectRef::secret("argocd", "argocd-agent-ca");
    stage
        .hub
        .wait_for(&authority, |it| it["data"]["tls.key"].is_string())
        .await?;

    proxy.fault(Fault::Hang, Times::Always, is_hanging);
    let names = (0..HANGING_WRITES).map(|number| format!("hang-{number}"));
    stream::iter(names)
        .map(|name| {
            let stage = &stage;
            async move { stage.application(&name, WorkHealth::Healthy).await }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await?;
    let hang = |requests: &[RecordedRequest]| requests.iter().filter(|request| is_hanging(request)).count() >= 24;
    proxy.until("many writes hang", hang).await?;
    let gone_on = check_other_writes(&stage, &proxy).await;

    // Also after a failure: other tests use the hub.
    proxy.heal();
    stage.hub.delete(&ObjectRef::gitops_cluster("fair")).await?;
    stage.hub.wait_gone(&ObjectRef::gitops_cluster("fair")).await?;
    controller.stop().await?;
    for gone in [
        "delete csr addon-fair-argocd-agent-addon-1 --ignore-not-found",
        "delete clusterrolebinding fair-agent --ignore-not-found",
        "-n argocd delete secrets argocd-agent-ca argocd-agent-principal-tls argocd-agent-resource-proxy-tls argocd-agent-jwt --ignore-not-found",
        "-n argocd delete configmaps argocd-agent-ca-bundle argocd-agent-tls-blocklist --ignore-not-found",
    ] {
        stage.hub.kubectl(&gone.split(' ').collect::<Vec<_>>())?;
    }
    gone_on
}
