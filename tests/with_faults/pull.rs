//! Tests of the basic pull model with denied and failed requests, and with unusual statuses of agents: no status of a cluster is
//! lost or invented, and a work is deleted only when its Application is certainly gone.

use crate::stage::{RETRIES, Replica, Stage, backs_off, lists, stage, writes, writes_of};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::proxy::{Fault, Proxy, RecordedRequest, Times};
use testbed::{ObjectRef, new_condition};

const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";
const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
const PAYLOAD: &str = "argocd-ocm-cmp.github.io/payload";

/// A hub with the controller of the pull model, behind a proxy.
struct PullHub {
    stage: Stage,
    proxy: Proxy,
    controller: Replica,
}

impl PullHub {
    async fn start(cluster: &str) -> Result<Self> {
        let stage = stage(cluster).await?;
        let proxy = stage.proxy().await?;
        let controller = stage.controller_for("pull", &proxy).await?;
        Ok(Self {
            stage,
            proxy,
            controller,
        })
    }

    /// Stops the controller, changes something, and starts another. The requests of that one are recorded from its start.
    async fn without(self, meanwhile: impl AsyncFnOnce(&Stage) -> Result<()>) -> Result<Self> {
        self.controller.stop().await?;
        meanwhile(&self.stage).await?;
        let proxy = self.stage.proxy().await?;
        let controller = self.stage.controller_for("pull", &proxy).await?;
        Ok(Self {
            proxy,
            controller,
            ..self
        })
    }

    /// Creates an Application that has no finalizer, and waits until it has a work.
    async fn application(&self, name: &str) -> Result<PulledApplication> {
        let object = object(name, &self.stage.cluster);
        let created = self.stage.hub.create_application(&object).await?;
        let uid = created["metadata"]["uid"].as_str().context("a UID")?;
        let work = ObjectRef::manifest_work(&self.stage.cluster, &format!("{name}-{}", &uid[..5]));
        self.stage.hub.wait_for(&work, |_| true).await?;
        Ok(PulledApplication {
            application: ObjectRef::of(&created),
            work,
        })
    }

    /// Creates one that its cluster reports as healthy.
    async fn healthy(&self, name: &str) -> Result<PulledApplication> {
        let app = self.application(name).await?;
        self.report_health(&app, "Healthy").await?;
        self.until(&app, "Healthy").await?;
        Ok(app)
    }

    /// Writes the health of the Application as the cluster's agent does.
    async fn report_health(&self, app: &PulledApplication, health: &str) -> Result<()> {
        let work = self.stage.hub.read(&app.work).await?;
        self.write_status(app, json!([work_status(&work, &values(&work, health))]))
            .await
    }

    /// Writes this status of the work's manifests as the agent does.
    async fn write_status(&self, app: &PulledApplication, manifests: Value) -> Result<()> {
        let status = json!({"status": {"resourceStatus": {"manifests": manifests}}});
        self.stage.hub.patch_status(&app.work, &status).await.map(drop)
    }

    async fn until(&self, app: &PulledApplication, health: &str) -> Result<Value> {
        let has = |it: &Value| it["status"]["health"]["status"] == health;
        self.stage.hub.wait_for(&app.application, has).await
    }
}

/// Returns an Application without a finalizer, for this cluster.
fn object(name: &str, cluster: &str) -> Value {
    ObjectRef::cluster("argoproj.io/v1alpha1", "Application", name).with(json!({
        "metadata": {"labels": {PULL: "true"}, "annotations": {CLUSTER: cluster, SKIP_RECONCILE: "true"}},
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "source": {"repoURL": "https://example.com/git", "path": "."},
        },
    }))
}

/// An Application and its work.
struct PulledApplication {
    application: ObjectRef,
    work: ObjectRef,
}

/// Returns the feedback of an Application with this health, and with the payload annotation in the work.
fn values(work: &Value, health: &str) -> Value {
    let text = |name: &str, text: &Value| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
    let payload = &work["spec"]["workload"]["manifests"][0]["metadata"]["annotations"][PAYLOAD];
    json!([
        text("healthStatus", &json!(health)),
        text("syncStatus", &json!("Synced")),
        text("payload", payload),
    ])
}

/// Returns an agent's status of the Application in a work, with these feedback values.
fn work_status(work: &Value, values: &Value) -> Value {
    let payload = &work["spec"]["workload"]["manifests"][0]["metadata"];
    let condition = |kind: &str| new_condition(kind, "True", "", &work["metadata"]["generation"]);
    json!({
        "resourceMeta": {
            "ordinal": 0, "group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
            "resource": "applications", "namespace": payload["namespace"], "name": payload["name"],
        },
        "conditions": [condition("Applied"), condition("Available")],
        "statusFeedback": {"values": values},
    })
}

