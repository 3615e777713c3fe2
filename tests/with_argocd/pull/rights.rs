//! Tests that the permissions in the files for the pull model, cluster Secrets and reports are exactly those that the controller
//! uses, from the audit log of the real API server, including the requests caused by the other tests. Admission policies deny
//! none of these requests.

use super::{APPLICATION, CLUSTER, PULL, PulledApplication, SKIP_RECONCILE, Stage, stage};
use crate::controller::{ACCOUNT, rights, wait_for_event};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use testbed::application::messages;
use testbed::process::{self, Process};
use testbed::{Hub, ObjectRef, ports};

const ERROR: &str = "ManifestWorkError";

/// Starts a controller that watches the kinds that only the other dialect needs, and writes nothing.
fn start_watching(hub: &Hub) -> Result<Process> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        home,
        &["--controllers=pull", "--pull-dialect=acm", "--dry-run"],
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("watching", command, &hub.logs().join("pull-rights.log"))
}

/// Creates, changes and deletes the Secret of a cluster.
async fn use_cluster_permissions(hub: &Hub, name: &str) -> Result<()> {
    hub.declare_managed_cluster(name).await?;
    let secret = ObjectRef::secret("argocd", &format!("{name}-secret"));
    hub.wait_for(&secret, |_| true).await?;
    let label = json!({"metadata": {"labels": {"env": "prod"}}});
    hub.patch(&ObjectRef::managed_cluster(name), &label).await?;
    hub.wait_for_value(&secret, "/metadata/labels/env", "prod").await?;
    hub.delete(&ObjectRef::managed_cluster(name)).await?;
    hub.wait_gone(&secret).await?;
    // The controller does not read a cluster again whose deletion it saw. It reads a missing cluster that still has a Secret.
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

/// Creates an Application that cannot be delivered, then can, then cannot, so that an Event is counted. Then deletes it without a
/// finalizer, so that the controller reads it before it deletes its work.
async fn use_application_permissions(stage: &Stage, cluster: &str) -> Result<()> {
    let hub = &stage.hub;
    let mut app = PulledApplication::new(stage, "pull-rights-refused")?;
    app.object["metadata"]["finalizers"] = Value::Null;
    let message = "ManagedCluster pull-rights-none does not exist";
    app.object["metadata"]["annotations"][CLUSTER] = json!("pull-rights-none");
    let created = app.create().await?;
    let to = |cluster: &str| json!({"metadata": {"annotations": {CLUSTER: cluster}}});
    for round in 1..=2 {
        hub.wait_for(&app.application(), |application| {
            messages(application, ERROR) == [message]
        })
        .await?;
        wait_for_event(hub, &created, ("Warning", "ManifestWorkRefused"), round, message).await?;
        app.patch(&to(cluster)).await?;
        hub.wait_for(&app.application(), |application| {
            messages(application, ERROR).is_empty()
        })
        .await?;
        if round == 1 {
            app.patch(&to("pull-rights-none")).await?;
        }
    }
    let work = app.work().await?;
    app.patch(&json!({"metadata": {"labels": {"team": "a"}}})).await?;
    let team = "/spec/workload/manifests/0/metadata/labels/team";
    hub.wait_for_value(&work, team, "a").await?;
    app.end().await?;
    hub.wait_gone(&work).await
}

/// Creates a set of one Application, and then of two, so that a report is created and changed.
async fn use_set_permissions(hub: &Hub, cluster: &str) -> Result<()> {
    let name = "pull-rights-set";
    let mut set = ObjectRef::namespaced(APPLICATION.0, "ApplicationSet", "argocd", name).with(json!({"spec": {
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
    }}));
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
    hub.delete_and_wait(&object).await
}

#[tokio::test]
async fn controllers_use_exactly_their_permissions() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster) = (&stage.hub, "pull-rights");
    let watching = start_watching(hub)?;
    hub.declare_managed_cluster(cluster).await?;
    let (secret, application, set) = tokio::join!(
        use_cluster_permissions(hub, "pull-rights-gone"),
        use_application_permissions(&stage, cluster),
        use_set_permissions(hub, cluster)
    );
    secret.and(application).and(set)?;
    let files = "deploy/deploy_controller.yaml deploy/deploy_pull.yaml deploy/deploy_cluster_secrets.yaml deploy/deploy_report.yaml";
    rights::check_exact_permissions(hub, files).await?;
    drop(watching);
    Ok(())
}
