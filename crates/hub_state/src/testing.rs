//! Fixtures for tests of controllers: works, managed clusters, and certificates.

#![allow(clippy::arithmetic_side_effects, reason = "a test may panic")]

pub mod certificates;
pub mod pull;

use crate::cache::Change;
use crate::cache::Update;
use crate::model::{Availability, Cluster, Kind, Labels, Work};
use crate::reconcile::{Context, Settings};
use jiff::Timestamp;
use ocm::hold::Hold;
use ocm::names::WorkName;
use primitives::object_ref::ObjectRef;
use serde_json::Value;

/// The time at which the tests evaluate the health of works.
pub const NOW: &str = "2026-06-01T12:00:00Z";

/// Returns that time.
pub fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// Returns the context of a reconciliation at this time, by a replica that has been the leader for long.
pub fn context(now: Timestamp, settings: &Settings) -> Context<'_> {
    Context {
        now,
        stale: false,
        new_leader_for: None,
        settings,
    }
}

/// Returns the reference to an object from `NAMESPACE/NAME`, or from `NAME` alone.
pub fn at(text: &str) -> ObjectRef {
    ObjectRef::parse(text).unwrap_or_else(|| ObjectRef::new("", text))
}

fn change(kind: Kind, update: Update<ObjectRef, &str>) -> Change {
    kind.change(update, now()).expect("it can be read")
}

/// Returns the change that an object was created or changed.
pub fn stored(kind: Kind, object: &Value) -> Change {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let object_ref = ObjectRef::new(text("namespace"), text("name"));
    change(kind, Update::Set(object_ref, &object.to_string()))
}

/// Returns the change that an object was deleted.
pub fn deleted(kind: Kind, object: &str) -> Change {
    change(kind, Update::Deleted(at(object)))
}

/// Returns the change that these are all objects of a kind.
pub fn listed(kind: Kind, all: &[&str]) -> Change {
    change(kind, Update::Listed(all.iter().map(|object| at(object)).collect()))
}

/// A work with one Deployment and its status: the status of `Applied` and of `Healthy`, the message of the condition that is not
/// True, and the time of its last transition.
pub struct AgentReport<'f>(
    /// The status of `Applied`.
    pub &'static str,
    /// The status of `Healthy`.
    pub &'static str,
    /// The message.
    pub &'f str,
    /// The time.
    pub &'static str,
);

/// The report on a work that is well.
pub const WELL: AgentReport<'_> = AgentReport("True", "True", "", "2026-06-01T11:00:00Z");
/// The report on a work whose Deployment is broken.
pub const BROKEN: AgentReport<'_> = AgentReport("True", "False", "no image", "2026-06-01T11:00:00Z");
/// The report on a work that the agent may not apply.
pub const REFUSED: AgentReport<'_> = AgentReport("False", "True", "forbidden", "2026-06-01T11:00:00Z");

/// Returns the change for a work with these tracking marks and this report.
pub fn work(object_ref: &ObjectRef, marks: &str, report: &AgentReport<'_>) -> Change {
    let work = read_work(object_ref, marks, report);
    Change::objects(Kind::Works, Update::from_option(object_ref.clone(), work))
}

/// Returns the change for a work of an Application, from its namespace and name, with this report.
pub fn work_of(application: &str, object: &str, report: &AgentReport<'_>) -> Change {
    let object_ref = at(object);
    work(&object_ref, &tracked(application, &object_ref), report)
}

