//! Applications of an ApplicationSet on a hub where what is written of its report is there.

use super::*;
use crate::controller::index::tests::{
    BROKEN, Fares, REFUSED, WELL, cluster, now, of_set, set, set_of as set_name_of, tracked, work,
};
use crate::controller::index::{Change, Touched};
use crate::controller::promises::Settings;
use crate::controller::seen::{ApplicationSet, Reach, Work};
use crate::report::Found;
use crate::report::tests::merge;
use serde_json::{Value, json};
use std::collections::HashSet;

/// A hub with the ApplicationSet `argocd/shop`, and what is written of its report.
struct Hub {
    index: Index,
    report: Value,
}

fn shop() -> Place {
    Place::new("argocd", "shop")
}

impl Hub {
    fn new() -> Self {
        let mut hub = Self {
            index: Index::new("argocd").with_reports(),
            report: Value::Null,
        };
        hub.index.apply(Change::ApplicationSet(shop(), Some(set_of("u"))));
        hub.index.apply(Change::OnlyReports(HashSet::new()));
        hub
    }

    /// An Application of the set, with this of its own.
    fn application(&mut self, name: &str, more: &Value) -> Vec<Touched> {
        let place = Place::new("argocd", name);
        let mut object = application(more);
        (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!("argocd"), json!(name));
        let application = Application::read(&object.to_string()).expect("an Application");
        self.index.apply(Change::Application(place, Some(application)))
    }

    /// A work of an Application.
    fn work(&mut self, application: &str, cluster: &str, name: &str, fares: &Fares<'_>) -> Vec<Touched> {
        let place = Place::new(cluster, name);
        self.index.apply(work(&place, &tracked(application, &place), fares))
    }

    fn desired(&self) -> Option<Write> {
        let settings = Settings::default();
        let moment = Moment {
            now: now(),
            stale: false,
            settings: &settings,
        };
        let action = desired(&self.index, &shop(), &moment)?;
        let [write] = action.writes.try_into().expect("one write");
        Some(write)
    }

    /// Does what is to be done, as often as something is, and gives what the report says of Applications.
    fn told(&mut self) -> Vec<Value> {
        let mut writes = 0;
        while let Some(write) = self.desired() {
            match write {
                Write::Create { object, .. } => self.report = object,
                Write::Patch { body, .. } => merge(&mut self.report, &body),
                Write::Delete { .. } | Write::Make { .. } => panic!("nothing is ever deleted, or made"),
            }
            self.see();
            writes += 1;
            assert_eq!(writes, 1, "once is enough");
        }
        let entries = self.report["statuses"]["clusterConditions"].as_array();
        entries.cloned().unwrap_or_default()
    }

    /// Tells the report as it is.
    fn see(&mut self) {
        let found = Found::read(&self.report.to_string()).expect("a report");
        self.index.apply(Change::Report(shop(), Some(found)));
    }

    fn summary(&self) -> [&str; 6] {
        let summary = &self.report["statuses"]["summary"];
        let keys = ["clusters", "synced", "notSynced", "healthy", "notHealthy", "inProgress"];
        keys.map(|key| summary[key].as_str().expect("a number"))
    }
}

fn set_of(uid: &str) -> ApplicationSet {
    ApplicationSet {
        uid: uid.into(),
        deleting: false,
    }
}

fn application(more: &Value) -> Value {
    let owner = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop"});
    let mut application = json!({
        "metadata": {"uid": "a", "ownerReferences": [owner]},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
        "status": {"sync": {"status": "Synced", "revision": "abc"}, "health": {"status": "Missing"}},
    });
    merge(&mut application, more);
    application
}

/// The places of the ApplicationSets among what is touched.
fn sets(touched: &[Touched]) -> Vec<String> {
    let sets = touched.iter().filter(|it| it.sort == Sort::ApplicationSet);
    sets.map(|it| it.place.to_string()).collect()
}

fn condition(kind: &str, message: &str) -> Value {
    json!({"type": kind, "message": message})
}

