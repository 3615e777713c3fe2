//! What the index makes of what the watches tell; and a fleet's works and clusters, for the tests of promises.

use super::*;
use crate::cluster_secret::Labels;
use crate::generate::names::WorkName;

/// A time that works are judged at.
pub(crate) const NOW: &str = "2026-06-01T12:00:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// A work with one Deployment, of which the agent says this: the status of `Applied` and of `Healthy`, the message of the one
/// that is not True, and since when.
pub(crate) struct Fares<'f>(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'f str,
    pub(crate) &'static str,
);

pub(crate) const WELL: Fares<'_> = Fares("True", "True", "", "2026-06-01T11:00:00Z");
pub(crate) const BROKEN: Fares<'_> = Fares("True", "False", "no image", "2026-06-01T11:00:00Z");
pub(crate) const REFUSED: Fares<'_> = Fares("False", "True", "forbidden", "2026-06-01T11:00:00Z");

pub(crate) fn work(place: &Place, marks: &str, fares: &Fares<'_>) -> Change {
    let Place { namespace, name } = place;
    let Fares(applied, healthy, message, since) = fares;
    let condition = |kind: &str, status: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","message":"{message}","reason":"ConditionRuleEvaluated","lastTransitionTime":"{since}","observedGeneration":1}}"#
        )
    };
    let text = format!(
        r#"{{"kind":"ManifestWork","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,{marks}}},
        "spec":{{"workload":{{"manifests":[{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"shop"}}}}]}}}},
        "status":{{"conditions":[{}],"resourceStatus":{{"manifests":[{{"resourceMeta":{{"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web"}},"conditions":[{},{},{}]}}]}}}}}}"#,
        condition("Applied", applied),
        condition("Applied", applied),
        condition("Available", "True"),
        condition("Healthy", healthy),
    );
    let work = Work::read(&text, now()).expect("a work");
    Change::Work(WorkKind::Work, place.clone(), work)
}

pub(crate) fn tracked(application: &str, place: &Place) -> String {
    format!(
        r#""annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWork:{place}"}}"#
    )
}

pub(crate) fn of_set(set: &str) -> String {
    format!(r#""labels":{{"work.open-cluster-management.io/manifestworkreplicaset":"{set}"}}"#)
}

pub(crate) fn set(place: &Place, application: &str) -> Change {
    let Place { namespace, name } = place;
    let text = format!(
        r#"{{"kind":"ManifestWorkReplicaSet","metadata":{{"name":"{name}","namespace":"{namespace}","generation":1,
        "annotations":{{"argocd.argoproj.io/tracking-id":"{application}:work.open-cluster-management.io/ManifestWorkReplicaSet:{place}"}}}}}}"#
    );
    Change::Work(WorkKind::Set, place.clone(), Work::read(&text, now()).expect("a set"))
}

/// A managed cluster that is heard, or not.
pub(crate) fn cluster(name: &str, reach: Reach) -> Change {
    let cluster = Cluster {
        uid: name.into(),
        reach,
        labels: Labels::default(),
        deleting: false,
    };
    Change::Cluster(name.into(), Some(cluster))
}

/// Returns the name of the first work of an Application, as Argo CD calls that.
pub(crate) fn name_of(application: &str) -> String {
    let name: WorkName = application.parse().expect("an Application");
    name.to_string()
}

/// Returns the name of the ManifestWorkReplicaSet of an Application in the namespace `fleet`.
pub(crate) fn set_of(application: &str) -> String {
    let name: WorkName = application.parse().expect("an Application");
    name.set_part("", "fleet", 60)
}

fn names(touched: &[Touched]) -> Vec<String> {
    touched.iter().map(|it| it.place.to_string()).collect()
}

fn works(index: &Index, application: &str) -> Vec<String> {
    let (namespace, name) = application.split_once('/').expect("a place");
    let place = Place::new(namespace, name);
    let works = index.works_of(&place);
    works.map(|(_, place, _)| place.to_string()).collect()
}

