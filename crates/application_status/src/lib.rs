//! Reports the state of ManifestWorks on the Application from which Argo CD created them: as conditions of the controller's own
//! types, as Events, and by requesting a refresh if Argo CD shows outdated health.
//!
//! The controller never writes sync, health, resources or operation: Argo CD owns them and would revert the write. Argo CD keeps
//! conditions of unknown types (`SetConditions` of its Application) but writes the whole list, so it may overwrite ours; the
//! watch event then triggers another write.

mod conditions;
mod events;
mod fleet;
mod mappers;

pub use conditions::Totals;

use fleet::Fleet;
use hub_state::annotations::REFRESH;
use hub_state::{Cache, Condition, Context, Controller, Kind, Watch, owners};
use jiff::Timestamp;
use ocm::pull_model::is_own_condition;
use ocm::resources::APPLICATIONS;
use primitives::object_ref::ObjectRef;
use primitives::timestamp::format_time;
use runtime::action::{Action, InvolvedObject, Write};
use serde_json::{Value, json};
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    name: "application-status",
    about: "conditions and Events on the plugin's Applications, about the health of their works",
    kind: Kind::Applications,
    watches: &[
        Watch::new(Kind::Applications, mappers::application),
        Watch::new(Kind::Works, owners),
        Watch::new(Kind::ReplicaSets, owners),
        Watch::new(Kind::Clusters, mappers::cluster),
        Watch::new(Kind::Holds, mappers::hold),
        Watch::new(Kind::Config, owners),
    ],
    min_write_interval: Duration::from_secs(1),
    reconcile,
    requeue_after: end_of_hold,
};

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context) -> Option<Action> {
    let application = cache.application(object_ref)?;
    // `pull` reports on Applications of the pull model, and the controller of another Argo CD on those of that Argo CD.
    if !application.reconciled || application.pull.is_some() || !application.is_of_argo_cd(object_ref, cache.argocd()) {
        return None;
    }
    // A write makes Argo CD look at the Application at once. If its cache does not have the hook yet that it has just created, it takes
    // the hook for done, and leaves it behind.
    if application.runs_deletion_hooks() {
        return None;
    }
    let fleet = Fleet::from_cache(cache, object_ref, application.deleting, context.now);
    let (before, others): (Vec<_>, Vec<_>) = application
        .conditions
        .iter()
        .cloned()
        .partition(|condition| is_own_condition(&condition.kind));
    let desired = conditions::compute(&fleet, &before);
    let differs = !conditions::are_same(&before, &desired);
    let refresh = context.stale && !application.refreshing && !application.deleting && !fleet.is_empty();
    if !differs && !refresh {
        return None;
    }
    let event = differs.then(|| events::between(&before, &desired, &fleet)).flatten();
    let conditions = differs.then(|| merged(others, &before, &desired, context.now));
    Some(Action {
        involved_object: InvolvedObject::new(&APPLICATIONS, object_ref.clone(), application.uid.clone()),
        writes: vec![Write::patch(
            &APPLICATIONS,
            object_ref.clone(),
            patch(&application.version, conditions, refresh),
        )],
        refresh,
        events: event.into_iter().collect(),
    })
}

/// Returns when a hold of the Application's clusters ends by itself.
fn end_of_hold(cache: &Cache, object_ref: &ObjectRef, context: &Context) -> Option<Timestamp> {
    let works = cache.works_of(object_ref);
    cache.end_of_hold(works.map(|(_, work, _)| &*work.namespace), context.now)
}

/// Returns the patch of an Application, which applies only to the resource version that was read: conditions are written as a
/// whole list, and a user may have requested a hard refresh meanwhile.
fn patch(version: &str, conditions: Option<Vec<Condition>>, refresh: bool) -> Value {
    let mut body = json!({"metadata": {"resourceVersion": version}});
    if let Some(conditions) = conditions {
        body["status"] = json!({"conditions": (!conditions.is_empty()).then_some(conditions)});
    }
    if refresh {
        body["metadata"]["annotations"] = json!({REFRESH: "normal"});
    }
    body
}

