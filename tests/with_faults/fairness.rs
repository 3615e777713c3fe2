//! Tests that two hundred Applications whose writes hang do not delay other work.

use crate::gitopscluster::{hub, select};
use crate::gitopscluster_crd::{named, object};
use crate::stage::{DEGRADED, Fares, Stage};
use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::time::Instant;
use testbed::proxy::{Fault, Proxy, Seen, Times};
use testbed::{ObjectRef, certificate_request, wait};

const CLUSTER: &str = "fair";
const HANGING: usize = 200;
/// The name of the agent of the cluster.
const AGENT: &str =
    "system:open-cluster-management:cluster:fair:addon:argocd-agent-addon:agent:argocd-agent-addon-agent";
const REQUEST: &str = "addon-fair-argocd-agent-addon-1";

fn is_hanging(seen: &Seen) -> bool {
    seen.is("patch", "applications") && seen.name.as_ref().is_some_and(|name| name.starts_with("hang-"))
}

/// Requests the certificate of the cluster's agent, as its registration agent does.
fn ask(stage: &Stage) -> Result<ObjectRef> {
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": REQUEST, "labels": {
            "open-cluster-management.io/addon-name": "argocd-agent-addon",
            "open-cluster-management.io/cluster-name": CLUSTER,
        }},
        "spec": {
            "request": ByteString(certificate_request(AGENT)?.into_bytes()),
            "signerName": "open-cluster-management.io/argocd-agent-addon",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
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
    let rights = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "fair-agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:open-cluster-management:fair"}],
    });
    stage
        .hub
        .kubectl_with_input(&["create", "-f", "-"], &rights.to_string())?;
    stage.hub.kubectl_with_input(&arguments, &request.to_string())?;
    Ok(ObjectRef::cluster(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        REQUEST,
    ))
}

/// Installs argocd-agent on the cluster, so that its agent gets certificates.
async fn bring_agents(stage: &Stage) -> Result<()> {
    select(stage, "fair", &[CLUSTER]).await?;
    let spec = json!({
        "placementRef": {"kind": "Placement", "name": "fair"},
        "argoCDAgentAddon": {"principalServerAddress": "192.0.2.7", "principalServerPort": "443"},
    });
    stage.hub.create(&object("v1alpha1", "fair", &spec)).await?;
    Ok(())
}

/// Waits until an Event with this reason is recorded for an Application.
async fn until_recorded(stage: &Stage, application: &str, reason: &str) -> Result<()> {
    let fields = format!("--field-selector=involvedObject.name={application},reason={reason}");
    let recorded = async || {
        let events = stage
            .hub
            .kubectl(&["-n", "argocd", "get", "events", &fields, "-o=name"])
            .ok()?;
        (!events.trim().is_empty()).then_some(())
    };
    wait::eventually("the Event is recorded", wait::DEADLINE, recorded).await
}

async fn other_writes_go_on(stage: &Stage, proxy: &Proxy) -> Result<()> {
    // A certificate is signed: its writes are from another controller.
    let asked = Instant::now();
    let request = ask(stage)?;
    let is_signed = |it: &Value| it["status"]["certificate"].is_string();
    stage.hub.wait_for(&request, is_signed).await?;
    println!(
        "the certificate was signed after {:.1} s with {HANGING} hanging writes",
        asked.elapsed().as_secs_f64()
    );
    // A status is written, and an Event recorded: by the same controller, for the same namespace and cluster.
    let written = Instant::now();
    let fine = stage.application("fine", Fares::Badly("it is broken")).await?;
    stage.until_told(&fine, DEGRADED, "it is broken").await?;
    until_recorded(stage, "fine", "ManifestWorkDegraded").await?;
    println!(
        "the status and its Event were written after {:.1} s",
        written.elapsed().as_secs_f64()
    );
    let requests = proxy.requests();
    let hanging: Vec<_> = requests.iter().filter(|seen| is_hanging(seen)).collect();
    let answered = hanging.iter().filter(|seen| seen.answer.is_some()).count();
    ensure!(
        hanging.len() >= 24 && answered == 0,
        "{} hang, {answered} were answered",
        hanging.len()
    );
    Ok(())
}

#[tokio::test]
async fn hanging_writes_of_200_applications_delay_nothing_else() -> Result<()> {
    let Some(stage) = hub(&[CLUSTER]).await? else {
        return Ok(());
    };
    bring_agents(&stage).await?;
    let proxy = stage.proxy().await?;
    let controllers = "application-status,gitopscluster,argocd-agent";
    let controller = stage.controller_for(controllers, &proxy).await?;
    let listed = ObjectRef::namespaced(
        "cluster.open-cluster-management.io/v1beta1",
        "PlacementDecision",
        "argocd",
        "fair-argocd-agent-decision-1",
    );
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
    let names = (0..HANGING).map(|number| format!("hang-{number}"));
    stream::iter(names)
        .map(|name| {
            let stage = &stage;
            async move { stage.application(&name, Fares::Well).await }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await?;
    let hang = |requests: &[Seen]| requests.iter().filter(|seen| is_hanging(seen)).count() >= 24;
    proxy.until("many writes hang", hang).await?;
    let gone_on = other_writes_go_on(&stage, &proxy).await;

    // In any case: other tests use the hub.
    proxy.heal();
    stage.hub.delete(&named("v1alpha1", "fair")).await?;
    stage.hub.wait_gone(&named("v1alpha1", "fair")).await?;
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
