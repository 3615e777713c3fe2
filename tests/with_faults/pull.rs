//! Tests of the basic pull model with an API server that denies and fails, and with unusual statuses of agents: no status of a
//! cluster is lost, none is invented, and no work is deleted in doubt.

use crate::stage::{Replica, Stage, TRIES, backs_off, lists, messages, stage, writes, writes_of};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::proxy::{Fault, Proxy, Seen, Times};
use testbed::{ObjectRef, wait};

const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";
const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
const WRITE_ERROR: &str = "ManifestWorkWriteError";
const PAYLOAD: &str = "argocd-ocm-cmp.github.io/payload";

/// A hub with the controller of the pull model, behind a proxy.
struct Pulling {
    stage: Stage,
    proxy: Proxy,
    controller: Replica,
}

impl Pulling {
    async fn start(cluster: &str) -> Result<Option<Self>> {
        let Some(stage) = stage(cluster).await? else {
            return Ok(None);
        };
        let proxy = stage.proxy().await?;
        let controller = stage.controller_for("pull", &proxy).await?;
        Ok(Some(Self {
            stage,
            proxy,
            controller,
        }))
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
    async fn application(&self, name: &str) -> Result<Pulled> {
        let object = object(name, &self.stage.cluster);
        let created = self.stage.hub.create_application(&object).await?;
        let uid = created["metadata"]["uid"].as_str().context("a UID")?;
        let work = ObjectRef::manifest_work(&self.stage.cluster, &format!("{name}-{}", &uid[..5]));
        self.stage.hub.wait_for(&work, |_| true).await?;
        Ok(Pulled {
            application: ObjectRef::of(&created),
            work,
        })
    }

    /// Creates one that its cluster reports as healthy.
    async fn healthy(&self, name: &str) -> Result<Pulled> {
        let app = self.application(name).await?;
        self.says(&app, "Healthy").await?;
        self.until(&app, "Healthy").await?;
        Ok(app)
    }

    /// Writes the health of the Application as the cluster's agent does.
    async fn says(&self, app: &Pulled, health: &str) -> Result<()> {
        let work = self.stage.hub.get(&app.work).await?.context("a work")?;
        self.writes(app, json!([told_of(&work, &values(&work, health))])).await
    }

    /// Writes this status of the work's manifests as the agent does.
    async fn writes(&self, app: &Pulled, manifests: Value) -> Result<()> {
        let status = json!({"status": {"resourceStatus": {"manifests": manifests}}});
        self.stage.hub.patch_status(&app.work, &status).await.map(drop)
    }

    async fn until(&self, app: &Pulled, health: &str) -> Result<Value> {
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
struct Pulled {
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
fn told_of(work: &Value, values: &Value) -> Value {
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
fn asks(seen: &Seen) -> bool {
    seen.is("get", "applications")
}

#[tokio::test]
async fn no_status_is_lost_to_conflicts_or_concurrent_writers() -> Result<()> {
    let Some(pulling) = Pulling::start("pull-conflicts").await? else {
        return Ok(());
    };
    let app = pulling.healthy("shop").await?;
    let is_of_it = |seen: &Seen| seen.is("patch", "applications") && seen.name.as_deref() == Some("shop");
    pulling.proxy.fault(Fault::Status(409), Times::Next(2), is_of_it);
    let mark = pulling.proxy.mark();
    pulling.says(&app, "Degraded").await?;
    pulling.until(&app, "Degraded").await?;
    // The watch event may arrive before the answer.
    let answers = |requests: &[Seen]| -> Vec<_> {
        let writes = writes_of(&requests[mark..], &app.application);
        writes.iter().filter_map(|seen| seen.answer).collect()
    };
    let all = |requests: &[Seen]| answers(requests) == [409, 409, 200];
    pulling.proxy.until("it is refused twice and then written", all).await?;

    // Another writer changes the Application while its cluster changes its status repeatedly.
    for round in 0..10 {
        let label = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let health = if round % 2 == 0 { "Progressing" } else { "Suspended" };
        tokio::try_join!(
            pulling.stage.hub.patch(&app.application, &label),
            pulling.says(&app, health)
        )?;
    }
    // A label is part of the content that the work carries; the last status is about that content.
    let is_carried = |work: &Value| work["spec"]["workload"]["manifests"][0]["metadata"]["labels"]["round"] == "9";
    pulling.stage.hub.wait_for(&app.work, is_carried).await?;
    pulling.says(&app, "Missing").await?;
    let now = pulling.until(&app, "Missing").await?;
    assert_eq!(now["metadata"]["labels"]["round"], "9");
    assert_eq!(now["status"]["sync"]["status"], "Synced");
    Ok(())
}

#[tokio::test]
async fn malformed_feedback_stops_nothing_and_reports_nothing_false() -> Result<()> {
    let Some(pulling) = Pulling::start("pull-odd").await? else {
        return Ok(());
    };
    let hub = pulling.stage.hub;
    let (numbers, empty, reordered) = tokio::try_join!(
        pulling.healthy("numbers"),
        pulling.healthy("empty"),
        pulling.healthy("reordered")
    )?;

    let work = hub.get(&numbers.work).await?.context("a work")?;
    let odd = json!([
        {"name": "healthStatus", "fieldValue": {"type": "Integer", "integer": 5}},
        {"name": "syncStatus", "fieldValue": {"type": "Boolean", "boolean": true}},
        {"name": "operationStatePhase", "fieldValue": {"type": "JsonRaw", "jsonRaw": "{\"phase\": 1}"}},
        {"name": "syncRevision", "fieldValue": {"type": "String"}},
    ]);
    pulling.writes(&numbers, json!([told_of(&work, &odd)])).await?;
    pulling.writes(&empty, json!([])).await?;

    // The status of another object first, and of another Application, is not used for this one.
    let work = hub.get(&reordered.work).await?.context("a work")?;
    let mut namespace = told_of(&work, &values(&work, "Healthy"));
    namespace["resourceMeta"] =
        json!({"ordinal": 0, "group": "", "version": "v1", "kind": "Namespace", "resource": "namespaces", "name": "x"});
    let mut other = told_of(&work, &values(&work, "Missing"));
    other["resourceMeta"]["name"] = json!("other");
    let own = told_of(&work, &values(&work, "Degraded"));
    pulling.writes(&reordered, json!([namespace, other, own])).await?;
    pulling.until(&reordered, "Degraded").await?;

    let waits = pulling.until(&empty, "Progressing").await?;
    let message = waits["status"]["health"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        message,
        "waiting for pull-odd: its agent has not applied the Application"
    );
    // If it cannot be parsed, the last known status stays.
    let kept = pulling.until(&numbers, "Healthy").await?;
    assert!(kept["status"]["operationState"].is_null(), "{kept:#}");
    // All are served as before.
    for app in [&numbers, &empty, &reordered] {
        pulling.says(app, "Suspended").await?;
        pulling.until(app, "Suspended").await?;
    }
    let now = hub.get(&numbers.application).await?.context("it is there")?;
    assert_eq!(messages(&now, "ManifestWorkError"), [""; 0]);
    Ok(())
}

#[tokio::test]
async fn orphaned_work_is_deleted_only_when_certain_without_a_list() -> Result<()> {
    let Some(pulling) = Pulling::start("pull-orphans").await? else {
        return Ok(());
    };
    let gone = pulling.healthy("gone").await?;
    let later = pulling.healthy("later").await?;
    let stays = pulling.healthy("stays").await?;

    // Without a controller: the next one detects it, and reads once more before it deletes.
    let pulling = pulling
        .without(async |stage| {
            stage.hub.delete(&gone.application).await?;
            stage.hub.wait_gone(&gone.application).await
        })
        .await?;
    let hub = pulling.stage.hub;
    hub.wait_gone(&gone.work).await?;
    let requests = pulling.proxy.requests();
    let listed = lists(&requests);
    let [applications, works] = ["applications", "manifestworks"].map(|kind| {
        let of_it = listed.iter().filter(|line| line.contains(kind));
        of_it.count()
    });
    assert_eq!([applications, works], [1, 1], "{listed:#?}");
    assert_eq!(requests.iter().filter(|seen| asks(seen)).count(), 1);

    // With a controller, and an API server that does not answer if it is deleted.
    pulling.proxy.fault(Fault::Status(500), Times::Always, asks);
    let mark = pulling.proxy.mark();
    hub.delete(&later.application).await?;
    let asked = |requests: &[Seen]| requests[mark..].iter().filter(|seen| asks(seen)).count() >= TRIES;
    pulling.proxy.until("it asks several times", asked).await?;
    let requests = pulling.proxy.requests();
    backs_off(requests[mark..].iter().filter(|seen| asks(seen)))?;
    assert_eq!(writes(&requests[mark..]), [""; 0], "nothing goes on doubt");
    let there = hub.get(&later.work).await?.context("the work stays")?;
    ensure!(there["metadata"]["deletionTimestamp"].is_null(), "the work is going");
    pulling.proxy.heal();
    hub.wait_gone(&later.work).await?;
    let requests = pulling.proxy.requests();
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    let deleted = requests.iter().filter(|seen| seen.is("delete", "manifestworks"));
    assert_eq!(deleted.count(), 2, "{:#?}", writes(&requests));

    pulling.says(&stays, "Degraded").await?;
    pulling.until(&stays, "Degraded").await.map(drop)
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
    let Some(pulling) = Pulling::start("pull-refused").await? else {
        return Ok(());
    };
    let hub = pulling.stage.hub;
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

    let created = hub.create_application(&object("shop", &pulling.stage.cluster)).await?;
    let application = ObjectRef::of(&created);
    let uid = created["metadata"]["uid"].as_str().context("a UID")?;
    let work = ObjectRef::manifest_work("pull-refused", &format!("shop-{}", &uid[..5]));
    let message = "no works for this cluster";
    let now = pulling.stage.until_told(&application, WRITE_ERROR, message).await?;
    let [condition] = messages(&now, WRITE_ERROR)[..] else {
        panic!("not one condition: {now:#}");
    };
    assert!(
        condition.starts_with(&format!("ManifestWork pull-refused/{} cannot be created: ", work.name)),
        "{condition}"
    );
    // There is one Event, for any number of retries.
    let tries = |requests: &[Seen]| {
        requests
            .iter()
            .filter(|seen| seen.is("create", "manifestworks"))
            .count()
            >= 4
    };
    pulling.proxy.until("it is tried several times", tries).await?;
    let events = hub.list("v1", "Event").await?;
    let told_of: Vec<_> = events
        .iter()
        .filter(|event| event["involvedObject"]["name"] == "shop" && event["reason"] == "WriteRefused")
        .map(|event| (&event["type"], &event["message"], &event["count"]))
        .collect();
    assert_eq!(told_of, [(&json!("Warning"), &json!(condition), &json!(1))]);
    let warnings = r#"argocd_ocm_cmp_warnings_total{controller="pull",reason="WriteRefused"}"#;
    assert_eq!(pulling.controller.metric(warnings).await?, 1);

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
    let Some(pulling) = Pulling::start("local-cluster").await? else {
        return Ok(());
    };
    let hub = pulling.stage.hub;
    let created = hub.create_application(&object("shop", "local-cluster")).await?;
    let application = ObjectRef::of(&created);
    let message = "ManagedCluster local-cluster is the hub itself";
    pulling
        .stage
        .until_told(&application, "ManifestWorkError", message)
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
    wait::eventually("there is an Event", wait::DEADLINE, noted).await
}