#[test]
fn works_that_argo_cd_applies_fare_on_their_clusters() {
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
    hub.work("shop", "eu1", "shop", &WELL);
    hub.work("shop", "eu2", "shop", &WELL);
    hub.work("shop", "eu2", "shop.part-1", &BROKEN);
    hub.work("shop", "eu2", "shop.part-2", &REFUSED);
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
    let wanted = [
        entry("eu1", "Healthy", std::slice::from_ref(&shared)),
        entry("eu2", "Degraded", &[broken, refused, shared]),
    ];
    assert_eq!(hub.told(), wanted);
    assert_eq!(hub.summary(), ["2", "2", "0", "1", "1", "0"]);
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
    assert_eq!(hub.report["statuses"]["resources"], json!([web]), "once");
}

#[test]
fn works_of_a_placement_fare_on_its_clusters() {
    let mut hub = Hub::new();
    hub.application("shop", &json!({}));
    let set_name = set_name_of("shop");
    let place = Place::new("fleet", &set_name);
    hub.index.apply(set(&place, "shop"));
    assert_eq!(hub.told()[0]["cluster"], Value::Null, "it is on none yet");
    assert_eq!(hub.summary(), ["0"; 6]);
    for name in ["eu1", "eu2"] {
        let made = work(
            &Place::new(name, &set_name),
            &of_set(&format!("fleet.{set_name}")),
            &WELL,
        );
        assert_eq!(sets(&hub.index.apply(made)), ["argocd/shop"]);
    }
    let clusters: Vec<_> = hub.told().iter().map(|entry| entry["cluster"].clone()).collect();
    assert_eq!(clusters, ["eu1", "eu2"]);
}

#[test]
fn what_others_deliver_fares_as_it_says() {
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
    let wanted = [
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
    assert_eq!(hub.told(), wanted);
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

/// A work that carries the Application `shop`, of which the agent says this.
fn carrying(cluster: &str, fares: &Fares<'_>) -> Change {
    let marks = r#""labels":{"apps.open-cluster-management.io/pull-to-ocm-managed-cluster":"true"},
        "annotations":{"apps.open-cluster-management.io/hub-application-namespace":"argocd",
        "apps.open-cluster-management.io/hub-application-name":"shop"}"#;
    let place = Place::new(cluster, "shop-1a2b3");
    let Change::Work(kind, place, Some(mut carrier)) = work(&place, marks, fares) else {
        panic!("no work")
    };
    let shop = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}});
    let text = format!(
        r#"{{"kind":"ManifestWork","metadata":{{"namespace":"{cluster}","name":"shop-1a2b3",{marks}}},"spec":{{"workload":{{"manifests":[{shop}]}}}}}}"#
    );
    let read = Work::read(&text, now())
        .expect("a work")
        .expect("it is of the pull model");
    (carrier.carried, carrier.parts) = (read.carried, read.parts);
    Change::Work(kind, place, Some(carrier))
}

#[test]
fn the_one_work_that_carries_an_application_is_named() {
    let mut hub = Hub::new();
    hub.application("shop", &pulled());
    assert_eq!(sets(&hub.index.apply(carrying("eu1", &WELL))), ["argocd/shop"]);
    assert_eq!(hub.told()[0]["app"], "argocd/shop", "the one before it is elsewhere");
    assert_eq!(sets(&hub.index.apply(carrying("eu2", &WELL))), ["argocd/shop"]);
    assert_eq!(hub.told()[0]["app"], "argocd/shop/eu2/shop-1a2b3");
    assert_eq!(
        hub.report["statuses"]["resources"],
        Value::Null,
        "the Application is not what it deploys"
    );
    let broken = hub.index.apply(carrying("eu2", &BROKEN));
    assert_eq!(sets(&broken), [""; 0], "which the Application will say");
    let gone = Place::new("eu2", "shop-1a2b3");
    let gone = hub.index.apply(Change::Work(WorkKind::Work, gone, None));
    assert_eq!(sets(&gone), ["argocd/shop"]);
    assert_eq!(hub.told()[0]["app"], "argocd/shop");
}