#[test]
fn a_work_concerns_the_application_that_argo_cd_tracks_it_for() {
    let mut index = Index::new("argocd");
    let other_name = name_of("team_cart");
    let (one, other) = (Place::new("eu1", "shop"), Place::new("eu1", &other_name));
    assert_eq!(
        names(&index.apply(work(&one, &tracked("shop", &one), &WELL))),
        ["argocd/shop"]
    );
    assert_eq!(
        names(&index.apply(work(&other, &tracked("team_cart", &other), &WELL))),
        ["team/cart"]
    );
    let copied = Place::new("eu1", "copy");
    assert_eq!(
        names(&index.apply(work(&copied, &tracked("shop", &one), &WELL))),
        [""; 0]
    );
    assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
    assert_eq!(works(&index, "team/cart"), [format!("eu1/{other_name}")]);
    assert_eq!(index.count(Verdict::Healthy), 3);
    assert_eq!(
        names(&index.apply(Change::Work(WorkKind::Work, one, None))),
        ["argocd/shop"]
    );
    assert_eq!(works(&index, "argocd/shop"), [""; 0]);
}

#[test]
fn what_says_nothing_new_concerns_nobody() {
    let mut index = Index::new("argocd");
    let place = Place::new("eu1", "shop");
    let marks = tracked("shop", &place);
    index.apply(work(&place, &marks, &WELL));
    assert_eq!(index.apply(work(&place, &marks, &WELL)), []);
    let touched = index.apply(work(&place, "\"labels\":{\"a\":\"b\"}", &WELL));
    assert_eq!(names(&touched), ["argocd/shop"], "whose it was");
}

#[test]
fn ignores_marks_on_a_work_that_has_no_name_of_the_application() {
    let mut index = Index::new("argocd");
    let place = Place::new("evil", "own");
    let by_label = Tracking::configured(|key| (key == "application.resourceTrackingMethod").then_some("label"));
    let own = r#""labels":{"app.kubernetes.io/instance":"shop"}"#;
    for (tracking, marks) in [
        (Tracking::configured(|_| None), tracked("shop", &place)),
        (by_label, own.to_owned()),
    ] {
        index.apply(Change::Tracking(tracking));
        assert_eq!(names(&index.apply(work(&place, &marks, &BROKEN))), [""; 0]);
        assert_eq!(works(&index, "argocd/shop"), [""; 0]);
    }
    // Nor do marks of a set, on a work that OCM has not made of it.
    let set_name = set_of("shop");
    index.apply(Change::Tracking(Tracking::configured(|_| None)));
    index.apply(set(&Place::new("fleet", &set_name), "shop"));
    let marks = of_set(&format!("fleet.{set_name}"));
    assert_eq!(names(&index.apply(work(&place, &marks, &BROKEN))), [""; 0]);
    assert_eq!(works(&index, "argocd/shop"), [format!("fleet/{set_name}")]);
    // OCM 1.3 has the API server add five characters.
    let made = Place::new("eu1", &format!("{set_name}x7b2q"));
    assert_eq!(names(&index.apply(work(&made, &marks, &WELL))), ["argocd/shop"]);
}

