//! Cluster Secrets as the real ApplicationSet controller takes them: its generator selects clusters by the labels that they have in
//! OCM. The controller has the rights that it ships with for the pull model.

use crate::controller::ACCOUNT;
use crate::stage::shipped;
use anyhow::{Context, Result};
use argocd_ocm_cmp::{json, yaml};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testbed::process::{self, Process};
use testbed::{ArgoCd, Hub, ObjectRef, ports, wait};

/// The ApplicationSet that the page on cluster Secrets shows.
fn shown() -> Result<Value> {
    let page = fs::read_to_string(shipped("docs/cluster-secrets.md"))?;
    let (_, after) = page.split_once("```yaml\n").context("its YAML")?;
    let (text, _) = after.split_once("```").context("the end of its YAML")?;
    let document = yaml::documents(text).next().context("a document")?;
    let mut object = String::new();
    json::write(&document?.value, &mut object)?;
    Ok(serde_json::from_str(&object)?)
}

/// Runs the controller for this promise and the pull model, as its account.
fn start(hub: &Hub) -> Result<Process> {
    for file in [
        "deploy_controller.yaml",
        "admission_policy.yaml",
        "deploy_pull.yaml",
        "deploy_cluster_secrets.yaml",
    ] {
        hub.kubectl(&["apply", "-f", shipped(file).to_str().context("a plain path")?])?;
    }
    let mut command = process::command(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        Path::new(env!("CARGO_TARGET_TMPDIR")),
    );
    command.args(["controller", "--controllers=pull,cluster-secrets", "--log-level=debug"]);
    command.arg(format!("--bind-address=127.0.0.1:{}", ports::free()?));
    command
        .arg("--kubeconfig")
        .arg(hub.service_account_kubeconfig("argocd", ACCOUNT)?);
    Process::start("cluster-secrets", command, &hub.logs().join("cluster-secrets.log"))
}

fn managed_cluster(name: &str) -> ObjectRef {
    ObjectRef::cluster("cluster.open-cluster-management.io/v1", "ManagedCluster", name)
}

fn secret(cluster: &str) -> ObjectRef {
    ObjectRef::namespaced("v1", "Secret", "argocd", &format!("{cluster}-secret"))
}

async fn label(hub: &Hub, cluster: &str, env: &Value) -> Result<()> {
    let labels = json!({"metadata": {"labels": {"env": env}}});
    hub.patch(&managed_cluster(cluster), &labels).await.map(drop)
}

async fn applications(hub: &Hub) -> Result<Vec<String>> {
    let all = hub.list("argoproj.io/v1alpha1", "Application").await?;
    let names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

async fn until(hub: &Hub, wanted: &[&str]) -> Result<()> {
    let are_there = async || (applications(hub).await.ok()? == wanted).then_some(());
    wait::eventually(&format!("the Applications are {wanted:?}"), wait::DEADLINE, are_there).await
}

#[tokio::test]
async fn a_generator_selects_clusters_by_the_labels_of_their_managed_clusters() -> Result<()> {
    if !testbed::available() {
        return Ok(());
    }
    let hub = Hub::start().await?;
    for cluster in ["eu1", "eu2", "us1"] {
        hub.declare_managed_cluster(cluster).await?;
    }
    label(&hub, "eu1", &json!("prod")).await?;
    let argocd = ArgoCd {
        application_sets: true,
        ..ArgoCd::default()
    };
    hub.start_argocd(argocd).await?;
    let controller = start(&hub)?;
    hub.wait_for(&secret("us1"), |_| true).await?;

    // A cluster that has the label, one that gets it, and one that loses it.
    let set = shown()?;
    hub.apply(&set).await?;
    until(&hub, &["guestbook-eu1"]).await?;
    let application = hub
        .get(&ObjectRef::application("guestbook-eu1"))
        .await?
        .context("it is there")?;
    let marks = &application["metadata"]["annotations"];
    assert_eq!(marks["apps.open-cluster-management.io/ocm-managed-cluster"], "eu1");
    assert_eq!(
        application["spec"]["destination"]["server"],
        "https://eu1-control-plane:6443"
    );
    label(&hub, "eu2", &json!("prod")).await?;
    until(&hub, &["guestbook-eu1", "guestbook-eu2"]).await?;
    label(&hub, "eu1", &Value::Null).await?;
    until(&hub, &["guestbook-eu2"]).await?;
    // One that joins with it, and one that goes.
    hub.declare_managed_cluster("us2").await?;
    label(&hub, "us2", &json!("prod")).await?;
    until(&hub, &["guestbook-eu2", "guestbook-us2"]).await?;
    hub.delete(&managed_cluster("eu2")).await?;
    until(&hub, &["guestbook-us2"]).await?;
    hub.wait_gone(&secret("eu2")).await?;

    let log = fs::read_to_string(controller.log())?;
    let is_refused = |line: &&str| line.contains("orbidden");
    assert_eq!(log.lines().find(is_refused), None, "it has all rights that it needs");
    Ok(())
}
