//! Tests of cluster Secrets with the real ApplicationSet controller: its generator selects clusters by their labels in OCM. The
//! controller has the permissions shipped for the pull model.

use crate::controller::ACCOUNT;
use crate::stage::{apply, objects_of_yaml, shipped};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testbed::process::{self, Process};
use testbed::{ArgoCd, Hub, ObjectRef, ports, wait};

/// Returns the ApplicationSet in the page on cluster Secrets.
fn shown() -> Result<Value> {
    let page = fs::read_to_string(shipped("docs/cluster-secrets.md"))?;
    let (_, after) = page.split_once("```yaml\n").context("its YAML")?;
    let (text, _) = after.split_once("```").context("the end of its YAML")?;
    objects_of_yaml(text)?.pop().context("a document")
}

/// Starts `cluster-secrets` and the pull model with the controller's ServiceAccount.
fn start(hub: &Hub) -> Result<Process> {
    let files = [
        "deploy/deploy_controller.yaml",
        "deploy/admission_policy.yaml",
        "deploy/deploy_pull.yaml",
        "deploy/deploy_cluster_secrets.yaml",
    ];
    apply(hub, &files)?;
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &["--controllers=pull,cluster-secrets", "--log-level=debug"],
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("cluster-secrets", command, &hub.logs().join("cluster-secrets.log"))
}

fn secret(cluster: &str) -> ObjectRef {
    ObjectRef::secret("argocd", &format!("{cluster}-secret"))
}

async fn label(hub: &Hub, cluster: &str, env: &Value) -> Result<()> {
    let labels = json!({"metadata": {"labels": {"env": env}}});
    hub.patch(&ObjectRef::managed_cluster(cluster), &labels).await.map(drop)
}

async fn applications(hub: &Hub) -> Result<Vec<String>> {
    let all = hub.list("argoproj.io/v1alpha1", "Application").await?;
    let names = all.iter().filter_map(|it| it["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

async fn until(hub: &Hub, expected: &[&str]) -> Result<()> {
    let are_there = async || (applications(hub).await.ok()? == expected).then_some(());
    wait::eventually(&format!("the Applications are {expected:?}"), wait::DEADLINE, are_there).await
}

#[tokio::test]
async fn cluster_generator_selects_by_managed_cluster_labels() -> Result<()> {
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
    let application = hub.read(&ObjectRef::application("guestbook-eu1")).await?;
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
    // One cluster joins with the label, and one leaves.
    hub.declare_managed_cluster("us2").await?;
    label(&hub, "us2", &json!("prod")).await?;
    until(&hub, &["guestbook-eu2", "guestbook-us2"]).await?;
    hub.delete(&ObjectRef::managed_cluster("eu2")).await?;
    until(&hub, &["guestbook-us2"]).await?;
    hub.wait_gone(&secret("eu2")).await?;

    let log = fs::read_to_string(controller.log())?;
    let is_refused = |line: &&str| line.contains("orbidden");
    assert_eq!(log.lines().find(is_refused), None, "no request is forbidden");
    Ok(())
}