#[test]
fn what_an_application_says_of_its_cluster_is_not_said_again() {
    let mut hub = Hub::new();
    let mut application = pulled();
    let unreachable = condition("ManagedClusterUnreachableWarning", "since noon");
    let refused = condition("ManifestWorkApplyError", "forbidden");
    application["status"]["conditions"] = json!([unreachable, refused]);
    hub.application("shop", &application);
    hub.index.apply(cluster("eu2", Reach::Silent));
    assert_eq!(hub.told()[0]["conditions"], json!([unreachable, refused]));
}

#[test]
fn in_the_namespace_of_a_managed_cluster_an_application_is_on_that_cluster() {
    let mut hub = Hub::new();
    let is_here = hub.index.apply(cluster("argocd", Reach::Heard));
    assert_eq!(sets(&is_here), [""; 0], "nobody is there");
    hub.application("shop", &json!({}));
    assert_eq!(hub.told()[0]["cluster"], "argocd");
    let is_gone = hub.index.apply(Change::Cluster("argocd".into(), None));
    assert_eq!(sets(&is_gone), ["argocd/shop"]);
    assert_eq!(hub.told()[0]["cluster"], Value::Null);
}

#[test]
fn a_cluster_that_is_not_heard_is_said_to_be_so_whoever_delivers() {
    let mut hub = Hub::new();
    hub.application("by-agent", &json!({"spec": {"destination": {"name": "eu1"}}}));
    hub.application("shop", &json!({}));
    hub.work("shop", "eu2", "shop", &WELL);
    for name in ["eu1", "eu2"] {
        let touched = hub.index.apply(cluster(name, Reach::Silent));
        assert_eq!(sets(&touched), ["argocd/shop"], "{name}");
        assert_eq!(
            sets(&hub.index.apply(cluster(name, Reach::Silent))),
            [""; 0],
            "which is known"
        );
    }
    let told = hub.told();
    assert_eq!(told.len(), 2);
    for entry in told {
        assert_eq!(
            entry["conditions"][0]["type"], "ManagedClusterUnreachableWarning",
            "{entry}"
        );
    }
}

