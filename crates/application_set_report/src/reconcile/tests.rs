//! Tests of the report with Applications of an ApplicationSet on a simulated hub that stores what is written to the report.

use super::*;
use hub_state::cache::Change;
use hub_state::cache::Update;
use hub_state::model::{Availability, Kind, Work};
use hub_state::reconcile::{Settings, mappers};
use hub_state::testing::{
    AgentReport, BROKEN, REFUSED, WELL, cluster, deleted, listed, now, of_set, read_work, set, set_of, stored, tracked,
    work, work_of, work_with_application,
};
use runtime::action::Verb;
use serde_json::{Value, json};
use testing::merge;

/// A simulated hub with the ApplicationSet `argocd/shop`, which stores the report.
struct Hub {
    cache: Cache,
    report: Value,
}

fn shop() -> ObjectRef {
    ObjectRef::new("argocd", "shop")
}

impl Hub {
    fn new() -> Self {
        let mut hub = Self {
            cache: Cache::new("argocd").with_mappers(mappers([&CONTROLLER])).with_reports(),
            report: Value::Null,
        };
        hub.set("u");
        hub.apply(listed(Kind::Reports, &[]));
        hub
    }

    /// Applies a change, and returns the ApplicationSets to reconcile.
    fn apply(&mut self, change: Change) -> Vec<String> {
        let affected = self.cache.apply(change).into_iter();
        let sets = affected.filter(|request| request.kind == Kind::ApplicationSets);
        sets.map(|request| request.object_ref.to_string()).collect()
    }

    /// Writes the ApplicationSet.
    fn set(&mut self, uid: &str) {
        let metadata = json!({"namespace": "argocd", "name": "shop", "uid": uid});
        self.apply(stored(Kind::ApplicationSets, &json!({"metadata": metadata})));
    }

    /// Adds an Application of the set, with additional fields.
    fn application(&mut self, name: &str, more: &Value) -> Vec<String> {
        let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop"});
        let mut application = json!({
            "metadata": {"namespace": "argocd", "name": name, "uid": "a", "ownerReferences": [owner]},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"sync": {"status": "Synced", "revision": "abc"}, "health": {"status": "Missing"}},
        });
        merge(&mut application, more);
        self.apply(stored(Kind::Applications, &application))
    }

    /// Adds a ManifestWork of the Application `shop`.
    fn work(&mut self, object: &str, report: &AgentReport<'_>) -> Vec<String> {
        self.apply(work_of("shop", object, report))
    }

    fn reconcile(&self) -> Option<Write> {
        let settings = Settings::default();
        let context = hub_state::testing::context(now(), &settings);
        let action = reconcile(&self.cache, &shop(), &context)?;
        let [write] = action.writes.try_into().expect("one write");
        Some(write)
    }

    /// Reconciles until nothing is left to write, and returns the entries of the Applications in the report.
    fn reported(&mut self) -> Vec<Value> {
        let mut writes = 0;
        while let Some(write) = self.reconcile() {
            match write.verb {
                Verb::Create(object) => self.report = object,
                Verb::Patch(body) => merge(&mut self.report, &body),
                Verb::JsonPatch(_) | Verb::Delete { .. } => panic!("nothing is ever deleted"),
            }
            self.see();
            writes += 1;
            assert_eq!(writes, 1, "once is enough");
        }
        let entries = self.report["statuses"]["clusterConditions"].as_array();
        entries.cloned().unwrap_or_default()
    }

    /// Sends a watch event with the current report.
    fn see(&mut self) {
        self.apply(stored(Kind::Reports, &self.report.clone()));
    }

    fn summary(&self) -> [&str; 6] {
        let summary = &self.report["statuses"]["summary"];
        let keys = ["clusters", "synced", "notSynced", "healthy", "notHealthy", "inProgress"];
        keys.map(|key| summary[key].as_str().expect("a number"))
    }
}

fn condition(kind: &str, message: &str) -> Value {
    json!({"type": kind, "message": message})
}

