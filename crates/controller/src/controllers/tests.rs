//! Tests of the cache with the mappers of all controllers.

use super::*;
use hub_state::cache::{Cache, Change, ReconcileRequest};
use hub_state::model::{Availability, Cluster, Kind, Object, Work};
use hub_state::reconcile::mappers;
use hub_state::testing::{AgentReport, BROKEN, WELL, cluster, name_of, now, of_set, set, set_of, tracked, work};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::names::WorkName;
use ocm::tracking::Tracking;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use runtime::store::Update;
use std::collections::HashSet;

fn names(affected: &[ReconcileRequest]) -> Vec<String> {
    affected.iter().map(|it| it.object_ref.to_string()).collect()
}

fn works(cache: &Cache, application: &str) -> Vec<String> {
    let (namespace, name) = application.split_once('/').expect("a place");
    let object_ref = ObjectRef::new(namespace, name);
    let works = cache.works_of(&object_ref);
    works.map(|(_, object_ref, _)| object_ref.to_string()).collect()
}

#[test]
fn enqueues_the_application_that_tracks_the_work() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let other_name = name_of("team_cart");
    let (one, other) = (ObjectRef::new("eu1", "shop"), ObjectRef::new("eu1", &other_name));
    assert_eq!(
        names(&cache.apply(work(&one, &tracked("shop", &one), &WELL))),
        ["argocd/shop"]
    );
    assert_eq!(
        names(&cache.apply(work(&other, &tracked("team_cart", &other), &WELL))),
        ["team/cart"]
    );
    let copied = ObjectRef::new("eu1", "copy");
    assert_eq!(
        names(&cache.apply(work(&copied, &tracked("shop", &one), &WELL))),
        [""; 0]
    );
    assert_eq!(works(&cache, "argocd/shop"), ["eu1/shop"]);
    assert_eq!(works(&cache, "team/cart"), [format!("eu1/{other_name}")]);
    assert_eq!(cache.count(HealthStatus::Healthy), 2);
    assert_eq!(
        names(&cache.apply(Change::objects::<Work>(Kind::Works, Update::Deleted(one)))),
        ["argocd/shop"]
    );
    assert_eq!(works(&cache, "argocd/shop"), [""; 0]);
}

#[test]
fn unchanged_work_enqueues_nothing() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("eu1", "shop");
    let marks = tracked("shop", &object_ref);
    cache.apply(work(&object_ref, &marks, &WELL));
    assert_eq!(cache.apply(work(&object_ref, &marks, &WELL)), []);
    let affected = cache.apply(work(&object_ref, "\"labels\":{\"a\":\"b\"}", &WELL));
    assert_eq!(names(&affected), ["argocd/shop"], "whose it was");
}

#[test]
fn ignores_tracking_marks_on_works_with_another_name() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("evil", "own");
    let by_label = Tracking::configured(|key| (key == "application.resourceTrackingMethod").then_some("label"));
    let own = r#""labels":{"app.kubernetes.io/instance":"shop"}"#;
    for (tracking, marks) in [
        (Tracking::configured(|_| None), tracked("shop", &object_ref)),
        (by_label, own.to_owned()),
    ] {
        cache.apply(Change::setting(Some(tracking)));
        assert_eq!(names(&cache.apply(work(&object_ref, &marks, &BROKEN))), [""; 0]);
        assert_eq!(works(&cache, "argocd/shop"), [""; 0]);
    }
    // The tracking marks of a set have no effect on a work that OCM did not generate from it.
    let set_name = set_of("shop");
    cache.apply(Change::setting(Some(Tracking::configured(|_| None))));
    cache.apply(set(&ObjectRef::new("fleet", &set_name), "shop"));
    let marks = of_set(&format!("fleet.{set_name}"));
    assert_eq!(names(&cache.apply(work(&object_ref, &marks, &BROKEN))), [""; 0]);
    assert_eq!(works(&cache, "argocd/shop"), [format!("fleet/{set_name}")]);
    // From OCM 1.3 on, the API server appends five characters.
    let made = ObjectRef::new("eu1", &format!("{set_name}x7b2q"));
    assert_eq!(names(&cache.apply(work(&made, &marks, &WELL))), ["argocd/shop"]);
}

