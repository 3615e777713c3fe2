//! Tests of the cluster Secrets that the controller maintains, with a real API server: it accepts the Secrets as written, applies
//! patches as the controller expects, and rejects duplicate names.

use crate::stage::{Replica, Stage, stage, writes};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::ObjectRef;
use testbed::proxy::{Proxy, RecordedRequest};

const CONTROLLER: &str = "cluster-secrets";

/// A credential that a user stored in a Secret and that must not be logged: as text and in base64.
const CREDENTIAL: [&str; 2] = ["hunter2", "aHVudGVyMg=="];

/// Returns a hub without cluster Secrets, and with one managed cluster of this name.
async fn hub(cluster: &str) -> Result<Stage> {
    let stage = stage(cluster).await?;
    let clusters = "argocd.argoproj.io/secret-type=cluster";
    stage
        .hub
        .kubectl(&["-n", "argocd", "delete", "secrets", "-l", clusters])?;
    Ok(stage)
}

fn secret(name: &str) -> ObjectRef {
    ObjectRef::secret("argocd", name)
}

async fn label(stage: &Stage, cluster: &str, labels: &Value) -> Result<()> {
    let labels = json!({"metadata": {"labels": labels}});
    stage
        .hub
        .patch(&ObjectRef::managed_cluster(cluster), &labels)
        .await
        .map(drop)
}

/// Creates a cluster Secret of another writer.
async fn write(stage: &Stage, name: &str, labels: &Value, data: &Value) -> Result<Value> {
    let secret = ObjectRef::secret("argocd", name).with(json!({"metadata": {"labels": labels}, "stringData": data}));
    stage.hub.create(&secret).await
}

fn decoded(secret: &Value, key: &str) -> String {
    let bytes = serde_json::from_value::<k8s_openapi::ByteString>(secret["data"][key].clone());
    String::from_utf8(bytes.unwrap_or_default().0).unwrap_or_default()
}

/// Labels a cluster and waits until its Secret has the label: then earlier changes are reconciled.
async fn change(stage: &Stage, cluster: &str, value: &str) -> Result<Value> {
    label(stage, cluster, &json!({"change": value})).await?;
    let secret = secret(&format!("{cluster}-secret"));
    stage
        .hub
        .wait_for_value(&secret, "/metadata/labels/change", value)
        .await
}

async fn controller(stage: &Stage, proxy: &Proxy) -> Result<Replica> {
    stage.controller_for(CONTROLLER, proxy).await
}

/// Returns the writes except those of Leases, after all requests were answered.
async fn written(proxy: &Proxy) -> Result<Vec<String>> {
    let answered = |requests: &[RecordedRequest]| {
        requests
            .iter()
            .all(|request| !request.is_write() || request.answer.is_some())
    };
    proxy.until("every request is answered", answered).await?;
    Ok(writes(&proxy.requests()))
}

#[tokio::test]
async fn adopts_a_peers_secret_and_leaves_others_alone() -> Result<()> {
    let stage = hub("secret-peer").await?;
    let hub = &stage.hub;
    let clusters = ["secret-acm", "secret-taken"];
    for cluster in clusters {
        hub.declare_managed_cluster(cluster).await?;
    }
    let is_cluster = json!({"argocd.argoproj.io/secret-type": "cluster"});
    let of_peer = json!({"name": "secret-peer", "server": "https://secret-peer-control-plane:6443"});
    let peers = write(&stage, "secret-peer-secret", &is_cluster, &of_peer).await?;
    let of_acm = json!({
        "argocd.argoproj.io/secret-type": "cluster",
        "apps.open-cluster-management.io/acm-cluster": "true",
    });
    let data = json!({"name": "secret-acm", "server": "https://secret-acm-control-plane", "config": CREDENTIAL[0]});
    let acms = write(&stage, "secret-acm-application-manager-cluster-secret", &of_acm, &data).await?;
    // A Secret without Argo CD's label, which no watch includes.
    let password = json!({"password": CREDENTIAL[0]});
    let other = write(&stage, "secret-taken-secret", &json!({}), &password).await?;

    let proxy = stage.proxy().await?;
    let running = controller(&stage, &proxy).await?;
    let taken_over = change(&stage, "secret-peer", "1").await?;
    assert_eq!(taken_over["metadata"]["uid"], peers["metadata"]["uid"]);
    assert_eq!(
        taken_over["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "argocd-ocm-cmp"
    );
    let by_acm = "Argo CD knows this cluster by Secret argocd/secret-acm-application-manager-cluster-secret, which stays \
                  unchanged, so the controller creates no other";
    let name_conflict = "Secret argocd/secret-taken-secret cannot be created: another object has that name";
    let [acm, taken] = clusters.map(ObjectRef::managed_cluster);
    stage.wait_for_warning(&acm, "ClusterSecretConflict", by_acm).await?;
    stage.wait_for_warning(&taken, "NameTaken", name_conflict).await?;
    let described = hub.kubectl("describe managedcluster secret-acm")?;
    assert!(described.contains("ClusterSecretConflict"), "{described}");

    // Each conflict is reported once, for any number of reconciliations and replicas.
    for value in ["1", "2"] {
        label(&stage, "secret-acm", &json!({"change": value})).await?;
    }
    change(&stage, "secret-peer", "2").await?;
    let log = running.log()?;
    running.stop().await?;
    assert_eq!(log.matches(by_acm).count(), 1, "{log}");
    let second_replica = stage.proxy().await?;
    let running = controller(&stage, &second_replica).await?;
    label(&stage, "secret-acm", &json!({"change": "3"})).await?;
    change(&stage, "secret-peer", "3").await?;
    let both_reconciled = |requests: &[RecordedRequest]| {
        let reads_cluster = |request: &&RecordedRequest| request.is("get", "events") && request.answer == Some(200);
        requests.iter().filter(reads_cluster).count() >= 2
    };
    second_replica
        .until("both clusters are reconciled", both_reconciled)
        .await?;
    for cluster in [acm, taken] {
        let events = stage.events(&cluster).await?;
        assert!(events.len() == 1 && events[0]["count"] == 1, "{events:#?}");
    }
    let mut written = written(&second_replica).await?;
    written.retain(|written| written != "create /api/v1/namespaces/argocd/secrets: 409");
    assert_eq!(
        written,
        ["patch /api/v1/namespaces/argocd/secrets/secret-peer-secret: 200"]
    );
    let read = |request: &&RecordedRequest| request.resource == "secrets" && request.verb == "list";
    let all_ours = |request: &RecordedRequest| request.query.contains("labelSelector=");
    assert!(
        second_replica.requests().iter().filter(read).all(all_ours),
        "the controller read another Secret"
    );
    for (before, name) in [
        (&acms, "secret-acm-application-manager-cluster-secret"),
        (&other, "secret-taken-secret"),
    ] {
        let now = hub.read(&secret(name)).await?;
        assert_eq!(
            now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
            "{name}"
        );
    }

    // The controller creates its Secrets after the others are deleted.
    hub.delete(&secret("secret-acm-application-manager-cluster-secret"))
        .await?;
    hub.delete(&secret("secret-taken-secret")).await?;
    for cluster in clusters {
        let is_ours = |secret: &Value| secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp";
        let made = hub.wait_for(&secret(&format!("{cluster}-secret")), is_ours).await?;
        assert_eq!(decoded(&made, "name"), cluster);
    }
    for word in CREDENTIAL {
        assert!(
            !running.log()?.contains(word) && !log.contains(word),
            "{word} is in a log"
        );
    }
    assert!(
        log.contains("(not shown)"),
        "the writes are logged without their content"
    );
    Ok(())
}