#[test]
fn reports_health_of_delivered_works_per_cluster() {
    let mut hub = Hub::new();
    hub.application(
        "shop",
        &json!({"status": {
            "operationState": {"phase": "Succeeded", "startedAt": "2026-06-01T12:00:00Z"},
            "conditions": [
                {"type": "SharedResourceWarning", "message": "shared"},
                {"type": "ManifestWorkDegradedWarning", "message": "eu2: ..."},
                {"type": "SomeInfo", "message": "note"},
            ],
        }}),
    );
    hub.work("eu1/shop", &WELL);
    hub.work("eu2/shop", &WELL);
    hub.work("eu2/shop.part-1", &BROKEN);
    hub.work("eu2/shop.part-2", &REFUSED);
    let entry = |cluster: &str, health: &str, conditions: &[Value]| {
        json!({
            "app": "argocd/shop",
            "cluster": cluster,
            "healthStatus": health,
            "syncStatus": "Synced",
            "syncRevision": "abc",
            "operationStatePhase": "Succeeded",
            "operationStateStartedAt": "2026-06-01T12:00:00Z",
            "conditions": conditions,
        })
    };
    let shared = condition("SharedResourceWarning", "shared");
    let broken = condition("ManifestWorkDegradedWarning", "Deployment shop/web: no image");
    let refused = condition("ManifestWorkApplyError", "Deployment.apps shop/web: forbidden");
    let desired = [
        entry("eu1", "Healthy", std::slice::from_ref(&shared)),
        entry("eu2", "Degraded", &[broken, refused, shared]),
    ];
    assert_eq!(hub.reported(), desired);
    assert_eq!(hub.summary(), ["2", "2", "0", "1", "1", "0"]);
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
    assert_eq!(hub.report["statuses"]["resources"], json!([web]), "once");
}

#[test]
fn reports_health_of_placement_works_per_cluster() {
    let mut hub = Hub::new();
    hub.application("shop", &json!({}));
    let set_name = set_of("shop");
    let object_ref = ObjectRef::new("fleet", &set_name);
    hub.apply(set(&object_ref, "shop"));
    assert_eq!(hub.reported()[0]["cluster"], Value::Null, "it is on none yet");
    assert_eq!(hub.summary(), ["0"; 6]);
    for name in ["eu1", "eu2"] {
        let made = work(
            &ObjectRef::new(name, &set_name),
            &of_set(&format!("fleet.{set_name}")),
            &WELL,
        );
        assert_eq!(hub.apply(made), ["argocd/shop"]);
    }
    let clusters: Vec<_> = hub.reported().iter().map(|entry| entry["cluster"].clone()).collect();
    assert_eq!(clusters, ["eu1", "eu2"]);
}

#[test]
fn reports_status_of_applications_that_others_deliver() {
    let mut hub = Hub::new();
    let status = json!({
        "sync": {"status": "OutOfSync"},
        "health": {"status": "Progressing"},
        "resources": [{"version": "v1", "kind": "Service", "namespace": "shop", "name": "web"}],
        "conditions": [{"type": "ComparisonError", "message": "no such path"}],
    });
    hub.application(
        "by-agent",
        &json!({"spec": {"destination": {"name": "eu1"}}, "status": status}),
    );
    hub.application("by-pull", &pulled());
    hub.application("nowhere", &json!({"status": null}));
    let desired = [
        json!({"app": "argocd/nowhere", "healthStatus": "Unknown", "syncStatus": "Unknown"}),
        json!({
            "app": "argocd/by-agent",
            "cluster": "eu1",
            "healthStatus": "Progressing",
            "syncStatus": "OutOfSync",
            "syncRevision": "abc",
            "conditions": [condition("ComparisonError", "no such path")],
        }),
        json!({
            "app": "argocd/by-pull",
            "cluster": "eu2",
            "healthStatus": "Missing",
            "syncStatus": "Synced",
            "syncRevision": "abc",
        }),
    ];
    assert_eq!(hub.reported(), desired);
    assert_eq!(hub.summary(), ["2", "1", "1", "0", "2", "1"]);
    let web = json!({"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web"});
    assert_eq!(hub.report["statuses"]["resources"], json!([web]));
}

fn pulled() -> Value {
    json!({"metadata": {
        "labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"},
        "annotations": {"apps.open-cluster-management.io/ocm-managed-cluster": "eu2"},
        "uid": "1a2b3c4d",
    }})
}

/// Returns a work that carries the Application `shop`, with this state reported by the agent.
fn pull_works(cluster: &str, report: &AgentReport<'_>) -> Change {
    let marks = r#""labels":{"apps.open-cluster-management.io/pull-to-ocm-managed-cluster":"true"},
        "annotations":{"apps.open-cluster-management.io/hub-application-namespace":"argocd",
        "apps.open-cluster-management.io/hub-application-name":"shop"}"#;
    let object_ref = ObjectRef::new(cluster, "shop-1a2b3");
    let mut carrier = read_work(&object_ref, marks, report).expect("a work");
    let shop = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}});
    let text = format!(
        r#"{{"kind":"ManifestWork","metadata":{{"namespace":"{cluster}","name":"shop-1a2b3",{marks}}},"spec":{{"workload":{{"manifests":[{shop}]}}}}}}"#
    );
    let read = Work::from_json(&text, now())
        .expect("a work")
        .expect("it is of the pull model");
    (carrier.pull_work, carrier.resources) = (read.pull_work, read.resources);
    Change::objects(Kind::Works, Update::Set(object_ref, carrier))
}

