//! Tests of the cache with the mappers of all controllers.

use super::*;
use hub_state::cache::{Cache, Change, ReconcileRequest};
use hub_state::model::{Availability, Kind};
use hub_state::reconcile::mappers;
use hub_state::testing::{
    AgentReport, BROKEN, WELL, at, cluster, deleted, listed, name_of, now, of_set, set, set_of, stored, tracked, work,
    work_of, work_with_application,
};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::names::WorkName;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use serde_json::json;

/// The cache of a controller with all mappers.
struct Hub(Cache);

impl Hub {
    fn new() -> Self {
        Self(Cache::new("argocd").with_mappers(mappers(CONTROLLERS)))
    }

    fn with_shared_objects() -> Self {
        Self(Self::new().0.with_shared_objects())
    }

    /// Applies a change, and returns the names of the objects to reconcile.
    fn apply(&mut self, change: Change) -> Vec<String> {
        names(&self.0.apply(change))
    }

    /// Writes a work of the Application of the same name, with more in its metadata.
    fn deliver(&mut self, name: &str, cluster: &str, more: &str) -> Vec<String> {
        let object_ref = ObjectRef::new(cluster, name);
        self.apply(work(
            &object_ref,
            &format!("{}{more}", tracked(name, &object_ref)),
            &WELL,
        ))
    }

    fn works(&self, application: &str) -> Vec<String> {
        let application = at(application);
        let works = self.0.works_of(&application);
        works.map(|(_, object_ref, _)| object_ref.to_string()).collect()
    }
}

fn names(affected: &[ReconcileRequest]) -> Vec<String> {
    affected.iter().map(|request| request.object_ref.to_string()).collect()
}

/// Returns the change of a setting of Argo CD's resource tracking.
fn tracking(key: &str, value: &str) -> Change {
    stored(
        Kind::Config,
        &json!({"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": {key: value}}),
    )
}

fn by_label() -> Change {
    tracking("application.resourceTrackingMethod", "label")
}

const NO_MATCH: AgentReport<'_> = AgentReport("False", "True", "no match", "2026-06-01T11:59:50Z");

#[test]
fn enqueues_the_application_that_tracks_the_work() {
    let mut hub = Hub::new();
    let other = format!("eu1/{}", name_of("team_cart"));
    assert_eq!(hub.apply(work_of("shop", "eu1/shop", &WELL)), ["argocd/shop"]);
    assert_eq!(hub.apply(work_of("team_cart", &other, &WELL)), ["team/cart"]);
    let copied = work(&at("eu1/copy"), &tracked("shop", &at("eu1/shop")), &WELL);
    assert_eq!(hub.apply(copied), [""; 0]);
    assert_eq!(hub.works("argocd/shop"), ["eu1/shop"]);
    assert_eq!(hub.works("team/cart"), [other]);
    assert_eq!(hub.0.count(HealthStatus::Healthy), 2);
    assert_eq!(hub.apply(deleted(Kind::Works, "eu1/shop")), ["argocd/shop"]);
    assert_eq!(hub.works("argocd/shop"), [""; 0]);
}

#[test]
fn unchanged_work_enqueues_nothing() {
    let mut hub = Hub::new();
    hub.apply(work_of("shop", "eu1/shop", &WELL));
    assert_eq!(hub.apply(work_of("shop", "eu1/shop", &WELL)), [""; 0]);
    let unmarked = work(&at("eu1/shop"), "\"labels\":{\"a\":\"b\"}", &WELL);
    assert_eq!(hub.apply(unmarked), ["argocd/shop"], "whose it was");
}

