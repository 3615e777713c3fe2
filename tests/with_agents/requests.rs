//! What a cluster may not ask for.

use crate::stage::Stage;
use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use testbed::{ObjectRef, certificate_request, is_true};

const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";

/// The name of the agent of a cluster.
fn agent_of(cluster: &str) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:argocd-agent-addon:agent:argocd-agent-addon-agent")
}

/// Asks as the registration agent of a cluster does, and waits for what comes of it.
async fn ask(stage: &Stage, name: &str, of: &str, by: &str, is_done: impl Fn(&Value) -> bool) -> Result<Value> {
    let labels = json!({
        "open-cluster-management.io/addon-name": "argocd-agent-addon",
        "open-cluster-management.io/cluster-name": by,
    });
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "request": ByteString(certificate_request(&agent_of(of))?.into_bytes()),
            "signerName": SIGNER,
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    });
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

/// Checks that a cluster gets what it asks for its own agent, and nothing that is another's.
pub(crate) async fn are_refused(stage: &Stage) -> Result<()> {
    let has_certificate = |it: &Value| it["status"]["certificate"].is_string();
    let over = |it: &Value| has_certificate(it) || is_true(it, "Denied") || is_true(it, "Failed");
    let own = ask(
        stage,
        "addon-cluster2-argocd-agent-addon-own",
        "cluster2",
        "cluster2",
        over,
    )
    .await?;
    ensure!(has_certificate(&own), "{:#}", own["status"]);
    let others = ask(
        stage,
        "addon-cluster2-argocd-agent-addon-other",
        "cluster1",
        "cluster2",
        over,
    )
    .await?;
    ensure!(
        !has_certificate(&others),
        "cluster2 passes for cluster1: {:#}",
        others["status"]
    );
    let why = others["status"].to_string();
    ensure!(
        why.contains("the agent of the cluster cluster2 asks for the name"),
        "{why}"
    );
    Ok(())
}

/// Checks that agents get what they ask for: otherwise each would ask again at once, until OCM lets it ask no more.
pub(crate) async fn are_few(stage: &Stage) -> Result<()> {
    const MOST: usize = 10;
    let all = stage
        .hub
        .list("certificates.k8s.io/v1", "CertificateSigningRequest")
        .await?;
    for cluster in ["cluster1", "cluster2"] {
        let prefix = format!("addon-{cluster}-");
        let names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
        let asked = names.filter(|name| name.starts_with(&prefix)).count();
        ensure!(asked < MOST, "{cluster} has asked {asked} times");
    }
    Ok(())
}