#[test]
fn accepts_work_names_with_and_without_a_policy_only() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let policy = |application: &str| {
        let name: WorkName = application.parse().expect("an Application");
        name.under_policy()
    };
    let derived = policy("shop").to_string();
    // Both exist while the works are renamed.
    let its = [
        "shop".to_owned(),
        "shop.part-wave5".to_owned(),
        derived.clone(),
        policy("shop").part("wave5"),
    ];
    for name in &its {
        let object_ref = ObjectRef::new("eu1", name);
        assert_eq!(
            names(&cache.apply(work(&object_ref, &tracked("shop", &object_ref), &WELL))),
            ["argocd/shop"]
        );
    }
    assert_eq!(works(&cache, "argocd/shop").len(), its.len());
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
    for name in &others {
        let object_ref = ObjectRef::new("evil", name);
        assert_eq!(
            names(&cache.apply(work(&object_ref, &tracked("shop", &object_ref), &BROKEN))),
            [""; 0],
            "{name}"
        );
    }
    for application in [derived.as_str(), "argocd-agent-ca-mw", "shop-1a2b3", "team_shop"] {
        for name in its
            .iter()
            .chain([&"argocd-agent-ca-mw".to_owned(), &"shop-1a2b3".to_owned()])
        {
            let object_ref = ObjectRef::new("evil", name);
            let affected = cache.apply(work(&object_ref, &tracked(application, &object_ref), &BROKEN));
            assert_eq!(names(&affected), [""; 0], "{name} as a work of {application}");
        }
    }
    assert_eq!(works(&cache, "argocd/shop").len(), its.len());
}

#[test]
fn works_of_a_replica_set_belong_to_its_application_in_any_order() {
    let name = set_of("shop");
    let marks = of_set(&format!("fleet.{name}"));
    let (set_place, made) = (ObjectRef::new("fleet", &name), ObjectRef::new("eu1", &name));
    let changes = || [set(&set_place, "shop"), work(&made, &marks, &WELL)];
    for reverse in [false, true] {
        let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
        let mut changes: Vec<_> = changes().into();
        if reverse {
            changes.reverse();
        }
        for change in changes {
            cache.apply(change);
        }
        assert_eq!(
            works(&cache, "argocd/shop"),
            [format!("fleet/{name}"), format!("eu1/{name}")]
        );
        let affected = cache.apply(work(&made, &marks, &BROKEN));
        assert_eq!(names(&affected), ["argocd/shop"]);
        assert_eq!(
            affected[0].refresh,
            Refresh::Unchanged,
            "it is none of Argo CD's objects"
        );
    }
}

#[test]
fn changed_cluster_enqueues_applications_with_works_on_it() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    for (cluster, name) in [("eu1", "shop"), ("eu1", "cart"), ("eu10", "shop"), ("us1", "mail")] {
        let object_ref = ObjectRef::new(cluster, name);
        cache.apply(work(&object_ref, &tracked(name, &object_ref), &WELL));
    }
    let heard = cache.apply(cluster("eu1", Availability::Available));
    assert_eq!(names(&heard), ["eu1"], "which is no news to Applications");
    let affected = cache.apply(cluster("eu1", Availability::Unknown));
    assert_eq!(names(&affected), ["argocd/cart", "argocd/shop", "eu1"]);
    assert_eq!(
        (affected[0].kind, affected[2].kind),
        (Kind::Applications, Kind::Clusters)
    );
    assert_eq!(cache.availability("eu1"), Availability::Unknown);
    assert_eq!(
        Availability::ALL.map(|availability| cache.cluster_count(availability)),
        [0, 1, 0]
    );
    assert_eq!(cache.apply(cluster("eu1", Availability::Unknown)), [], "which is known");
    let gone = cache.apply(Change::objects::<Cluster>(
        Kind::Clusters,
        Update::Deleted("eu1".into()),
    ));
    assert_eq!(names(&gone), ["argocd/cart", "argocd/shop", "eu1"]);
    assert_eq!(
        Availability::ALL.map(|availability| cache.cluster_count(availability)),
        [0, 0, 0]
    );
}

#[test]
fn argo_cd_notices_changed_health_but_not_a_changed_message() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("eu1", "shop");
    let marks = tracked("shop", &object_ref);
    let mut refresh = |report: &AgentReport<'_>| {
        let affected = cache.apply(work(&object_ref, &marks, report));
        affected.first().map(|it| it.refresh)
    };
    assert_eq!(refresh(&WELL), Some(Refresh::Unchanged), "it has made it");
    assert_eq!(refresh(&BROKEN), Some(Refresh::Done));
    assert_eq!(
        refresh(&AgentReport("True", "False", "no memory", BROKEN.3)),
        Some(Refresh::Needed)
    );
    assert_eq!(refresh(&WELL), Some(Refresh::Done));
}