#[test]
fn believes_works_under_a_policy_and_without_one_and_no_other_names() {
    let mut index = Index::new("argocd");
    let policy = |application: &str| {
        let name: WorkName = application.parse().expect("an Application");
        name.under_policy()
    };
    let derived = policy("shop").to_string();
    // While the works are renamed there are both.
    let its = [
        "shop".to_owned(),
        "shop.part-wave5".to_owned(),
        derived.clone(),
        policy("shop").part("wave5"),
    ];
    for name in &its {
        let place = Place::new("eu1", name);
        assert_eq!(
            names(&index.apply(work(&place, &tracked("shop", &place), &WELL))),
            ["argocd/shop"]
        );
    }
    assert_eq!(works(&index, "argocd/shop").len(), its.len());
    // A cluster marks works of other Applications, of the pull model and of the controller as the Application's, and its works as those
    // of Applications that are called like them.
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
        let place = Place::new("evil", name);
        assert_eq!(
            names(&index.apply(work(&place, &tracked("shop", &place), &BROKEN))),
            [""; 0],
            "{name}"
        );
    }
    for application in [derived.as_str(), "argocd-agent-ca-mw", "shop-1a2b3", "team_shop"] {
        for name in its
            .iter()
            .chain([&"argocd-agent-ca-mw".to_owned(), &"shop-1a2b3".to_owned()])
        {
            let place = Place::new("evil", name);
            let touched = index.apply(work(&place, &tracked(application, &place), &BROKEN));
            assert_eq!(names(&touched), [""; 0], "{name} as a work of {application}");
        }
    }
    assert_eq!(works(&index, "argocd/shop").len(), its.len());
}

#[test]
fn works_of_a_set_are_those_of_its_application_whichever_is_seen_first() {
    let name = set_of("shop");
    let marks = of_set(&format!("fleet.{name}"));
    let (set_place, made) = (Place::new("fleet", &name), Place::new("eu1", &name));
    let changes = || [set(&set_place, "shop"), work(&made, &marks, &WELL)];
    for reverse in [false, true] {
        let mut index = Index::new("argocd");
        let mut changes: Vec<_> = changes().into();
        if reverse {
            changes.reverse();
        }
        for change in changes {
            index.apply(change);
        }
        assert_eq!(
            works(&index, "argocd/shop"),
            [format!("fleet/{name}"), format!("eu1/{name}")]
        );
        let touched = index.apply(work(&made, &marks, &BROKEN));
        assert_eq!(names(&touched), ["argocd/shop"]);
        assert_eq!(touched[0].noticed, Noticed::Nothing, "it is none of Argo CD's objects");
    }
}

#[test]
fn a_cluster_concerns_those_who_have_works_on_it() {
    let mut index = Index::new("argocd");
    for (cluster, name) in [("eu1", "shop"), ("eu1", "cart"), ("eu10", "shop"), ("us1", "mail")] {
        let place = Place::new(cluster, name);
        index.apply(work(&place, &tracked(name, &place), &WELL));
    }
    let heard = index.apply(cluster("eu1", Reach::Heard));
    assert_eq!(names(&heard), ["eu1"], "which is no news to Applications");
    let touched = index.apply(cluster("eu1", Reach::Silent));
    assert_eq!(names(&touched), ["eu1", "argocd/cart", "argocd/shop"]);
    assert_eq!((touched[0].sort, touched[1].sort), (Sort::Cluster, Sort::Application));
    assert_eq!(index.reach("eu1"), Reach::Silent);
    assert_eq!(Reach::ALL.map(|reach| index.heard(reach)), [0, 1, 0]);
    assert_eq!(index.apply(cluster("eu1", Reach::Silent)), [], "which is known");
    let gone = index.apply(Change::Cluster("eu1".into(), None));
    assert_eq!(names(&gone), ["eu1", "argocd/cart", "argocd/shop"]);
    assert_eq!(Reach::ALL.map(|reach| index.heard(reach)), [0, 0, 0]);
}

#[test]
fn argo_cd_notices_another_word_and_not_another_message() {
    let mut index = Index::new("argocd");
    let place = Place::new("eu1", "shop");
    let marks = tracked("shop", &place);
    let mut noticed = |fares: &Fares<'_>| {
        let touched = index.apply(work(&place, &marks, fares));
        touched.first().map(|it| it.noticed)
    };
    assert_eq!(noticed(&WELL), Some(Noticed::Nothing), "it has made it");
    assert_eq!(noticed(&BROKEN), Some(Noticed::Yes));
    assert_eq!(
        noticed(&Fares("True", "False", "no memory", BROKEN.3)),
        Some(Noticed::No)
    );
    assert_eq!(noticed(&WELL), Some(Noticed::Yes));
}

