//! What a cluster may not ask for.

use crate::stage::Stage;
use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::process::Command;
use testbed::{ObjectRef, is_true};

const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";

/// A request for the certificate of the agent of this cluster.
fn request(cluster: &str) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let subject = format!(
        "/O=system:open-cluster-management:addon:argocd-agent-addon/CN=system:open-cluster-management:cluster:{cluster}\
         :addon:argocd-agent-addon:agent:argocd-agent-addon-agent"
    );
    let made = Command::new("openssl")
        .args([
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .arg("-keyout")
        .arg(folder.path().join("key"))
        .args(["-subj", &subject])
        .output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(made.stdout)
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
            "request": ByteString(request(of)?),
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