#[test]
fn work_becomes_degraded_by_time_alone() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("eu1", "shop");
    cache.apply(work(
        &object_ref,
        &tracked("shop", &object_ref),
        &AgentReport("False", "True", "no match", "2026-06-01T11:59:50Z"),
    ));
    assert_eq!(
        (
            cache.count(HealthStatus::Progressing),
            cache.count(HealthStatus::Degraded)
        ),
        (1, 0)
    );
    let then: Timestamp = "2026-06-01T12:00:50Z".parse().expect("a time");
    assert_eq!(cache.next_deadline(), Some(then));
    assert_eq!(cache.tick(now()), []);
    let affected = cache.tick(then);
    assert_eq!(names(&affected), ["argocd/shop"]);
    assert_eq!(affected[0].refresh, Refresh::Needed);
    assert_eq!(
        (
            cache.count(HealthStatus::Progressing),
            cache.count(HealthStatus::Degraded)
        ),
        (0, 1)
    );
    assert_eq!((cache.next_deadline(), cache.tick(then)), (None, Vec::new()));
}

#[test]
fn clock_jump_expires_deadlines_until_the_next_report() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("eu1", "shop");
    let waits = || {
        let report = AgentReport("False", "True", "no match", "2026-06-01T11:59:50Z");
        work(&object_ref, &tracked("shop", &object_ref), &report)
    };
    let [back, ahead]: [Timestamp; 2] =
        ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"].map(|time| time.parse().expect("a time"));
    cache.apply(waits());
    let foreseen = cache.next_deadline();
    assert!(foreseen.is_some());
    assert_eq!((cache.tick(back), cache.next_deadline()), (Vec::new(), foreseen));
    assert_eq!(names(&cache.tick(ahead)), ["argocd/shop"]);
    assert_eq!(cache.count(HealthStatus::Degraded), 1);
    for time in [back, now(), ahead] {
        assert_eq!((cache.tick(time), cache.next_deadline()), (Vec::new(), None));
    }
    assert_eq!(names(&cache.apply(waits())), ["argocd/shop"]);
    assert_eq!(
        (cache.count(HealthStatus::Progressing), cache.next_deadline()),
        (1, foreseen)
    );
}

#[test]
fn relist_removes_missing_works() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let [one, other] = ["one", "other"].map(|name| ObjectRef::new("eu1", name));
    for object_ref in [&one, &other] {
        cache.apply(work(object_ref, &tracked(&object_ref.name, object_ref), &WELL));
    }
    let affected = cache.apply(Change::objects::<Work>(
        Kind::Works,
        Update::Listed(HashSet::from([one])),
    ));
    assert_eq!(names(&affected), ["argocd/other"]);
    assert_eq!(cache.count(HealthStatus::Healthy), 1);
}

#[test]
fn changed_tracking_method_reassigns_works() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let object_ref = ObjectRef::new("eu1", "shop");
    let marks = tracked("shop", &object_ref);
    cache.apply(work(&object_ref, &marks, &WELL));
    let labelled = ObjectRef::new("eu1", "cart");
    let marks = r#""labels":{"app.kubernetes.io/instance":"cart"}"#;
    cache.apply(work(&labelled, marks, &WELL));
    assert_eq!(works(&cache, "argocd/shop"), ["eu1/shop"]);
    let by_label = Tracking::configured(|key| (key == "application.resourceTrackingMethod").then_some("label"));
    let affected = cache.apply(Change::setting(Some(by_label.clone())));
    assert_eq!(names(&affected), ["argocd/cart", "argocd/shop"]);
    assert_eq!(
        (works(&cache, "argocd/shop").len(), works(&cache, "argocd/cart").len()),
        (0, 1)
    );
    assert_eq!(cache.apply(Change::setting(Some(by_label))), []);
    cache.apply(Change::setting::<Tracking>(None));
    assert_eq!(works(&cache, "argocd/shop"), ["eu1/shop"]);
}