#[test]
fn names_the_work_that_carries_a_pulled_application() {
    let mut hub = Hub::new();
    hub.application("shop", &pulled());
    assert_eq!(hub.apply(pull_works("eu1", &WELL)), ["argocd/shop"]);
    assert_eq!(
        hub.reported()[0]["app"],
        "argocd/shop",
        "the one before it is elsewhere"
    );
    assert_eq!(hub.apply(pull_works("eu2", &WELL)), ["argocd/shop"]);
    assert_eq!(hub.reported()[0]["app"], "argocd/shop/eu2/shop-1a2b3");
    assert_eq!(
        hub.report["statuses"]["resources"],
        Value::Null,
        "the Application is not what it deploys"
    );
    let broken = hub.apply(pull_works("eu2", &BROKEN));
    assert_eq!(broken, [""; 0], "which the Application will say");
    assert_eq!(hub.apply(deleted(Kind::Works, "eu2/shop-1a2b3")), ["argocd/shop"]);
    assert_eq!(hub.reported()[0]["app"], "argocd/shop");
}

#[test]
fn reports_a_work_that_contains_an_application_among_others() {
    let mut hub = Hub::new();
    hub.application("shop", &json!({}));
    let work = |report| work_with_application("shop", "eu1/shop", report);
    assert_eq!(hub.apply(work(&WELL)), ["argocd/shop"]);
    assert_eq!(hub.apply(work(&BROKEN)), ["argocd/shop"]);
}

#[test]
fn does_not_repeat_cluster_conditions_of_the_application() {
    let mut hub = Hub::new();
    let mut application = pulled();
    let unreachable = condition("ManagedClusterUnreachableWarning", "since noon");
    let refused = condition("ManifestWorkApplyError", "forbidden");
    application["status"]["conditions"] = json!([unreachable, refused]);
    hub.application("shop", &application);
    hub.apply(cluster("eu2", Availability::Unknown));
    assert_eq!(hub.reported()[0]["conditions"], json!([unreachable, refused]));
}

#[test]
fn application_in_a_cluster_namespace_counts_for_that_cluster() {
    let mut hub = Hub::new();
    let is_here = hub.apply(cluster("argocd", Availability::Available));
    assert_eq!(is_here, [""; 0], "no ApplicationSet is affected");
    hub.application("shop", &json!({}));
    assert_eq!(hub.reported()[0]["cluster"], "argocd");
    assert_eq!(hub.apply(deleted(Kind::Clusters, "argocd")), ["argocd/shop"]);
    assert_eq!(hub.reported()[0]["cluster"], Value::Null);
}

#[test]
fn marks_unreachable_clusters_for_every_delivery() {
    let mut hub = Hub::new();
    hub.application("by-agent", &json!({"spec": {"destination": {"name": "eu1"}}}));
    hub.application("shop", &json!({}));
    hub.work("eu2/shop", &WELL);
    for name in ["eu1", "eu2"] {
        let affected = hub.apply(cluster(name, Availability::Unknown));
        assert_eq!(affected, ["argocd/shop"], "{name}");
        assert_eq!(
            hub.apply(cluster(name, Availability::Unknown)),
            [""; 0],
            "which is known"
        );
    }
    let reported = hub.reported();
    assert_eq!(reported.len(), 2);
    for entry in reported {
        assert_eq!(
            entry["conditions"][0]["type"], "ManagedClusterUnreachableWarning",
            "{entry}"
        );
    }
}

#[test]
fn waiting_for_an_unreachable_cluster_is_not_overdue() {
    let mut hub = Hub::new();
    hub.application("shop", &json!({}));
    let object_ref = ObjectRef::new("eu1", "shop");
    let marks = tracked("shop", &object_ref) + r#","creationTimestamp":"2026-06-01T11:00:00Z""#;
    let waiting = AgentReport("Unknown", "True", "", "2026-06-01T11:00:00Z");
    hub.apply(work(&object_ref, &marks, &waiting));
    for (availability, kind) in [
        (Availability::Available, "ManifestWorkOverdueWarning"),
        (Availability::Unknown, "ManagedClusterUnreachableWarning"),
    ] {
        hub.apply(cluster("eu1", availability));
        let conditions = hub.reported()[0]["conditions"].clone();
        let kinds: Vec<_> = conditions
            .as_array()
            .into_iter()
            .flatten()
            .map(|condition| &condition["type"])
            .collect();
        assert_eq!(kinds, [kind]);
    }
}