#[test]
fn a_report_comes_and_stays_and_is_never_deleted() {
    let mut hub = Hub::new();
    assert_eq!(hub.told(), [Value::Null; 0]);
    assert_eq!(hub.summary(), ["0"; 6], "a set without Applications");
    hub.application("shop", &json!({}));
    hub.work("shop", "eu1", "shop", &WELL);
    assert_eq!(hub.told().len(), 1);
    let written = hub.report.clone();
    hub.index
        .apply(Change::Work(WorkKind::Work, Place::new("eu1", "shop"), None));
    assert_eq!(hub.told()[0]["cluster"], Value::Null, "the last work is gone");
    hub.index.apply(Change::OnlyApplications(HashSet::new()));
    assert_eq!(hub.told(), [Value::Null; 0], "the last Application is gone");
    assert_eq!(hub.summary(), ["0"; 6]);

    // What somebody else writes into it is put right; one that is going is waited for, and made anew.
    hub.report = written;
    hub.see();
    assert_eq!(hub.told(), [Value::Null; 0]);
    hub.report["metadata"]["deletionTimestamp"] = "2026-06-01T12:00:00Z".into();
    hub.see();
    hub.application("shop", &json!({}));
    assert_eq!(hub.desired(), None);
    hub.index.apply(Change::Report(shop(), None));
    assert!(matches!(hub.desired(), Some(Write::Create { .. })));

    // It goes with its set. One of the same name has another.
    let going = ApplicationSet {
        deleting: true,
        ..set_of("u")
    };
    hub.index.apply(Change::ApplicationSet(shop(), Some(going)));
    assert_eq!(hub.desired(), None);
    hub.index.apply(Change::OnlyApplicationSets(HashSet::new()));
    assert_eq!(hub.desired(), None);
    hub.report["metadata"]["deletionTimestamp"] = Value::Null;
    hub.see();
    hub.index.apply(Change::ApplicationSet(shop(), Some(set_of("v"))));
    hub.told();
    assert_eq!(hub.report["metadata"]["ownerReferences"][0]["uid"], "v");
    assert_eq!(
        hub.report["metadata"]["ownerReferences"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn nothing_is_written_where_the_hub_has_no_reports() {
    let mut hub = Hub::new();
    hub.index = Index::new("argocd").with_reports();
    hub.index.apply(Change::ApplicationSet(shop(), Some(set_of("u"))));
    hub.application("shop", &json!({}));
    assert_eq!(hub.desired(), None);
    let touched = hub.index.apply(Change::OnlyReports(HashSet::new()));
    assert_eq!(sets(&touched), ["argocd/shop"], "now it has them");
    assert!(hub.desired().is_some());
}

#[test]
fn what_the_report_says_concerns_the_set_and_nothing_else_does() {
    let mut hub = Hub::new();
    assert_eq!(sets(&hub.application("shop", &json!({}))), ["argocd/shop"]);
    assert_eq!(sets(&hub.application("shop", &json!({}))), [""; 0], "which is known");
    let note = json!({"metadata": {"annotations": {"note": "x"}, "resourceVersion": "8"}});
    assert_eq!(sets(&hub.application("shop", &note)), [""; 0]);
    let health = json!({"status": {"health": {"status": "Healthy"}}});
    assert_eq!(sets(&hub.application("shop", &health)), ["argocd/shop"]);
    let warned = json!({"status": {"health": {"status": "Healthy"}, "conditions": [condition("SyncError", "no")]}});
    assert_eq!(sets(&hub.application("shop", &warned)), ["argocd/shop"]);

    assert_eq!(sets(&hub.work("shop", "eu1", "shop", &WELL)), ["argocd/shop"]);
    assert_eq!(sets(&hub.work("shop", "eu1", "shop", &WELL)), [""; 0]);
    assert_eq!(
        sets(&hub.work("other", "eu1", "other", &WELL)),
        [""; 0],
        "it is of no set"
    );
    let place = Place::new("eu1", "shop");
    let Change::Work(kind, place, Some(mut more)) = work(&place, &tracked("shop", &place), &WELL) else {
        panic!("a work");
    };
    more.parts = [more.parts[0].clone(), more.parts[0].clone()].into();
    let more = hub.index.apply(Change::Work(kind, place, Some(more)));
    assert_eq!(sets(&more), ["argocd/shop"], "it consists of something else");

    let owner = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "cart"}]);
    let moved = json!({"metadata": {"ownerReferences": owner}});
    assert_eq!(sets(&hub.application("shop", &moved)), ["argocd/cart", "argocd/shop"]);
    assert_eq!(hub.told(), [Value::Null; 0]);
    let left = json!({"metadata": {"ownerReferences": null}});
    assert_eq!(sets(&hub.application("shop", &left)), ["argocd/cart"]);
}

#[test]
fn nothing_of_all_this_is_kept_where_nobody_asks_for_it() {
    let mut hub = Hub::new();
    hub.index = Index::new("argocd");
    assert_eq!(sets(&hub.application("shop", &json!({}))), [""; 0]);
    hub.work("shop", "eu1", "shop", &WELL);
    let application = Place::new("argocd", "shop");
    let kept = hub.index.application(&application).expect("it is there");
    assert_eq!(kept.generated, None);
    assert!(
        hub.index
            .works_of(&application)
            .all(|(_, _, work)| work.parts.is_empty())
    );
}

#[test]
fn equal_lists_of_works_are_kept_once() {
    let mut hub = Hub::new();
    for name in ["eu1", "eu2"] {
        hub.work("shop", name, "shop", &WELL);
    }
    let application = Place::new("argocd", "shop");
    let mut lists = hub.index.works_of(&application).map(|(_, _, work)| work.parts.as_ptr());
    assert_eq!(lists.next(), lists.next());
}