#[test]
fn a_failure_becomes_one_by_time_alone() {
    let mut index = Index::new("argocd");
    let place = Place::new("eu1", "shop");
    index.apply(work(
        &place,
        &tracked("shop", &place),
        &Fares("False", "True", "no match", "2026-06-01T11:59:50Z"),
    ));
    assert_eq!(
        (index.count(Verdict::Progressing), index.count(Verdict::Degraded)),
        (1, 0)
    );
    let then: Timestamp = "2026-06-01T12:00:50Z".parse().expect("a time");
    assert_eq!(index.next(), Some(then));
    assert_eq!(index.tick(now()), []);
    let touched = index.tick(then);
    assert_eq!(names(&touched), ["argocd/shop"]);
    assert_eq!(touched[0].noticed, Noticed::No);
    assert_eq!(
        (index.count(Verdict::Progressing), index.count(Verdict::Degraded)),
        (0, 1)
    );
    assert_eq!((index.next(), index.tick(then)), (None, Vec::new()));
}

#[test]
fn a_clock_that_jumps_makes_a_failure_of_what_waits_and_the_next_word_is_judged_anew() {
    let mut index = Index::new("argocd");
    let place = Place::new("eu1", "shop");
    let waits = || {
        let fares = Fares("False", "True", "no match", "2026-06-01T11:59:50Z");
        work(&place, &tracked("shop", &place), &fares)
    };
    let [back, ahead]: [Timestamp; 2] =
        ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"].map(|time| time.parse().expect("a time"));
    index.apply(waits());
    let foreseen = index.next();
    assert!(foreseen.is_some());
    assert_eq!((index.tick(back), index.next()), (Vec::new(), foreseen));
    assert_eq!(names(&index.tick(ahead)), ["argocd/shop"]);
    assert_eq!(index.count(Verdict::Degraded), 1);
    for time in [back, now(), ahead] {
        assert_eq!((index.tick(time), index.next()), (Vec::new(), None));
    }
    assert_eq!(names(&index.apply(waits())), ["argocd/shop"]);
    assert_eq!((index.count(Verdict::Progressing), index.next()), (1, foreseen));
}

#[test]
fn what_a_list_does_not_have_is_gone() {
    let mut index = Index::new("argocd");
    let [one, other] = ["one", "other"].map(|name| Place::new("eu1", name));
    for place in [&one, &other] {
        index.apply(work(place, &tracked(&place.name, place), &WELL));
    }
    let touched = index.apply(Change::OnlyWorks(WorkKind::Work, HashSet::from([one])));
    assert_eq!(names(&touched), ["argocd/other"]);
    assert_eq!(index.count(Verdict::Healthy), 1);
}

#[test]
fn when_argo_cd_tracks_otherwise_works_are_somebody_elses() {
    let mut index = Index::new("argocd");
    let place = Place::new("eu1", "shop");
    let marks = tracked("shop", &place);
    index.apply(work(&place, &marks, &WELL));
    let labelled = Place::new("eu1", "cart");
    let marks = r#""labels":{"app.kubernetes.io/instance":"cart"}"#;
    index.apply(work(&labelled, marks, &WELL));
    assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
    let by_label = Tracking::configured(|key| (key == "application.resourceTrackingMethod").then_some("label"));
    let touched = index.apply(Change::Tracking(by_label.clone()));
    assert_eq!(names(&touched), ["argocd/cart", "argocd/shop"]);
    assert_eq!(
        (works(&index, "argocd/shop").len(), works(&index, "argocd/cart").len()),
        (0, 1)
    );
    assert_eq!(index.apply(Change::Tracking(by_label)), []);
    index.apply(Change::ConfigIsThere(false));
    assert_eq!(works(&index, "argocd/shop"), ["eu1/shop"]);
}