/// Returns all conditions in the order in which Argo CD keeps them, so that Argo CD does not reorder them.
fn merged(others: Vec<Condition>, before: &[Condition], desired: &[Condition], now: Timestamp) -> Vec<Condition> {
    let now = format_time(now);
    let since = |condition: &Condition| {
        let same = before.iter().find(|other| conditions::is_same_state(other, condition));
        let same = same.or_else(|| conditions::find_newest(before, desired, condition));
        same.and_then(|same| same.last_transition_time.clone())
            .unwrap_or_else(|| now.clone())
    };
    let desired = desired.iter().map(|condition| Condition {
        last_transition_time: Some(since(condition)),
        ..condition.clone()
    });
    let mut all: Vec<_> = others.into_iter().chain(desired).collect();
    let key = |condition: &Condition| {
        (
            condition.kind.clone(),
            condition.message.clone(),
            condition.last_transition_time.clone(),
        )
    };
    all.sort_by_cached_key(key);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::testing::merge;
    use hub_state::model::Availability;
    use hub_state::reconcile::Settings;
    use hub_state::testing;
    use hub_state::testing::{
        AgentReport, BROKEN, REFUSED, WELL, deleted, now, of_set, set, set_of, stored, tracked, work,
    };
    use runtime::action::Event;
    use runtime::queue::Refresh;
    use runtime::text::TEXT_MAX;

    const LATER: &str = "2026-06-01T13:00:00Z";

    /// A simulated hub with the Application `argocd/shop`.
    struct Hub(Cache, Value);

    impl Hub {
        fn new() -> Self {
            let mut hub = Self(Cache::new("argocd").with_shared_objects(), Value::Null);
            hub.application(&json!({}));
            hub
        }

        fn object_ref() -> ObjectRef {
            ObjectRef::new("argocd", "shop")
        }

        /// Writes the Application with these fields in its metadata.
        fn application(&mut self, metadata: &Value) {
            let base = json!({"namespace": "argocd", "name": "shop", "uid": "u", "resourceVersion": "7"});
            self.1 = json!({"metadata": base, "status": {"sync": {}}});
            self.change(&json!({"metadata": metadata}));
        }

        fn change(&mut self, patch: &Value) {
            merge(&mut self.1, patch);
            self.0.apply(stored(Kind::Applications, &self.1));
        }

        fn on(&mut self, cluster: &str, report: &AgentReport<'_>) -> &mut Self {
            let object_ref = ObjectRef::new(cluster, "shop");
            self.0.apply(work(&object_ref, &tracked("shop", &object_ref), report));
            self
        }

        /// Adds a work of an Application with these fields in its metadata, about which its agent has not reported.
        fn waiting(&mut self, application: &str, cluster: &str, metadata: &str) -> &mut Self {
            let object_ref = ObjectRef::new(cluster, application);
            let metadata = format!("{},{metadata}", tracked(application, &object_ref));
            self.0.apply(work(
                &object_ref,
                &metadata,
                &AgentReport("Unknown", "True", "", BROKEN.3),
            ));
            self
        }

        fn without(&mut self, cluster: &str) -> &mut Self {
            self.0.apply(deleted(Kind::Works, &format!("{cluster}/shop")));
            self
        }

        fn availability(&mut self, cluster: &str, availability: Availability) -> &mut Self {
            self.0.apply(testing::cluster(cluster, availability));
            self
        }

        fn decide(&self, time: Timestamp, stale: bool) -> Option<Action> {
            let settings = Settings::default();
            let context = Context {
                stale,
                ..hub_state::testing::context(time, &settings)
            };
            reconcile(&self.0, &Self::object_ref(), &context)
        }

        /// Reconciles and applies the write.
        fn write(&mut self) -> Option<Action> {
            let action = self.decide(now(), false)?;
            self.change(&json!({"status": {"conditions": conditions_of(&action)}}));
            Some(action)
        }

        fn conditions(&self) -> Vec<(&str, &str)> {
            let application = self.0.application(&Self::object_ref()).expect("it is there");
            application
                .conditions
                .iter()
                .map(|condition| (condition.kind.as_str(), condition.message.as_str()))
                .collect()
        }

        /// Reconciles, applies the write, and returns the Events.
        fn events(&mut self) -> Vec<(&'static str, String)> {
            let text = |event: Event| (event.reason, event.message);
            self.write()
                .map_or(Vec::new(), |action| action.events.into_iter().map(text).collect())
        }
    }

    /// Returns the body of the write.
    fn body(action: &Action) -> &Value {
        let [write] = &action.writes[..] else {
            panic!("{action:?}")
        };
        write.body().expect("a patch")
    }

    fn conditions_of(action: &Action) -> Vec<Condition> {
        let conditions = body(action)["status"]["conditions"].clone();
        serde_json::from_value::<Option<_>>(conditions)
            .expect("conditions")
            .unwrap_or_default()
    }

    fn condition(kind: &str, message: &str) -> Condition {
        Condition {
            kind: kind.to_owned(),
            message: message.to_owned(),
            last_transition_time: Some("2026-01-01T00:00:00Z".to_owned()),
            more: serde_json::Map::from_iter([("reason".to_owned(), "later".into())]),
        }
    }

    #[test]
    fn conditions_name_clusters_by_problem() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL)
            .on("eu2", &BROKEN)
            .on("eu3", &REFUSED)
            .on("eu4", &WELL);
        hub.availability("eu4", Availability::Unknown)
            .write()
            .expect("a change");
        assert_eq!(
            hub.conditions(),
            [
                (
                    "ManagedClusterUnreachableWarning",
                    "eu4: its agent does not report to the hub; showing the last reported state"
                ),
                ("ManifestWorkApplyError", "eu3: Deployment.apps shop/web: forbidden"),
                ("ManifestWorkDegradedWarning", "eu2: Deployment shop/web: no image"),
                (
                    "ManifestWorkInfo",
                    "applied on 3 of 4 clusters, healthy on 2, 2 degraded; 4 objects in 4 works"
                ),
            ]
        );
        assert_eq!(hub.decide(now(), false), None, "once is enough");
        hub.on("eu2", &WELL)
            .on("eu3", &WELL)
            .availability("eu4", Availability::Available)
            .write()
            .expect("a change");
        let info = "applied on 4 of 4 clusters, healthy on 4; 4 objects in 4 works";
        assert_eq!(hub.conditions(), [("ManifestWorkInfo", info)]);
        for cluster in ["eu1", "eu2", "eu3", "eu4"] {
            hub.without(cluster);
        }
        hub.write().expect("a change");
        assert_eq!(hub.conditions(), []);
        assert_eq!(hub.decide(now(), false), None);
    }

    #[test]
    fn conditions_of_others_stay_in_argo_cds_order() {
        let mut hub = Hub::new();
        let others = [
            condition("SharedResourceWarning", "b"),
            condition("ComparisonError", "a"),
        ];
        hub.change(&json!({"status": {"conditions": others}}));
        let action = hub.on("eu1", &BROKEN).write().expect("a change");
        let conditions = conditions_of(&action);
        let kinds: Vec<_> = conditions.iter().map(|condition| condition.kind.as_str()).collect();
        let desired = [
            "ComparisonError",
            "ManifestWorkDegradedWarning",
            "ManifestWorkInfo",
            "SharedResourceWarning",
        ];
        assert_eq!(kinds, desired);
        assert!(others.iter().all(|other| conditions.contains(other)));
        assert_eq!(
            (
                &body(&action)["metadata"]["resourceVersion"],
                &*action.involved_object.uid
            ),
            (&json!("7"), "u")
        );
    }

    #[test]
    fn removes_conditions_of_the_pull_model_when_the_application_leaves_it() {
        let mut hub = Hub::new();
        let others = [
            condition("ComparisonError", "a"),
            condition("ManifestWorkError", "no cluster"),
            condition("ManifestWorkSkipReconcileWarning", "twice"),
            condition("ManifestWorkWriteError", "no"),
        ];
        hub.change(&json!({"status": {"conditions": others}}));
        let action = hub.write().expect("a change");
        assert_eq!(action.events, []);
        assert_eq!(hub.conditions(), [("ComparisonError", "a")]);
    }

    #[test]
    fn unchanged_problem_keeps_its_transition_time() {
        let mut hub = Hub::new();
        hub.on("eu1", &BROKEN).write().expect("a change");
        hub.on("eu1", &AgentReport("True", "False", "no memory", BROKEN.3));
        let later = LATER.parse().expect("a time");
        let action = hub.decide(later, false).expect("a change");
        let conditions = conditions_of(&action);
        let since: Vec<_> = conditions
            .iter()
            .map(|condition| condition.last_transition_time.as_deref())
            .collect();
        assert_eq!(since, [Some("2026-06-01T12:00:00Z"); 2]);
        assert_eq!(action.events, [], "the Event was recorded before");
        hub.on("eu2", &BROKEN);
        let action = hub.decide(later, false).expect("a change");
        let since = |message: &str| {
            let conditions = conditions_of(&action);
            let mut candidates = conditions
                .iter()
                .filter(|condition| condition.message.starts_with(message));
            candidates
                .next()
                .and_then(|condition| condition.last_transition_time.clone())
        };
        assert_eq!(since("eu1: ").as_deref(), Some("2026-06-01T12:00:00Z"));
        assert_eq!(since("eu2: ").as_deref(), Some(LATER));
        assert_eq!(since("applied ").as_deref(), Some(LATER));
    }

    #[test]
    fn warning_stays_until_the_cluster_is_healthy_again() {
        let mut hub = Hub::new();
        hub.on("eu1", &BROKEN).write().expect("a change");
        let on_its_way = AgentReport("False", "True", "no match", "2026-06-01T11:59:50Z");
        hub.on("eu1", &on_its_way).write().expect("a change");
        let info = "applied on 0 of 1 clusters, healthy on 0, 1 progressing; 1 object in 1 work";
        let degraded = ("ManifestWorkDegradedWarning", "eu1: Deployment shop/web: no image");
        assert_eq!(hub.conditions(), [degraded, ("ManifestWorkInfo", info)]);
        let events = hub.on("eu1", &WELL).events();
        assert_eq!(events[0].0, "ManifestWorkRecovered");
    }

    #[test]
    fn bounds_number_and_length_of_conditions_of_a_large_fleet() {
        let mut hub = Hub::new();
        let long = "x".repeat(2 * TEXT_MAX);
        for n in 0..500 {
            hub.on(
                &format!("cluster-{n:03}"),
                &AgentReport("True", "False", &long, BROKEN.3),
            );
        }
        let action = hub.write().expect("a change");
        let conditions = conditions_of(&action);
        assert_eq!(conditions.len(), 12);
        assert!(conditions.iter().all(|condition| condition.message.len() <= TEXT_MAX));
        let rest = conditions
            .iter()
            .find(|condition| condition.message.starts_with("and "));
        let rest = rest.expect("one for the rest");
        assert!(
            rest.message.starts_with("and 490 more clusters: cluster-010, "),
            "{}",
            rest.message
        );
        assert_eq!(action.events.len(), 1);
        let message = &action.events[0].message;
        assert!(message.len() <= 1024 && message.ends_with("…; and 8 more"), "{message}");
        hub.without("cluster-499");
        let recovering = hub.write().expect("other totals");
        assert_eq!(recovering.events, [], "a shorter summary is no news");
    }

    #[test]
    fn events_report_changes_only() {
        let mut hub = Hub::new();
        let info = |text: &str| text.to_owned();
        let well = "applied on 2 of 2 clusters, healthy on 2; 2 objects in 2 works";
        assert_eq!(
            hub.on("eu1", &WELL).on("eu2", &WELL).events(),
            [("ManifestWorkHealthy", info(well))]
        );
        let broken = "eu2: Deployment shop/web: no image";
        assert_eq!(
            hub.on("eu2", &BROKEN).events(),
            [("ManifestWorkDegraded", info(broken))]
        );
        let refused = "eu1: Deployment.apps shop/web: forbidden";
        assert_eq!(
            hub.on("eu1", &REFUSED).events(),
            [("ManifestWorkApplyFailed", info(refused))]
        );
        let unreachable = "eu1: its agent does not report to the hub; showing the last reported state";
        let events = hub.availability("eu1", Availability::Unknown).events();
        assert_eq!(events, [("ManagedClusterUnreachable", info(unreachable))]);
        assert_eq!(
            hub.availability("eu1", Availability::Available).events(),
            [],
            "it is refused still"
        );
        let recovered = format!("resolved: {refused}; resolved: {broken}");
        assert_eq!(
            hub.on("eu1", &WELL).on("eu2", &WELL).events(),
            [("ManifestWorkRecovered", recovered)]
        );
        hub.on("eu2", &BROKEN).write().expect("a change");
        assert_eq!(
            hub.without("eu2").events(),
            [(
                "ManifestWorkHealthy",
                info("applied on 1 of 1 clusters, healthy on 1; 1 object in 1 work")
            )]
        );
    }

    #[test]
    fn counts_works_of_a_placement_and_shows_their_replica_set() {
        let mut hub = Hub::new();
        let name = set_of("shop");
        let fleet = ObjectRef::new("fleet", &name);
        hub.0.apply(set(&fleet, "shop"));
        for cluster in ["eu1", "eu2"] {
            let object_ref = ObjectRef::new(cluster, &name);
            hub.0.apply(work(&object_ref, &of_set(&format!("fleet.{name}")), &WELL));
        }
        assert_eq!(hub.events(), [], "the rollout is not complete");
        let info = format!(
            "applied on 2 of 2 clusters, healthy on 2; 2 objects in 2 works; ManifestWorkReplicaSet fleet/{name}: \
             waiting for OCM's work manager; it needs the feature gate ManifestWorkReplicaSet"
        );
        assert_eq!(hub.conditions(), [("ManifestWorkInfo", &*info)]);
        let done = r#""status":{"conditions":[{"type":"PlacementVerified","status":"True"},
            {"type":"PlacementRolledOut","status":"True"},{"type":"ManifestworkApplied","status":"True"}],
            "summary":{"total":2,"applied":2,"available":2}}"#;
        hub.0.apply(testing::set_with(&fleet, "shop", done));
        assert_eq!(hub.events()[0].0, "ManifestWorkHealthy");
    }

    #[test]
    fn reports_a_placement_that_selects_no_cluster() {
        let mut hub = Hub::new();
        let name = set_of("shop");
        let fleet = ObjectRef::new("fleet", &name);
        let status = |verified: &str, reason: &str| {
            format!(
                r#""spec":{{"placementRefs":[{{"name":"eu"}}]}},"status":{{"conditions":[
                {{"type":"PlacementVerified","status":"{verified}","reason":"{reason}"}},
                {{"type":"PlacementRolledOut","status":"True"}},{{"type":"ManifestworkApplied","status":"True"}}]}}"#
            )
        };
        hub.0.apply(testing::set_with(
            &fleet,
            "shop",
            &status("False", "PlacementDecisionEmpty"),
        ));
        let reason = format!(
            "ManifestWorkReplicaSet fleet/{name}: Placement eu selects no managed cluster: see its condition PlacementSatisfied"
        );
        assert_eq!(hub.events(), [("ManifestWorkNoCluster", reason.clone())]);
        assert_eq!(hub.conditions()[1], ("ManifestWorkNoClusterWarning", &*reason));
        hub.0
            .apply(testing::set_with(&fleet, "shop", &status("True", "AsExpected")));
        assert_eq!(hub.events(), [("ManifestWorkRecovered", format!("resolved: {reason}"))]);
    }

    #[test]
    fn reports_a_work_that_no_agent_has_applied_for_minutes() {
        let mut hub = Hub::new();
        hub.availability("eu1", Availability::Available);
        hub.waiting("shop", "eu1", r#""creationTimestamp":"2026-06-01T11:59:30Z""#);
        let info = (
            "ManifestWorkInfo",
            "applied on 0 of 1 clusters, healthy on 0, 1 waiting; 1 object in 1 work",
        );
        hub.write().expect("a change");
        assert_eq!(hub.conditions(), [info], "it usually takes seconds");
        let due = hub.0.next_deadline().expect("time alone changes the state");
        assert_eq!(due.to_string(), "2026-06-01T12:01:31Z");
        let affected = hub.0.tick(due);
        assert!(
            affected.iter().all(|request| request.refresh == Refresh::Unchanged),
            "Argo CD shows nothing of it"
        );
        hub.write().expect("a change");
        let overdue = "eu1: waiting for the agent of managed cluster eu1 to apply it, for more than 2 minutes";
        assert_eq!(hub.conditions(), [info, ("ManifestWorkOverdueWarning", overdue)]);
        hub.availability("eu1", Availability::Unknown)
            .write()
            .expect("a change");
        let kinds: Vec<_> = hub.conditions().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(
            kinds,
            ["ManagedClusterUnreachableWarning", "ManifestWorkInfo"],
            "there is a better reason"
        );
        hub.availability("eu1", Availability::Available)
            .on("eu1", &WELL)
            .write()
            .expect("a change");
        assert_eq!(hub.conditions().len(), 1);
    }

    #[test]
    fn deletion_shows_the_cluster_that_blocks_it() {
        let mut hub = Hub::new();
        hub.availability("eu2", Availability::Available);
        hub.on("eu1", &WELL).on("eu2", &WELL).write().expect("a change");
        hub.application(&json!({"deletionTimestamp": "2026-06-01T11:00:00Z"}));
        hub.without("eu1")
            .waiting("shop", "eu2", r#""deletionTimestamp":"2026-06-01T11:00:00Z""#)
            .write()
            .expect("a change");
        let overdue = "eu2: the agent of managed cluster eu2 is removing its objects; left: Deployment shop/web, for more than 2 minutes";
        let info = ("ManifestWorkInfo", "deleting: 1 work left on 1 cluster");
        assert_eq!(hub.conditions(), [info, ("ManifestWorkOverdueWarning", overdue)]);
        assert_eq!(hub.decide(now(), true), None, "Argo CD does not refresh it");
    }

    #[test]
    fn deletion_with_hooks_is_left_to_argo_cd() {
        for finalizer in [
            "post-delete-finalizer.argocd.argoproj.io",
            "post-delete-finalizer.argocd.argoproj.io/cleanup",
            "pre-delete-finalizer.argocd.argoproj.io",
        ] {
            let mut hub = Hub::new();
            hub.on("eu1", &BROKEN);
            assert!(hub.decide(now(), false).is_some());
            hub.application(&json!({"deletionTimestamp": "2026-06-01T11:00:00Z", "finalizers": [finalizer]}));
            assert_eq!(hub.decide(now(), true), None, "{finalizer}");
        }
    }

    #[test]
    fn reports_objects_that_another_application_delivers_to_the_same_cluster() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL).on("eu2", &WELL).write().expect("a change");
        hub.waiting("other", "eu2", r#""generation":1"#);
        let shared =
            "eu2: Deployment.apps shop/web is also delivered by Application argocd/other: remove it from one of them";
        assert_eq!(hub.events(), [("ManifestWorkSharedObject", shared.to_owned())]);
        assert_eq!(hub.conditions()[1], ("ManifestWorkSharedObjectWarning", shared));
        let going = r#""deletionTimestamp":"2026-06-01T11:59:59Z""#;
        let events = hub.waiting("other", "eu2", going).events();
        assert_eq!(events, [("ManifestWorkRecovered", format!("resolved: {shared}"))]);
    }

    #[test]
    fn cluster_cannot_report_an_object_of_another_application() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL).write().expect("a change");
        let other = ObjectRef::new("eu1", "other");
        hub.0
            .apply(testing::work_without_objects(&other, &tracked("other", &other), &WELL));
        assert_eq!(hub.decide(now(), false), None);
    }

    #[test]
    fn shows_holds_of_its_clusters_until_they_end() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL).on("eu2", &WELL).write().expect("a change");
        for cluster in ["eu1", "elsewhere"] {
            hub.0.apply(testing::hold(cluster, Some(LATER)));
        }
        let on_hold = format!("eu1: on hold until {LATER}: storage migration");
        assert_eq!(hub.events(), [("ManagedClusterOnHold", on_hold.clone())]);
        assert_eq!(hub.conditions()[0], ("ManagedClusterOnHoldWarning", &*on_hold));
        assert_eq!(hub.decide(now(), false), None, "once is enough");
        let later: Timestamp = LATER.parse().expect("a time");
        let settings = Settings::default();
        let context = hub_state::testing::context(now(), &settings);
        assert_eq!(end_of_hold(&hub.0, &Hub::object_ref(), &context), Some(later));
        let over = hub.decide(later, false).expect("the hold is over");
        assert_eq!(over.events[0].reason, "ManifestWorkRecovered");
        assert!(
            conditions_of(&over)
                .iter()
                .all(|condition| condition.kind != hub_state::condition_types::ON_HOLD)
        );
    }

    #[test]
    fn long_message_keeps_the_cause_at_its_end() {
        let mut hub = Hub::new();
        let spec = "x".repeat(TEXT_MAX);
        let immutable = format!("Job.batch is invalid: spec.template: Invalid value: {spec}: field is immutable");
        hub.on("eu1", &AgentReport("False", "True", &immutable, REFUSED.3))
            .write()
            .expect("a change");
        let (_, message) = hub.conditions()[0];
        assert!(
            message.starts_with("eu1: Deployment.apps shop/web: Job.batch is invalid"),
            "{message}"
        );
        assert!(
            message.ends_with("field is immutable") && message.len() <= TEXT_MAX,
            "{message}"
        );
    }

    #[test]
    fn new_error_replaces_the_one_that_is_kept_while_the_agent_retries() {
        let mut hub = Hub::new();
        hub.on("eu1", &REFUSED).write().expect("a change");
        let retried = AgentReport("False", "True", "quota exceeded", "2026-06-01T11:59:50Z");
        hub.on("eu1", &retried).write().expect("a change");
        let newest = "eu1: Deployment.apps shop/web: quota exceeded";
        assert_eq!(hub.conditions()[0], ("ManifestWorkApplyError", newest));
    }

    #[test]
    fn ignores_applications_of_another_argo_cd() {
        let object_ref = ObjectRef::new("team", "shop");
        let decide = |controller: Value| {
            let mut cache = Cache::new("argocd");
            let metadata = json!({"namespace": "team", "name": "shop"});
            let application = json!({"metadata": metadata, "status": {"controllerNamespace": controller}});
            cache.apply(stored(Kind::Applications, &application));
            let of_work = ObjectRef::new("eu1", &testing::name_of("team_shop"));
            cache.apply(work(&of_work, &tracked("team_shop", &of_work), &BROKEN));
            let settings = Settings::default();
            let context = Context {
                stale: true,
                ..hub_state::testing::context(now(), &settings)
            };
            reconcile(&cache, &object_ref, &context)
        };
        assert!(decide(json!("argocd")).is_some());
        assert_eq!(decide(json!("gitops")), None);
        assert_eq!(decide(Value::Null), None, "no Argo CD has reconciled it yet");
    }

    #[test]
    fn ignores_a_work_that_falsely_claims_an_application() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL).write().expect("a change");
        let object_ref = ObjectRef::new("evil", "own");
        let lies = AgentReport("False", "True", "text of an attacker", BROKEN.3);
        hub.0.apply(work(&object_ref, &tracked("shop", &object_ref), &lies));
        assert_eq!(hub.decide(now(), false), None, "{:?}", hub.conditions());
    }

    #[test]
    fn requests_a_refresh_of_a_stale_application_once() {
        let mut hub = Hub::new();
        assert_eq!(hub.decide(now(), true), None, "it has nothing to do with us");
        hub.on("eu1", &WELL).write().expect("a change");
        let action = hub.decide(now(), true).expect("a refresh");
        assert!(action.refresh && body(&action)["status"].is_null() && action.events.is_empty());
        hub.application(&json!({"annotations": {"argocd.argoproj.io/refresh": "hard"}}));
        hub.write().expect("a change");
        assert_eq!(hub.decide(now(), true), None, "it was asked already");
    }

    #[test]
    fn ignores_applications_that_are_skipped_or_pulled() {
        for skip in ["true", "1", "T"] {
            let mut hub = Hub::new();
            hub.application(&json!({"annotations": {"argocd.argoproj.io/skip-reconcile": skip}}));
            assert_eq!(hub.on("eu1", &BROKEN).decide(now(), true), None);
        }
        let mut hub = Hub::new();
        hub.application(&json!({"annotations": {"argocd.argoproj.io/skip-reconcile": "yes"}}));
        assert!(
            hub.on("eu1", &BROKEN).decide(now(), true).is_some(),
            "which Argo CD does not understand either"
        );
        hub.application(&json!({"labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"}}));
        assert_eq!(hub.decide(now(), true), None, "another controller reconciles it");
    }

    #[test]
    fn parses_totals_from_the_info_condition() {
        let mut hub = Hub::new();
        hub.on("eu1", &WELL).on("eu2", &BROKEN).write().expect("a change");
        let conditions = hub.conditions();
        let (_, info) = conditions.last().expect("the totals");
        let desired = conditions::Totals {
            clusters: 2,
            applied: 2,
            healthy: 1,
            size: Some([2, 2]),
        };
        assert_eq!(conditions::Totals::parse(info), Some(desired));
        for other in ["", "2 clusters", "applied on x of 2 clusters, healthy on 1; "] {
            assert_eq!(conditions::Totals::parse(other), None);
        }
    }
}
