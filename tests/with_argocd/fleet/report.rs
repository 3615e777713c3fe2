//! Tests of the report of an ApplicationSet: the shipped CRD and permissions, the real applicationset-controller, and two managed
//! clusters.

use super::{Fleet, fleet};
use crate::controller::ACCOUNT;
use crate::stage::{apply, shipped, shipped_objects};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::process::{self, Process};
use testbed::{GitRepository, Hub, ObjectRef, is_applied, ports};

/// Applies the files that reports need, once, and waits until the kind is served and the permissions are effective.
async fn install(fleet: &Fleet) -> Result<()> {
    let installed = fleet.reports.get_or_try_init(async || apply_files(&fleet.hub).await);
    installed.await.map(drop)
}

async fn apply_files(hub: &Hub) -> Result<()> {
    apply(hub, "deploy/report_crd.yaml deploy/deploy_report.yaml")?;
    hub.wait_for_crds().await?;
    let kind = "multiclusterapplicationsetreports.apps.open-cluster-management.io";
    let permission = format!("create {kind} --all-namespaces");
    hub.wait_for_permissions("argocd", ACCOUNT, &[&permission]).await
}

/// Starts a controller that only writes reports, with its shipped permissions.
fn reporter(hub: &Hub) -> Result<Process> {
    let home = env!("CARGO_TARGET_TMPDIR").as_ref();
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        home,
        &["--controllers=application-set-report", "--leader-elect=false"],
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("reporter", command, &hub.logs().join("reporter.log"))
}

/// Returns the shipped ApplicationSet with this name, for these clusters.
fn application_set(name: &str, git: &GitRepository, clusters: &[&str]) -> Result<Value> {
    let set = shipped_objects("examples/appset.yaml")?
        .pop()
        .context("an ApplicationSet")?;
    let mut set: Value = serde_json::from_str(&set.to_string().replace("guestbook", name))?;
    set["spec"]["generators"] = generators(clusters);
    set["spec"]["template"]["spec"]["source"]["repoURL"] = json!(git.url());
    Ok(set)
}

fn generators(clusters: &[&str]) -> Value {
    let elements: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name})).collect();
    json!([{"list": {"elements": elements}}])
}

/// Returns the counts of a report: clusters, synced, not synced, healthy, not healthy, in progress.
fn summary(report: &Value) -> Option<[u32; 6]> {
    let mut counts = [0; 6];
    let keys = ["clusters", "synced", "notSynced", "healthy", "notHealthy", "inProgress"];
    for (count, key) in counts.iter_mut().zip(keys) {
        *count = report["statuses"]["summary"][key].as_str()?.parse().ok()?;
    }
    Some(counts)
}