/// Returns true if a request reads an Application, which precedes the deletion of the work of a deleted one.
fn reads_application(request: &RecordedRequest) -> bool {
    request.is("get", "applications")
}

#[tokio::test]
async fn no_status_is_lost_to_conflicts_or_concurrent_writers() -> Result<()> {
    let pull_hub = PullHub::start("pull-conflicts").await?;
    let app = pull_hub.healthy("shop").await?;
    let is_of_it =
        |request: &RecordedRequest| request.is("patch", "applications") && request.name.as_deref() == Some("shop");
    pull_hub.proxy.fault(Fault::Status(409), Times::Next(2), is_of_it);
    let mark = pull_hub.proxy.mark();
    pull_hub.report_health(&app, "Degraded").await?;
    pull_hub.until(&app, "Degraded").await?;
    // The watch event may arrive before the answer.
    let answers = |requests: &[RecordedRequest]| -> Vec<_> {
        let write_status = writes_of(&requests[mark..], &app.application);
        write_status.iter().filter_map(|request| request.answer).collect()
    };
    let all = |requests: &[RecordedRequest]| answers(requests) == [409, 409, 200];
    pull_hub
        .proxy
        .until("the write succeeds after two conflicts", all)
        .await?;

    // Another writer changes the Application while its cluster changes its status repeatedly.
    for round in 0..10 {
        let label = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let health = if round % 2 == 0 { "Progressing" } else { "Suspended" };
        tokio::try_join!(
            pull_hub.stage.hub.patch(&app.application, &label),
            pull_hub.report_health(&app, health)
        )?;
    }
    // A label is part of the content that the work carries; the last status is about that content.
    let is_carried = |work: &Value| work["spec"]["workload"]["manifests"][0]["metadata"]["labels"]["round"] == "9";
    pull_hub.stage.hub.wait_for(&app.work, is_carried).await?;
    pull_hub.report_health(&app, "Missing").await?;
    let now = pull_hub.until(&app, "Missing").await?;
    assert_eq!(now["metadata"]["labels"]["round"], "9");
    assert_eq!(now["status"]["sync"]["status"], "Synced");
    Ok(())
}

#[tokio::test]
async fn orphaned_work_is_deleted_only_when_certain_without_a_list() -> Result<()> {
    let pull_hub = PullHub::start("pull-orphans").await?;
    let gone = pull_hub.healthy("gone").await?;
    let later = pull_hub.healthy("later").await?;
    let stays = pull_hub.healthy("stays").await?;

    // Without a controller: the next one detects it, and reads once more before it deletes.
    let pull_hub = pull_hub
        .without(async |stage| {
            stage.hub.delete(&gone.application).await?;
            stage.hub.wait_gone(&gone.application).await
        })
        .await?;
    let hub = &pull_hub.stage.hub;
    hub.wait_gone(&gone.work).await?;
    let requests = pull_hub.proxy.requests();
    let listed = lists(&requests);
    let [applications, works] = ["applications", "manifestworks"].map(|kind| {
        let of_it = listed.iter().filter(|line| line.contains(kind));
        of_it.count()
    });
    assert_eq!([applications, works], [1, 1], "{listed:#?}");
    assert_eq!(requests.iter().filter(|request| reads_application(request)).count(), 1);

    // With a controller, and an API server that does not answer if it is deleted.
    pull_hub
        .proxy
        .fault(Fault::Status(500), Times::Always, reads_application);
    let mark = pull_hub.proxy.mark();
    hub.delete(&later.application).await?;
    let several_reads = |requests: &[RecordedRequest]| {
        requests[mark..]
            .iter()
            .filter(|request| reads_application(request))
            .count()
            >= RETRIES
    };
    pull_hub
        .proxy
        .until("the Application is read several times", several_reads)
        .await?;
    let requests = pull_hub.proxy.requests();
    backs_off(requests[mark..].iter().filter(|request| reads_application(request)))?;
    assert_eq!(
        writes(&requests[mark..]),
        [""; 0],
        "nothing is deleted without certainty"
    );
    let live = hub.read(&later.work).await?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "the work is being deleted"
    );
    pull_hub.proxy.heal();
    hub.wait_gone(&later.work).await?;
    let requests = pull_hub.proxy.requests();
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    let deleted = requests.iter().filter(|request| request.is("delete", "manifestworks"));
    assert_eq!(deleted.count(), 2, "{:#?}", writes(&requests));

    pull_hub.report_health(&stays, "Degraded").await?;
    pull_hub.until(&stays, "Degraded").await.map(drop)
}