#[test]
fn ignores_tracking_marks_on_works_with_another_name() {
    let mut hub = Hub::new();
    let object_ref = at("evil/own");
    let label = r#""labels":{"app.kubernetes.io/instance":"shop"}"#;
    for (tracking, marks) in [
        (tracking("", ""), tracked("shop", &object_ref)),
        (by_label(), label.to_owned()),
    ] {
        hub.apply(tracking);
        assert_eq!(hub.apply(work(&object_ref, &marks, &BROKEN)), [""; 0]);
        assert_eq!(hub.works("argocd/shop"), [""; 0]);
    }
    // The tracking marks of a set have no effect on a work that OCM did not generate from it.
    let set_name = set_of("shop");
    hub.apply(tracking("", ""));
    hub.apply(set(&ObjectRef::new("fleet", &set_name), "shop"));
    let marks = of_set(&format!("fleet.{set_name}"));
    assert_eq!(hub.apply(work(&object_ref, &marks, &BROKEN)), [""; 0]);
    assert_eq!(hub.works("argocd/shop"), [format!("fleet/{set_name}")]);
    // From OCM 1.3 on, the API server appends five characters.
    let made = ObjectRef::new("eu1", &format!("{set_name}x7b2q"));
    assert_eq!(hub.apply(work(&made, &marks, &WELL)), ["argocd/shop"]);
}

#[test]
fn accepts_work_names_with_and_without_a_policy_only() {
    let mut hub = Hub::new();
    let policy = |application: &str| {
        let name: WorkName = application.parse().expect("an Application");
        name.under_policy()
    };
    let derived = policy("shop").to_string();
    // Both exist while the works are renamed.
    let work_names = [
        "shop".to_owned(),
        "shop.part-wave5".to_owned(),
        derived.clone(),
        policy("shop").part("wave5"),
    ];
    for name in &work_names {
        assert_eq!(
            hub.apply(work_of("shop", &format!("eu1/{name}"), &WELL)),
            ["argocd/shop"]
        );
    }
    // A cluster can mark works of other Applications, of the pull model and of the controller as the Application's, and the
    // Application's works as works of Applications with the same name.
    let others = [
        policy("team_shop").to_string(),
        policy("cart").to_string(),
        policy(&derived).to_string(),
        name_of(&derived),
        "shop-1a2b3".to_owned(),
        "argocd-agent-ca-mw".to_owned(),
        format!("{derived}x"),
        "shop.p".to_owned(),
    ];
    let as_shops = others.iter().map(|name| ("shop", name));
    let of_others = [derived.as_str(), "argocd-agent-ca-mw", "shop-1a2b3", "team_shop"];
    let marked = work_names.iter().chain(&others[4..6]);
    let as_others = of_others
        .into_iter()
        .flat_map(|application| marked.clone().map(move |name| (application, name)));
    for (application, name) in as_shops.chain(as_others) {
        let affected = hub.apply(work_of(application, &format!("evil/{name}"), &BROKEN));
        assert_eq!(affected, [""; 0], "{name} as a work of {application}");
    }
    assert_eq!(hub.works("argocd/shop").len(), work_names.len());
}

#[test]
fn works_of_a_replica_set_belong_to_its_application_in_any_order() {
    let name = set_of("shop");
    let marks = of_set(&format!("fleet.{name}"));
    let (set_place, made) = (ObjectRef::new("fleet", &name), ObjectRef::new("eu1", &name));
    for reverse in [false, true] {
        let mut hub = Hub::new();
        let mut changes = [set(&set_place, "shop"), work(&made, &marks, &WELL)];
        if reverse {
            changes.reverse();
        }
        for change in changes {
            hub.apply(change);
        }
        assert_eq!(
            hub.works("argocd/shop"),
            [format!("fleet/{name}"), format!("eu1/{name}")]
        );
        let affected = hub.0.apply(work(&made, &marks, &BROKEN));
        // The work is none of Argo CD's objects, so Argo CD need not look at it.
        assert_eq!(affected, [ReconcileRequest::application(at("argocd/shop"))]);
    }
}

#[test]
fn changed_cluster_enqueues_applications_with_works_on_it() {
    let mut hub = Hub::new();
    let counts = |hub: &Hub| Availability::ALL.map(|availability| hub.0.cluster_count(availability));
    for (cluster, name) in [("eu1", "shop"), ("eu1", "cart"), ("eu10", "shop"), ("us1", "mail")] {
        hub.deliver(name, cluster, "");
    }
    let heard = hub.apply(cluster("eu1", Availability::Available));
    assert_eq!(heard, ["eu1"], "which is no news to Applications");
    let affected = hub.0.apply(cluster("eu1", Availability::Unknown));
    assert_eq!(names(&affected), ["argocd/cart", "argocd/shop", "eu1"]);
    assert_eq!(
        (affected[0].kind, affected[2].kind),
        (Kind::Applications, Kind::Clusters)
    );
    assert_eq!(
        (hub.0.availability("eu1"), counts(&hub)),
        (Availability::Unknown, [0, 1, 0])
    );
    assert_eq!(
        hub.apply(cluster("eu1", Availability::Unknown)),
        [""; 0],
        "which is known"
    );
    let gone = hub.apply(deleted(Kind::Clusters, "eu1"));
    assert_eq!(gone, ["argocd/cart", "argocd/shop", "eu1"]);
    assert_eq!(counts(&hub), [0, 0, 0]);
}