#[tokio::test]
async fn reports_an_application_set_until_deletion() -> Result<()> {
    let fleet = fleet().await?;
    let hub = &fleet.hub;
    install(&fleet).await?;
    let name = "reported";
    let (object, git) = (ObjectRef::report(name), GitRepository::new()?);
    git.commit_folder(&shipped("guestbook"), name)?;
    // Another writer has created the report.
    let other = object.with(json!({"statuses": {"summary": {"clusters": "7"}}}));
    hub.create(&other).await?;
    let reporter = reporter(hub)?;
    let set = application_set(name, &git, &["cluster1", "second"])?;
    hub.kubectl_with_input("apply -f -", &set.to_string())?;
    let set = ObjectRef::of(&set);

    // Both Applications become healthy.
    let both_healthy = |report: &Value| summary(report) == Some([2, 2, 0, 2, 0, 0]);
    let written = hub.wait_for(&object, both_healthy).await?;
    let owner = hub.read(&set).await?["metadata"]["uid"].clone();
    assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], owner);
    let label = "apps.open-cluster-management.io/hosting-applicationset";
    assert_eq!(written["metadata"]["labels"][label], "argocd.reported");
    let all = written["statuses"]["clusterConditions"].as_array().context("entries")?;
    let entries: Vec<_> = all.iter().map(|entry| [&entry["cluster"], &entry["app"]]).collect();
    let expected = [
        ["cluster1", "argocd/reported-cluster1"],
        ["second", "argocd/reported-second"],
    ];
    assert_eq!(entries, expected);
    let resources = written["statuses"]["resources"].as_array().context("resources")?;
    let kinds: Vec<_> = resources
        .iter()
        .map(|resource| [&resource["apiVersion"], &resource["kind"]])
        .collect();
    assert_eq!(kinds, [["apps/v1", "Deployment"], ["v1", "Service"]]);

    // The columns of kubectl get.
    let shown = hub.kubectl(&["get", "appsetreport", "-n", "argocd", name])?;
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "NAME CLUSTERS HEALTHY IN PROGRESS SYNCED AGE");
    assert_eq!(lines[1][..5], [name, "2", "2", "0", "2"]);

    // An up-to-date report is not written again, also after a restart.
    let version = |report: &Value| report["metadata"]["resourceVersion"].clone();
    drop(reporter);
    let reporter = self::reporter(hub)?;
    let before = hub.read(&object).await?;
    assert_eq!(summary(&before), summary(&written));
    let empty = application_set("empty", &git, &[])?;
    hub.kubectl_with_input("apply -f -", &empty.to_string())?;
    hub.wait_for(&ObjectRef::report("empty"), |report| summary(report) == Some([0; 6]))
        .await?;
    let after = hub.read(&object).await?;
    assert_eq!(
        version(&after),
        version(&before),
        "the restarted controller has written the other report"
    );

    // An object that a cluster rejects is reported for that cluster.
    git.commit(&[("reported/claim.yaml", REFUSED)])?;
    for cluster in ["cluster1", "second"] {
        hub.refresh_application(&format!("{name}-{cluster}"), "normal").await?;
    }
    let is_refused = |report: &Value| {
        let condition = &report["statuses"]["clusterConditions"][1]["conditions"][0];
        let message = condition["message"].as_str().unwrap_or_default();
        summary(report) == Some([2, 2, 0, 0, 2, 0])
            && condition["type"] == "ManifestWorkApplyError"
            && message.contains("ConfigMap nowhere/settings")
    };
    hub.wait_for(&object, is_refused).await?;

    // One cluster leaves, and then the last.
    let generate = async |clusters: &[&str]| {
        let patch = json!({"spec": {"generators": generators(clusters)}});
        hub.patch(&set, &patch).await.map(drop)
    };
    generate(&["cluster1"]).await?;
    hub.wait_for(&object, |report| summary(report) == Some([1, 1, 0, 0, 1, 0]))
        .await?;
    generate(&[]).await?;
    // An Application without works is on no cluster. It is gone a moment later.
    let is_empty =
        |report: &Value| summary(report) == Some([0; 6]) && report["statuses"]["clusterConditions"].is_null();
    hub.wait_for(&object, is_empty).await?;

    // The report is deleted with its set, and the works that the set must keep are not.
    let keep = json!({"spec": {
        "generators": generators(&["cluster1"]),
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "template": {"metadata": {"finalizers": []}},
    }});
    git.remove(&["reported/claim.yaml"])?;
    hub.patch(&set, &keep).await?;
    let work = ObjectRef::manifest_work("cluster1", "reported-cluster1");
    hub.wait_for(&work, is_applied).await?;
    hub.wait_for(&object, |report| summary(report).is_some_and(|counts| counts[0] == 1))
        .await?;
    hub.delete(&set).await?;
    hub.wait_gone(&object).await?;
    let live = hub.read(&work).await?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "the work is being deleted"
    );
    hub.delete(&work).await?;
    hub.delete(&ObjectRef::application_set("empty")).await?;
    drop(reporter);
    Ok(())
}

/// An object that every cluster rejects: its namespace does not exist.
const REFUSED: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: nowhere}}";