#[test]
fn report_of_a_set_is_never_deleted() {
    let mut hub = Hub::new();
    assert_eq!(hub.reported(), [Value::Null; 0]);
    assert_eq!(hub.summary(), ["0"; 6], "a set without Applications");
    hub.application("shop", &json!({}));
    hub.work("eu1/shop", &WELL);
    assert_eq!(hub.reported().len(), 1);
    let written = hub.report.clone();
    hub.apply(deleted(Kind::Works, "eu1/shop"));
    assert_eq!(hub.reported()[0]["cluster"], Value::Null, "the last work is gone");
    hub.apply(listed(Kind::Applications, &[]));
    assert_eq!(hub.reported(), [Value::Null; 0], "the last Application is gone");
    assert_eq!(hub.summary(), ["0"; 6]);

    // The controller reverts changes by others; it waits for a report that is being deleted, and creates it anew.
    hub.report = written;
    hub.see();
    assert_eq!(hub.reported(), [Value::Null; 0]);
    hub.report["metadata"]["deletionTimestamp"] = "2026-06-01T12:00:00Z".into();
    hub.see();
    hub.application("shop", &json!({}));
    assert_eq!(hub.reconcile(), None);
    hub.apply(deleted(Kind::Reports, "argocd/shop"));
    assert_eq!(hub.reconcile().map(|write| write.verb.name()), Some("create"));

    // Kubernetes deletes the report with its set. A new set of the same name gets a new report.
    let metadata = json!({"namespace": "argocd", "name": "shop", "deletionTimestamp": "2026-06-01T12:00:00Z"});
    hub.apply(stored(Kind::ApplicationSets, &json!({"metadata": metadata})));
    assert_eq!(hub.reconcile(), None);
    hub.apply(listed(Kind::ApplicationSets, &[]));
    assert_eq!(hub.reconcile(), None);
    hub.report["metadata"]["deletionTimestamp"] = Value::Null;
    hub.see();
    hub.set("v");
    hub.reported();
    assert_eq!(hub.report["metadata"]["ownerReferences"][0]["uid"], "v");
    assert_eq!(
        hub.report["metadata"]["ownerReferences"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn writes_no_report_without_the_report_crd() {
    let mut hub = Hub::new();
    hub.cache = Cache::new("argocd").with_mappers(mappers([&CONTROLLER])).with_reports();
    hub.set("u");
    hub.application("shop", &json!({}));
    assert_eq!(hub.reconcile(), None);
    let affected = hub.apply(listed(Kind::Reports, &[]));
    assert_eq!(affected, ["argocd/shop"], "now it has them");
    assert!(hub.reconcile().is_some());
}

#[test]
fn enqueues_the_set_only_for_changes_to_its_report() {
    let mut hub = Hub::new();
    assert_eq!(hub.application("shop", &json!({})), ["argocd/shop"]);
    assert_eq!(hub.application("shop", &json!({})), [""; 0], "which is known");
    let note = json!({"metadata": {"annotations": {"note": "x"}, "resourceVersion": "8"}});
    assert_eq!(hub.application("shop", &note), [""; 0]);
    let health = json!({"status": {"health": {"status": "Healthy"}}});
    assert_eq!(hub.application("shop", &health), ["argocd/shop"]);
    let warned = json!({"status": {"health": {"status": "Healthy"}, "conditions": [condition("SyncError", "no")]}});
    assert_eq!(hub.application("shop", &warned), ["argocd/shop"]);

    assert_eq!(hub.work("eu1/shop", &WELL), ["argocd/shop"]);
    assert_eq!(hub.work("eu1/shop", &WELL), [""; 0]);
    assert_eq!(
        hub.apply(work_of("other", "eu1/other", &WELL)),
        [""; 0],
        "it is of no set"
    );
    let object_ref = ObjectRef::new("eu1", "shop");
    let mut more = read_work(&object_ref, &tracked("shop", &object_ref), &WELL).expect("a work");
    more.resources = [more.resources[0].clone(), more.resources[0].clone()].into();
    let more = hub.apply(Change::objects(Kind::Works, Update::Set(object_ref, more)));
    assert_eq!(more, ["argocd/shop"], "it consists of something else");

    let owner = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "cart"}]);
    let moved = json!({"metadata": {"ownerReferences": owner}});
    assert_eq!(hub.application("shop", &moved), ["argocd/cart", "argocd/shop"]);
    assert_eq!(hub.reported(), [Value::Null; 0]);
    let left = json!({"metadata": {"ownerReferences": null}});
    assert_eq!(hub.application("shop", &left), ["argocd/cart"]);
}

#[test]
fn keeps_no_report_data_when_reports_are_disabled() {
    let mut hub = Hub::new();
    hub.cache = Cache::new("argocd").with_mappers(mappers([&CONTROLLER]));
    assert_eq!(hub.application("shop", &json!({})), [""; 0]);
    hub.work("eu1/shop", &WELL);
    let application = ObjectRef::new("argocd", "shop");
    let entry = hub.cache.application(&application).expect("it is there");
    assert_eq!(entry.generated, None);
    assert!(
        hub.cache
            .works_of(&application)
            .all(|(_, _, work)| work.resources.is_empty())
    );
}