/// Returns the change for a work of an Application that contains another Application besides its Deployment, with this report.
pub fn work_with_application(application: &str, object: &str, report: &AgentReport<'_>) -> Change {
    let object_ref = at(object);
    let text = work_text(&object_ref, &tracked(application, &object_ref), report);
    let child =
        r#""manifests":[{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"child"}},"#;
    let text = text.replacen(r#""manifests":["#, child, 1);
    change(Kind::Works, Update::Set(object_ref, &text))
}

/// Returns the change for a work that contains no objects, and whose agent reports a Deployment nevertheless.
pub fn work_without_objects(object_ref: &ObjectRef, marks: &str, report: &AgentReport<'_>) -> Change {
    let text = work_text(object_ref, marks, report);
    let text = text.replacen(
        r#""manifests":[{"apiVersion":"apps/v1","kind":"Deployment""#,
        r#""others":[{"kind":"Deployment""#,
        1,
    );
    change(Kind::Works, Update::Set(object_ref.clone(), &text))
}

/// Reads a work.
pub fn read_work(object_ref: &ObjectRef, marks: &str, report: &AgentReport<'_>) -> Option<Work> {
    Work::from_json(&work_text(object_ref, marks, report), now()).expect("a work")
}

fn work_text(object_ref: &ObjectRef, marks: &str, report: &AgentReport<'_>) -> String {
    let ObjectRef { namespace, name } = object_ref;
    let AgentReport(applied, healthy, message, since) = report;
    let condition = |kind: &str, status: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","message":"{message}","reason":"ConditionRuleEvaluated","lastTransitionTime":"{since}","observedGeneration":1}}"#
        )
    };
    format!(
        r#"{{"kind":"ManifestWork","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,{marks}}},
        "spec":{{"workload":{{"manifests":[{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"shop"}}}}]}}}},
        "status":{{"conditions":[{}],"resourceStatus":{{"manifests":[{{"resourceMeta":{{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web"}},"conditions":[{},{},{}]}}]}}}}}}"#,
        condition("Applied", applied),
        condition("Applied", applied),
        condition("Available", "True"),
        condition("Healthy", healthy),
    )
}

/// Returns the tracking mark of an Application on a work.
pub fn tracked(application: &str, object_ref: &ObjectRef) -> String {
    format!(
        r#""annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWork:{object_ref}"}}"#
    )
}

/// Returns the mark of OCM on a work of a ManifestWorkReplicaSet.
pub fn of_set(set: &str) -> String {
    format!(r#""labels":{{"work.open-cluster-management.io/manifestworkreplicaset":"{set}"}}"#)
}

/// Returns the change for a ManifestWorkReplicaSet of an Application.
pub fn set(object_ref: &ObjectRef, application: &str) -> Change {
    set_with(object_ref, application, r#""spec":{}"#)
}

/// Returns the change for a ManifestWorkReplicaSet with these fields besides its metadata.
pub fn set_with(object_ref: &ObjectRef, application: &str, fields: &str) -> Change {
    let ObjectRef { namespace, name } = object_ref;
    let text = format!(
        r#"{{"kind":"ManifestWorkReplicaSet","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,
        "annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWorkReplicaSet:{object_ref}"}}}},{fields}}}"#
    );
    Change::objects(
        Kind::ReplicaSets,
        Update::from_option(object_ref.clone(), Work::from_json(&text, now()).expect("a set")),
    )
}

/// Returns the change for a ManagedCluster with this reachability.
pub fn cluster(name: &str, availability: Availability) -> Change {
    let cluster = Cluster {
        uid: name.into(),
        availability,
        selectable_since: (availability == Availability::Available).then_some(Timestamp::MIN),
        is_accepted: true,
        labels: Labels::default(),
        deleting: false,
    };
    Change::objects(Kind::Clusters, Update::Set(name.into(), cluster))
}

/// Returns the hold of a managed cluster.
pub fn hold(name: &str, until: Option<&str>) -> Change {
    let hold = Hold {
        cluster: name.to_owned(),
        until: until.map(str::to_owned),
        reason: Some("storage migration".to_owned()),
    };
    Change::objects(Kind::Holds, Update::Set(name.into(), hold))
}

/// Returns the name that Argo CD gives to the first work of an Application.
pub fn name_of(application: &str) -> String {
    let name: WorkName = application.parse().expect("an Application");
    name.to_string()
}

/// Returns the name of the ManifestWorkReplicaSet of an Application in the namespace `fleet`.
pub fn set_of(application: &str) -> String {
    let name: WorkName = application.parse().expect("an Application");
    name.set_part("", "fleet/eu", 60)
}