#[test]
fn argo_cd_notices_changed_health_but_not_a_changed_message() {
    let mut hub = Hub::new();
    let no_memory = AgentReport("True", "False", "no memory", BROKEN.3);
    // Argo CD has created the work itself.
    for (report, refresh) in [
        (WELL, Refresh::Unchanged),
        (BROKEN, Refresh::Done),
        (no_memory, Refresh::Needed),
        (WELL, Refresh::Done),
    ] {
        let affected = hub.0.apply(work_of("shop", "eu1/shop", &report));
        assert_eq!(affected[0].refresh, refresh, "{}", report.2);
    }
}

#[test]
fn work_becomes_degraded_by_time_alone() {
    let mut hub = Hub::new();
    let counts = |hub: &Hub| [HealthStatus::Progressing, HealthStatus::Degraded].map(|health| hub.0.count(health));
    hub.apply(work_of("shop", "eu1/shop", &NO_MATCH));
    assert_eq!(counts(&hub), [1, 0]);
    let then: Timestamp = "2026-06-01T12:00:50Z".parse().expect("a time");
    assert_eq!(hub.0.next_deadline(), Some(then));
    assert_eq!(hub.0.tick(now()), []);
    let affected = hub.0.tick(then);
    assert_eq!(names(&affected), ["argocd/shop"]);
    assert_eq!(affected[0].refresh, Refresh::Needed);
    assert_eq!(counts(&hub), [0, 1]);
    assert_eq!((hub.0.next_deadline(), hub.0.tick(then)), (None, Vec::new()));
}

#[test]
fn clock_jump_expires_deadlines_until_the_next_report() {
    let mut hub = Hub::new();
    let [back, ahead]: [Timestamp; 2] =
        ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"].map(|time| time.parse().expect("a time"));
    hub.apply(work_of("shop", "eu1/shop", &NO_MATCH));
    let foreseen = hub.0.next_deadline();
    assert!(foreseen.is_some());
    assert_eq!((hub.0.tick(back), hub.0.next_deadline()), (Vec::new(), foreseen));
    assert_eq!(names(&hub.0.tick(ahead)), ["argocd/shop"]);
    assert_eq!(hub.0.count(HealthStatus::Degraded), 1);
    for time in [back, now(), ahead] {
        assert_eq!((hub.0.tick(time), hub.0.next_deadline()), (Vec::new(), None));
    }
    assert_eq!(hub.apply(work_of("shop", "eu1/shop", &NO_MATCH)), ["argocd/shop"]);
    assert_eq!(
        (hub.0.count(HealthStatus::Progressing), hub.0.next_deadline()),
        (1, foreseen)
    );
}

#[test]
fn relist_removes_missing_works() {
    let mut hub = Hub::new();
    for name in ["one", "other"] {
        hub.deliver(name, "eu1", "");
    }
    assert_eq!(hub.apply(listed(Kind::Works, &["eu1/one"])), ["argocd/other"]);
    assert_eq!(hub.0.count(HealthStatus::Healthy), 1);
}

#[test]
fn changed_tracking_method_reassigns_works() {
    let mut hub = Hub::new();
    let counts = |hub: &Hub| ["argocd/shop", "argocd/cart"].map(|application| hub.works(application).len());
    hub.apply(work_of("shop", "eu1/shop", &WELL));
    let label = r#""labels":{"app.kubernetes.io/instance":"cart"}"#;
    hub.apply(work(&at("eu1/cart"), label, &WELL));
    assert_eq!(counts(&hub), [1, 0]);
    assert_eq!(hub.apply(by_label()), ["argocd/cart", "argocd/shop"]);
    assert_eq!(counts(&hub), [0, 1]);
    assert_eq!(hub.apply(by_label()), [""; 0]);
    hub.apply(listed(Kind::Config, &[]));
    assert_eq!(counts(&hub), [1, 0]);
}