#[test]
fn shared_object_concerns_only_the_applications_that_deliver_it() {
    let mut cache = Cache::new("argocd")
        .with_mappers(mappers(CONTROLLERS))
        .with_shared_objects();
    let mut deliver = |application: &str, cluster: &str, marks: &str| {
        let object_ref = ObjectRef::new(cluster, application);
        let marks = format!("{}{marks}", tracked(application, &object_ref));
        names(&cache.apply(work(&object_ref, &marks, &WELL)))
    };
    assert_eq!(deliver("a", "eu1", ""), ["argocd/a"]);
    assert_eq!(deliver("b", "eu2", ""), ["argocd/b"], "another cluster");
    assert_eq!(deliver("c", "eu1", ""), ["argocd/a", "argocd/c"]);
    assert_eq!(
        deliver("c", "eu1", r#","resourceVersion":"2""#),
        [""; 0],
        "the objects are the same"
    );
    let going = r#","deletionTimestamp":"2026-06-01T12:00:00Z""#;
    assert_eq!(deliver("c", "eu1", going), ["argocd/a", "argocd/c"]);
    assert_eq!(deliver("a", "eu1", going), ["argocd/a"]);
}

#[test]
fn counts_only_works_of_applications() {
    let mut cache = Cache::new("argocd");
    let shop = ObjectRef::new("eu1", "shop");
    cache.apply(work(&shop, &tracked("shop", &shop), &WELL));
    let addon = ObjectRef::new("eu1", "addon-agent-deploy");
    cache.apply(work(
        &addon,
        r#""labels":{"open-cluster-management.io/addon-name":"a"}"#,
        &WELL,
    ));
    let generated = ObjectRef::new("eu1", &set_of("shop"));
    cache.apply(work(&generated, &of_set(&format!("fleet.{}", set_of("shop"))), &WELL));
    assert_eq!(cache.count(HealthStatus::Healthy), 2);
    cache.apply(Change::setting(Some(Tracking::configured(|key| {
        (key == "installationID").then_some("other")
    }))));
    assert_eq!(cache.count(HealthStatus::Healthy), 1, "the mark is of another Argo CD");
    for object_ref in [shop, addon, generated] {
        cache.apply(Change::objects::<Work>(Kind::Works, Update::Deleted(object_ref)));
    }
    assert_eq!(cache.count(HealthStatus::Healthy), 0);
}

#[test]
fn heartbeats_request_nothing() {
    let mut cache = Cache::new("argocd").with_mappers(mappers(CONTROLLERS));
    let mut update = |kind: Kind, name: &str, version: u32, status: &str| {
        let text = format!(
            r#"{{"metadata":{{"uid":"u","name":"{name}","namespace":"argocd","resourceVersion":"{version}"}},"status":{status}}}"#
        );
        let object = Object::from_json(kind, &text).expect("an object");
        cache
            .apply(Change::objects(
                kind,
                Update::Set(ObjectRef::new("argocd", name), object),
            ))
            .len()
    };
    let ready = |time: &str| {
        format!(r#"{{"addresses":[],"conditions":[{{"type":"Ready","status":"True","lastHeartbeatTime":"{time}"}}]}}"#)
    };
    update(Kind::Nodes, "node", 1, &ready("1"));
    assert_eq!(update(Kind::Nodes, "node", 2, &ready("2")), 0);
    update(Kind::Deployments, "argocd-agent-principal", 3, "{}");
    let counts = r#"{"replicas":1,"conditions":[]}"#;
    assert_eq!(update(Kind::Deployments, "argocd-agent-principal", 4, counts), 0);
    let version = cache
        .object(Kind::Nodes, &ObjectRef::new("argocd", "node"))
        .map(|it| &*it.version);
    assert_eq!(version, Some("2"), "a write must name the current version");
}

#[test]
fn object_of_many_applications_concerns_few_of_them_at_a_time() {
    let mut cache = Cache::new("argocd")
        .with_mappers(mappers(CONTROLLERS))
        .with_shared_objects();
    let mut requests = 0;
    for number in 0..1000 {
        let name = format!("app-{number:04}");
        let object_ref = ObjectRef::new("eu1", &name);
        requests += cache
            .apply(work(&object_ref, &tracked(&name, &object_ref), &WELL))
            .len();
    }
    assert!(requests <= 1010, "{requests} requests for 1,000 works");
    let last = ObjectRef::new("eu1", "app-0999");
    let shown = cache.shared_objects(
        &last,
        cache.work(Kind::Works, &last).expect("it is known"),
        &ObjectRef::new("argocd", "app-0999"),
    );
    assert_eq!(
        shown.keys().map(|it| &*it.name).collect::<Vec<_>>(),
        ["app-0000", "app-0001"]
    );
}
