//! The rights that the files for the pull model, cluster Secrets and reports give are those that the controller uses, no more and no
//! less, by the audit log of the real API server: also for whatever the other tests make it do meanwhile. Admission policies refuse
//! nothing of that.

use super::{APPLICATION, CLUSTER, PULL, Pulled, SKIP_RECONCILE, Stage, managed_cluster, stage};
use crate::controller::{ACCOUNT, is_noted, rights, told};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use testbed::process::{self, Process};
use testbed::{Hub, ObjectRef, ports};

const ERROR: &str = "ManifestWorkError";

/// Starts a controller that watches what only the other dialect has to know, and writes nothing.
fn start_watching(hub: &Hub) -> Result<Process> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), home);
    command.args(["controller", "--controllers=pull", "--pull-dialect=acm", "--dry-run"]);
    command.arg(format!("--bind-address=127.0.0.1:{}", ports::free()?));
    command
        .arg("--kubeconfig")
        .arg(hub.service_account_kubeconfig("argocd", ACCOUNT)?);
    Process::start("watching", command, &hub.logs().join("pull-rights.log"))
}

/// The Secret of a cluster is made, changed and deleted.
async fn a_cluster_comes_and_goes(hub: &Hub, name: &str) -> Result<()> {
    hub.declare_managed_cluster(name).await?;
    let secret = ObjectRef::namespaced("v1", "Secret", "argocd", &format!("{name}-secret"));
    hub.wait_for(&secret, |_| true).await?;
    let label = json!({"metadata": {"labels": {"env": "prod"}}});
    hub.patch(&managed_cluster(name), &label).await?;
    hub.wait_for(&secret, |it| it["metadata"]["labels"]["env"] == "prod")
        .await?;
    hub.delete(&managed_cluster(name)).await?;
    hub.wait_gone(&secret).await?;
    // A cluster that is seen to go is not asked for again. One that is not there, though there is a Secret of it, is.
    let metadata = json!({
        "name": "pull-rights-never-secret",
        "namespace": "argocd",
        "labels": {"argocd.argoproj.io/secret-type": "cluster", "app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
    });
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"name": "pull-rights-never", "server": "https://pull-rights-never-control-plane:6443"},
    });
    let secret = ObjectRef::of(&hub.create(&secret).await?);
    hub.wait_gone(&secret).await
}

/// An Application that cannot be delivered, can, and again cannot, so that an Event is counted; then it goes without a finalizer, so
/// that it is asked for before its work is deleted.
async fn an_application_comes_and_goes(stage: &'static Stage, cluster: &str) -> Result<()> {
    let hub = &stage.hub;
    let mut app = Pulled::new(stage, "pull-rights-refused")?;
    app.object["metadata"]["finalizers"] = Value::Null;
    let message = "there is no ManagedCluster pull-rights-none";
    app.object["metadata"]["annotations"][CLUSTER] = json!("pull-rights-none");
    let created = app.create().await?;
    let to = |cluster: &str| json!({"metadata": {"annotations": {CLUSTER: cluster}}});
    for round in 1..=2 {
        hub.wait_for(&app.application(), |it| told(it, ERROR) == [message])
            .await?;
        is_noted(hub, &created, ("Warning", "ManifestWorkRefused"), round, message).await?;
        app.patch(&to(cluster)).await?;
        hub.wait_for(&app.application(), |it| told(it, ERROR).is_empty())
            .await?;
        if round == 1 {
            app.patch(&to("pull-rights-none")).await?;
        }
    }
    let work = app.work().await?;
    app.patch(&json!({"metadata": {"labels": {"team": "a"}}})).await?;
    let is_changed = |work: &Value| work["spec"]["workload"]["manifests"][0]["metadata"]["labels"]["team"] == "a";
    hub.wait_for(&work, is_changed).await?;
    app.end().await?;
    hub.wait_gone(&work).await
}

/// A set of one Application, and then of two: there is a report, and it changes.
async fn a_set_grows(hub: &Hub, cluster: &str) -> Result<()> {
    let name = "pull-rights-set";
    let mut set = json!({
        "apiVersion": APPLICATION.0,
        "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "one"}]}}],
            "template": {
                "metadata": {
                    "name": format!("{name}-{{{{name}}}}"),
                    "labels": {PULL: "true"},
                    "annotations": {CLUSTER: cluster, SKIP_RECONCILE: "true"},
                },
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "https://example.com/none", "path": "."},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
                },
            },
        },
    });
    let object = ObjectRef::of(&hub.create(&set).await?);
    let report = ObjectRef {
        api_version: "apps.open-cluster-management.io/v1alpha1".to_owned(),
        kind: "MulticlusterApplicationSetReport".to_owned(),
        ..object.clone()
    };
    let before = hub.wait_for(&report, |_| true).await?;
    set["spec"]["generators"][0]["list"]["elements"] = json!([{"name": "one"}, {"name": "two"}]);
    hub.patch(&object, &json!({"spec": set["spec"]})).await?;
    let version = |report: &Value| report["metadata"]["resourceVersion"].clone();
    hub.wait_for(&report, |now| version(now) != version(&before)).await?;
    hub.delete(&object).await?;
    hub.wait_gone(&object).await
}

#[tokio::test]
async fn every_right_is_used_and_none_is_missing() -> Result<()> {
    let Some(stage) = stage().await? else { return Ok(()) };
    let (hub, cluster) = (&stage.hub, "pull-rights");
    let watching = start_watching(hub)?;
    hub.declare_managed_cluster(cluster).await?;
    let (secret, application, set) = tokio::join!(
        a_cluster_comes_and_goes(hub, "pull-rights-gone"),
        an_application_comes_and_goes(stage, cluster),
        a_set_grows(hub, cluster)
    );
    secret.and(application).and(set)?;
    let files = [
        "deploy_controller.yaml",
        "deploy_pull.yaml",
        "deploy_cluster_secrets.yaml",
        "deploy_report.yaml",
    ];
    rights::are_as_used(hub, &files).await?;
    drop(watching);
    Ok(())
}