#[test]
fn shared_object_concerns_only_the_applications_that_deliver_it() {
    let mut hub = Hub::with_shared_objects();
    assert_eq!(hub.deliver("a", "eu1", ""), ["argocd/a"]);
    assert_eq!(hub.deliver("b", "eu2", ""), ["argocd/b"], "another cluster");
    assert_eq!(hub.deliver("c", "eu1", ""), ["argocd/a", "argocd/c"]);
    let written = r#","resourceVersion":"2""#;
    assert_eq!(hub.deliver("c", "eu1", written), [""; 0], "the objects are the same");
    let going = r#","deletionTimestamp":"2026-06-01T12:00:00Z""#;
    assert_eq!(hub.deliver("c", "eu1", going), ["argocd/a", "argocd/c"]);
    assert_eq!(hub.deliver("a", "eu1", going), ["argocd/a"]);
}

#[test]
fn object_beside_an_application_is_shared_too() {
    let mut hub = Hub::with_shared_objects();
    let with_application = |report| work_with_application("a", "eu1/a", report);
    assert_eq!(hub.apply(with_application(&WELL)), ["argocd/a"]);
    assert_eq!(hub.deliver("c", "eu1", ""), ["argocd/a", "argocd/c"]);
    assert_eq!(hub.apply(with_application(&WELL)), [""; 0], "it is as before");
}

#[test]
fn counts_only_works_of_applications() {
    let mut hub = Hub::new();
    hub.apply(work_of("shop", "eu1/shop", &WELL));
    let of_addon = r#""labels":{"open-cluster-management.io/addon-name":"a"}"#;
    hub.apply(work(&at("eu1/addon-agent-deploy"), of_addon, &WELL));
    let generated = ObjectRef::new("eu1", &set_of("shop"));
    hub.apply(work(&generated, &of_set(&format!("fleet.{}", set_of("shop"))), &WELL));
    assert_eq!(hub.0.count(HealthStatus::Healthy), 2);
    hub.apply(tracking("installationID", "other"));
    assert_eq!(hub.0.count(HealthStatus::Healthy), 1, "the mark is of another Argo CD");
    hub.apply(listed(Kind::Works, &[]));
    assert_eq!(hub.0.count(HealthStatus::Healthy), 0);
}

#[test]
fn heartbeats_request_nothing() {
    let mut hub = Hub::new();
    let mut update = |kind: Kind, name: &str, version: &str, status: serde_json::Value| {
        let metadata = json!({"uid": "u", "name": name, "namespace": "argocd", "resourceVersion": version});
        hub.apply(stored(kind, &json!({"metadata": metadata, "status": status})))
    };
    let ready = |time: &str| {
        let condition = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": time});
        json!({"addresses": [], "conditions": [condition]})
    };
    update(Kind::Nodes, "node", "1", ready("1"));
    assert_eq!(update(Kind::Nodes, "node", "2", ready("2")), [""; 0]);
    update(Kind::Deployments, "argocd-agent-principal", "3", json!({}));
    let counts = json!({"replicas": 1, "conditions": []});
    assert_eq!(
        update(Kind::Deployments, "argocd-agent-principal", "4", counts),
        [""; 0]
    );
    let version = hub
        .0
        .object(Kind::Nodes, &at("argocd/node"))
        .map(|object| &*object.version);
    assert_eq!(version, Some("2"), "a write must name the current version");
}

#[test]
fn object_of_many_applications_concerns_few_of_them_at_a_time() {
    let mut hub = Hub::with_shared_objects();
    let applications = (0..1000).map(|number| format!("app-{number:04}"));
    let requests: usize = applications.map(|name| hub.deliver(&name, "eu1", "").len()).sum();
    assert!(requests <= 1010, "{requests} requests for 1,000 works");
    let last = at("eu1/app-0999");
    let work = hub.0.work(Kind::Works, &last).expect("it is known");
    let shown = hub.0.shared_objects(&last, work, &at("argocd/app-0999"));
    let names: Vec<_> = shown.keys().map(|application| &*application.name).collect();
    assert_eq!(names, ["app-0000", "app-0001"]);
}
