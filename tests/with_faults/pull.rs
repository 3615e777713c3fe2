//! Tests of the basic pull model with denied and failed requests, and with unusual statuses of agents: no status of a cluster is
//! lost or invented, and a work is deleted only when its Application is certainly gone.

use crate::stage::{RETRIES, Replica, Stage, backs_off, lists, messages, stage, writes, writes_of};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::proxy::{Fault, Proxy, RecordedRequest, Times};
use testbed::{ObjectRef, wait};

const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";
const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
const WRITE_ERROR: &str = "ManifestWorkWriteError";
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
        let work = self.stage.hub.get(&app.work).await?.context("a work")?;
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
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "labels": {PULL: "true"},
            "annotations": {CLUSTER: cluster, SKIP_RECONCILE: "true"},
        },
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "source": {"repoURL": "https://example.com/git", "path": "."},
        },
    })
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
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "AsItShouldBe", "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z", "observedGeneration": work["metadata"]["generation"],
        })
    };
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
async fn malformed_feedback_stops_nothing_and_reports_nothing_false() -> Result<()> {
    let pull_hub = PullHub::start("pull-odd").await?;
    let hub = pull_hub.stage.hub;
    let (numbers, empty, reordered) = tokio::try_join!(
        pull_hub.healthy("numbers"),
        pull_hub.healthy("empty"),
        pull_hub.healthy("reordered")
    )?;

    let work = hub.get(&numbers.work).await?.context("a work")?;
    let unusual = json!([
        {"name": "healthStatus", "fieldValue": {"type": "Integer", "integer": 5}},
        {"name": "syncStatus", "fieldValue": {"type": "Boolean", "boolean": true}},
        {"name": "operationStatePhase", "fieldValue": {"type": "JsonRaw", "jsonRaw": "{\"phase\": 1}"}},
        {"name": "syncRevision", "fieldValue": {"type": "String"}},
    ]);
    pull_hub
        .write_status(&numbers, json!([work_status(&work, &unusual)]))
        .await?;
    pull_hub.write_status(&empty, json!([])).await?;

    // The statuses of another object and of another Application are ignored.
    let work = hub.get(&reordered.work).await?.context("a work")?;
    let mut namespace = work_status(&work, &values(&work, "Healthy"));
    namespace["resourceMeta"] =
        json!({"ordinal": 0, "group": "", "version": "v1", "kind": "Namespace", "resource": "namespaces", "name": "x"});
    let mut other = work_status(&work, &values(&work, "Missing"));
    other["resourceMeta"]["name"] = json!("other");
    let own = work_status(&work, &values(&work, "Degraded"));
    pull_hub
        .write_status(&reordered, json!([namespace, other, own]))
        .await?;
    pull_hub.until(&reordered, "Degraded").await?;

    let waits = pull_hub.until(&empty, "Progressing").await?;
    let message = waits["status"]["health"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        message,
        "waiting for pull-odd: its agent has not applied the Application"
    );
    // The controller keeps the last known status of feedback that it cannot parse.
    let kept_status = pull_hub.until(&numbers, "Healthy").await?;
    assert!(kept_status["status"]["operationState"].is_null(), "{kept_status:#}");
    // The controller still serves every Application.
    for app in [&numbers, &empty, &reordered] {
        pull_hub.report_health(app, "Suspended").await?;
        pull_hub.until(app, "Suspended").await?;
    }
    let now = hub
        .get(&numbers.application)
        .await?
        .context("the object does not exist")?;
    assert_eq!(messages(&now, "ManifestWorkError"), [""; 0]);
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
    let hub = pull_hub.stage.hub;
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
    let live = hub.get(&later.work).await?.context("the work was deleted")?;
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

/// A policy that denies every ManifestWork with `example.com/denied` as the namespace of its content.
const DENY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: pull-refused
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [work.open-cluster-management.io]
      apiVersions: ['*']
      operations: [CREATE, UPDATE]
      resources: [manifestworks]
  validations:
  - expression: object.metadata.namespace != 'pull-refused'
    message: no works for this cluster
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: pull-refused
spec:
  policyName: pull-refused
  validationActions: [Deny]
";

#[tokio::test]
async fn refused_work_sets_a_condition_until_it_is_accepted() -> Result<()> {
    let pull_hub = PullHub::start("pull-refused").await?;
    let hub = pull_hub.stage.hub;
    hub.apply_yaml(DENY)?;
    let denied = async || {
        let probe = object("probe", "pull-refused-none");
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {"name": "probe", "namespace": "pull-refused"},
            "spec": {"workload": {"manifests": [probe]}},
        });
        let created = hub.create(&work).await;
        if created.is_ok() {
            let probe = ObjectRef::manifest_work("pull-refused", "probe");
            hub.delete(&probe).await.ok()?;
        }
        created.is_err().then_some(())
    };
    wait::eventually("works are denied", wait::DEADLINE, denied).await?;

    let created = hub.create_application(&object("shop", &pull_hub.stage.cluster)).await?;
    let application = ObjectRef::of(&created);
    let uid = created["metadata"]["uid"].as_str().context("a UID")?;
    let work = ObjectRef::manifest_work("pull-refused", &format!("shop-{}", &uid[..5]));
    let message = "no works for this cluster";
    let now = pull_hub
        .stage
        .wait_for_condition(&application, WRITE_ERROR, message)
        .await?;
    let [condition] = messages(&now, WRITE_ERROR)[..] else {
        panic!("not one condition: {now:#}");
    };
    assert!(
        condition.starts_with(&format!("ManifestWork pull-refused/{} cannot be created: ", work.name)),
        "{condition}"
    );
    // There is one Event, for any number of retries.
    let tries = |requests: &[RecordedRequest]| {
        requests
            .iter()
            .filter(|request| request.is("create", "manifestworks"))
            .count()
            >= 4
    };
    pull_hub
        .proxy
        .until("the write is retried several times", tries)
        .await?;
    let events = hub.list("v1", "Event").await?;
    let work_status: Vec<_> = events
        .iter()
        .filter(|event| event["involvedObject"]["name"] == "shop" && event["reason"] == "WriteRefused")
        .map(|event| (&event["type"], &event["message"], &event["count"]))
        .collect();
    assert_eq!(work_status, [(&json!("Warning"), &json!(condition), &json!(1))]);
    let warnings = r#"argocd_ocm_cmp_warnings_total{controller="pull",reason="WriteRefused"}"#;
    assert_eq!(pull_hub.controller.metric(warnings).await?, 1);

    hub.kubectl(&[
        "delete",
        "validatingadmissionpolicybinding,validatingadmissionpolicy",
        "pull-refused",
    ])?;
    hub.wait_for(&work, |_| true).await?;
    let is_well = |it: &Value| messages(it, WRITE_ERROR).is_empty();
    hub.wait_for(&application, is_well).await.map(drop)
}

#[tokio::test]
async fn refuses_to_deliver_an_application_to_the_hub() -> Result<()> {
    let pull_hub = PullHub::start("local-cluster").await?;
    let hub = pull_hub.stage.hub;
    let created = hub.create_application(&object("shop", "local-cluster")).await?;
    let application = ObjectRef::of(&created);
    let message = "ManagedCluster local-cluster may be the hub itself";
    pull_hub
        .stage
        .wait_for_condition(&application, "ManifestWorkError", message)
        .await?;
    assert_eq!(
        hub.list("work.open-cluster-management.io/v1", "ManifestWork").await?,
        [Value::Null; 0]
    );
    // The Event follows the condition.
    let noted = async || {
        let events = hub.list("v1", "Event").await.ok()?;
        let of_it =
            |event: &&Value| event["reason"] == "ManifestWorkRefused" && event["involvedObject"]["name"] == "shop";
        events.iter().find(of_it).map(drop)
    };
    wait::eventually("an Event is recorded", wait::DEADLINE, noted).await
}
