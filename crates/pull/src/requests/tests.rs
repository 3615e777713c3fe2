//! Tests of requests, step by step.

use super::*;
use crate::tests::{payload, work};
use hub_state::annotations::REFRESH;
use hub_state::pull::forwarded::TIME_SEPARATOR;
use hub_state::testing::pull::{application, read_work, reported};
use ocm::pull_model as names;
use ocm::tracking::TRACKING_ID;
use serde_json::{Value, json};

const NOON: &str = "2026-06-01T12:00:00Z";
const LATER: &str = "2026-06-01T12:00:05Z";

/// Requests a sync of this revision on the hub's Application.
pub(super) fn click(object: &mut Value, revision: &str, time: &str) {
    object["operation"] = json!({"sync": {"revision": revision}});
    note(object, &json!({"f:operation": {"f:sync": {}}}), time);
}

pub(super) fn ask(object: &mut Value, kind: &str, time: &str) {
    object["metadata"]["annotations"][REFRESH] = json!(kind);
    note(
        object,
        &json!({"f:metadata": {"f:annotations": {format!("f:{REFRESH}"): {}}}}),
        time,
    );
}

fn note(object: &mut Value, fields: &Value, time: &str) {
    let entry = json!({"manager": "argocd-server", "time": time, "fieldsV1": fields});
    match &mut object["metadata"]["managedFields"] {
        Value::Array(entries) => entries.push(entry),
        none => *none = json!([entry]),
    }
}

fn synced(revision: &str, time: &str) -> Application {
    application(|object| click(object, revision, time))
}

fn refreshed(kind: &str, time: &str) -> Application {
    application(|object| ask(object, kind, time))
}

fn nothing_asked() -> Application {
    application(|_| ())
}

/// Returns a work that carries these requests, applied by its agent, with its payload hash and these values as feedback.
fn carries(requests: &Requests, values: &[(&str, &str)]) -> PullWork {
    let form = payload(&nothing_asked(), requests);
    let mut all = vec![("payload", &*form)];
    all.extend(values);
    read_work(&work(&nothing_asked(), requests, Some(reported(&all))))
}

#[test]
fn operation_waits_for_one_that_the_cluster_runs() {
    for (phase, goes) in [
        ("Running", false),
        ("Terminating", false),
        ("Succeeded", true),
        ("Failed", true),
    ] {
        let state = [("operationStatePhase", phase), ("operationStateStartedAt", NOON)];
        let (desired, forwarded) = requests(&synced("abc", NOON), Some(&carries(&Requests::default(), &state)));
        assert_eq!(
            (desired.operation.is_some(), forwarded.operation),
            (goes, false),
            "{phase}"
        );
    }
}

#[test]
fn request_is_carried_then_cleared_then_dropped() {
    for asked in [synced("a", NOON), refreshed("normal", NOON)] {
        let (desired, forwarded) = requests(&asked, None);
        assert_eq!(
            (&desired, forwarded),
            (&asked.requests, Forwarded::default()),
            "first the work"
        );
        let other = read_work(&work(&nothing_asked(), &Requests::default(), None));
        assert_eq!(requests(&asked, Some(&other)), (desired.clone(), Forwarded::default()));
        let offline = read_work(&work(&nothing_asked(), &desired, None));
        let forwarded = Forwarded {
            operation: desired.operation.is_some(),
            refresh: desired.refresh.is_some(),
        };
        assert_eq!(
            requests(&asked, Some(&offline)),
            (desired.clone(), forwarded),
            "then the Application"
        );
        assert_eq!(
            requests(&nothing_asked(), Some(&offline)),
            (desired.clone(), Forwarded::default())
        );
        let done = carries(&desired, &[]);
        assert_eq!(
            requests(&asked, Some(&done)),
            (desired, forwarded),
            "as long as it stands there"
        );
        let none = (Requests::default(), Forwarded::default());
        assert_eq!(requests(&nothing_asked(), Some(&done)), none);
    }
}

#[test]
fn request_stays_until_the_cluster_confirms_it() {
    let desired = synced("a", NOON).requests;
    let id = desired
        .operation
        .as_ref()
        .map(|it| it.id.to_string())
        .expect("an operation");
    let running = carries(&desired, &[("operationPending", &id), ("operationBegun", &id)]);
    assert_eq!(requests(&nothing_asked(), Some(&running)).0, desired);
    let late = work(
        &nothing_asked(),
        &desired,
        Some(reported(&[("payload", "of an earlier form")])),
    );
    assert_eq!(requests(&nothing_asked(), Some(&read_work(&late))).0, desired);
    let silent = work(&nothing_asked(), &desired, Some(reported(&[])));
    assert_eq!(requests(&nothing_asked(), Some(&read_work(&silent))).0, desired);
    let mut gone = reported(&[("payload", &payload(&nothing_asked(), &desired))]);
    gone["conditions"][1]["status"] = json!("False");
    let gone = work(&nothing_asked(), &desired, Some(gone));
    assert_eq!(
        requests(&nothing_asked(), Some(&read_work(&gone))).0,
        desired,
        "what is not there says nothing"
    );
    let desired = refreshed("hard", NOON).requests;
    let pending = carries(&desired, &[("refreshPending", "hard")]);
    assert_eq!(requests(&nothing_asked(), Some(&pending)).0, desired);
}

#[test]
fn an_operation_waits_for_the_one_before_it() {
    let (first, second) = (synced("a", NOON).requests, synced("b", LATER));
    let running = carries(&first, &[("operationPending", "x")]);
    assert!(
        requests(&second, Some(&running)).0 == second.requests,
        "another's has taken its place"
    );
    let id = first
        .operation
        .as_ref()
        .map(|it| it.id.to_string())
        .expect("an operation");
    let running = carries(&first, &[("operationPending", &id)]);
    assert_eq!(requests(&second, Some(&running)), (first.clone(), Forwarded::default()));
    let offline = read_work(&work(&nothing_asked(), &first, None));
    assert_eq!(requests(&second, Some(&offline)), (first.clone(), Forwarded::default()));
    let done = carries(&first, &[]);
    assert_eq!(
        requests(&second, Some(&done)),
        (second.requests.clone(), Forwarded::default())
    );
    let mut refused = reported(&[]);
    refused["conditions"][0]["status"] = json!("False");
    let refused = read_work(&work(&nothing_asked(), &first, Some(refused)));
    assert_eq!(
        requests(&second, Some(&refused)).0,
        second.requests,
        "which cannot be applied"
    );
}

#[test]
fn drops_a_sync_of_a_set_that_is_already_synced() {
    let of = |who: &str| {
        let operation = json!({"initiatedBy": {"username": who}, "sync": {}});
        application(|object| object["operation"] = operation)
    };
    for (who, status, forwarded) in [
        (names::SET_CONTROLLER, "Synced", true),
        (names::SET_CONTROLLER, "OutOfSync", false),
        ("admin", "Synced", false),
    ] {
        let pull_work = carries(&Requests::default(), &[("syncStatus", status)]);
        let (desired, what) = requests(&of(who), Some(&pull_work));
        assert_eq!(
            (desired.operation.is_none(), what.operation),
            (forwarded, forwarded),
            "{who}, {status}"
        );
    }
}

#[test]
fn repeats_a_sync_of_a_set_that_was_shown_and_does_not_count() {
    let of = |requested: &str, phase: &str| {
        application(|object| {
            click(object, "a", requested);
            object["operation"]["initiatedBy"] = json!({"username": names::SET_CONTROLLER});
            object["status"] = json!({
                "sync": {"status": "Synced"},
                "operationState": {"phase": phase, "startedAt": NOON},
            });
            if phase == "Succeeded" {
                object["status"]["operationState"]["finishedAt"] = json!(NOON);
            }
            note(object, &json!({"f:status": {"f:operationState": {}}}), NOON);
        })
    };
    let pull_work = carries(&Requests::default(), &[("syncStatus", "Synced")]);
    for (requested, phase, repeats) in [
        (LATER, "Succeeded", true),
        (NOON, "Succeeded", false),
        (LATER, "Running", false),
    ] {
        let application = of(requested, phase);
        let (desired, forwarded) = requests(&application, Some(&pull_work));
        let expected = application.requests.operation.filter(|_| repeats);
        assert_eq!(
            (desired.operation, forwarded.operation),
            (expected, !repeats),
            "{requested}, {phase}"
        );
    }
}

#[test]
fn repeated_request_is_not_sent_while_the_first_is_pending() {
    let (first, requeue_after) = (synced("a", NOON).requests, synced("a", LATER));
    assert_ne!(first, requeue_after.requests);
    let id = first
        .operation
        .as_ref()
        .map(|it| it.id.to_string())
        .expect("an operation");
    let forwarded = Forwarded {
        operation: true,
        refresh: false,
    };
    let waiting = carries(&first, &[("operationPending", &id)]);
    assert_eq!(requests(&requeue_after, Some(&waiting)), (first.clone(), forwarded));
    let begun = carries(&first, &[("operationPending", &id), ("operationBegun", &id)]);
    assert_eq!(
        requests(&requeue_after, Some(&begun)),
        (first.clone(), forwarded),
        "or it would be run when another commit's turn has come"
    );
    let done = carries(&first, &[("operationBegun", &id)]);
    assert_eq!(
        requests(&requeue_after, Some(&done)),
        (requeue_after.requests.clone(), Forwarded::default())
    );
}

#[test]
fn accepts_refreshes_at_any_time_and_keeps_hard_ones_hard() {
    let (first, second) = (refreshed("normal", NOON).requests, refreshed("normal", LATER));
    assert_ne!(first, second.requests, "two clicks");
    let stamped = |stamp: &str| {
        application(|object| {
            ask(object, "normal", NOON);
            object["metadata"]["annotations"][names::REFRESH_TIMESTAMP] = json!(stamp);
        })
    };
    assert_ne!(stamped("1").requests, stamped("2").requests, "within one second");
    let pending = carries(&first, &[("refreshPending", "normal")]);
    assert_eq!(
        requests(&second, Some(&pending)),
        (second.requests.clone(), Forwarded::default())
    );
    let hard = carries(&refreshed("hard", NOON).requests, &[("refreshPending", "hard")]);
    let (desired, _) = requests(&second, Some(&hard));
    let refresh = desired.refresh.expect("a refresh");
    assert_eq!(
        (&*refresh.kind, Some(&refresh.nonce)),
        ("hard", second.requests.refresh.as_ref().map(|it| &it.nonce))
    );
    let done = carries(&refreshed("hard", NOON).requests, &[]);
    assert_eq!(requests(&second, Some(&done)).0, second.requests);
}

#[test]
fn refresh_does_not_change_while_an_operation_is_carried() {
    let both = Requests {
        operation: synced("a", NOON).requests.operation,
        refresh: refreshed("normal", NOON).requests.refresh,
    };
    let id = both
        .operation
        .as_ref()
        .map(|it| it.id.to_string())
        .expect("an operation");
    let running = carries(&both, &[("operationPending", &id)]);
    assert_eq!(
        requests(&nothing_asked(), Some(&running)).0,
        both,
        "the refresh is done"
    );
    let running = carries(&synced("a", NOON).requests, &[("operationPending", &id)]);
    let (desired, forwarded) = requests(&refreshed("normal", LATER), Some(&running));
    assert_eq!((desired, forwarded), (synced("a", NOON).requests, Forwarded::default()));
    let done = carries(&both, &[]);
    assert_eq!(requests(&nothing_asked(), Some(&done)).0, Requests::default());
}

#[test]
fn new_cluster_gets_only_requests_on_the_application() {
    let asked = synced("a", NOON);
    assert_eq!(
        requests(&asked, None).0,
        asked.requests,
        "what stands on the Application"
    );
    assert_eq!(
        requests(&nothing_asked(), None).0,
        Requests::default(),
        "and nothing that was taken from it"
    );
}

#[test]
fn request_id_is_stable_across_restarts_and_unique_per_click() {
    let id = |object: &dyn Fn(&mut Value)| application(object).requests.operation.expect("an operation").id;
    let first = id(&|object| click(object, "a", NOON));
    assert_eq!(first, id(&|object| click(object, "a", NOON)));
    assert_eq!(first.split_once(TIME_SEPARATOR).map(|(_, time)| time), Some(NOON));
    assert_ne!(first, id(&|object| click(object, "a", LATER)));
    assert_ne!(first, id(&|object| click(object, "b", NOON)));
    let written = |object: &mut Value| {
        click(object, "a", NOON);
        object["metadata"]["resourceVersion"] = json!("8");
        object["status"] = json!({"health": {"status": "Healthy"}});
        note(object, &json!({"f:status": {}}), LATER);
    };
    assert_eq!(first, id(&written), "whatever else is written");
    let unknown = |object: &mut Value| object["operation"] = json!({"sync": {"revision": "a"}});
    assert_eq!(id(&unknown), id(&unknown));
}

#[test]
fn operation_is_delivered_unchanged() {
    let asked = application(|object| {
        object["operation"] = json!({"sync": {"prune": true}, "info": [{"name": "Reason", "value": "x"}]});
    });
    let pull_work = read_work(&work(&asked, &asked.requests, None));
    assert_eq!(pull_work.operation, asked.requests.operation);
    let value: Value = serde_json::from_str(&pull_work.operation.expect("an operation").value).expect("JSON");
    assert_eq!(value["sync"], json!({"prune": true}));
    assert_eq!(value["info"][0], json!({"name": "Reason", "value": "x"}));
    assert_eq!(value["info"][1]["name"], names::OPERATION);
}

#[test]
fn ignores_requests_that_a_peer_left_in_a_work() {
    let mut work = work(&nothing_asked(), &Requests::default(), None);
    let object = &mut work["spec"]["workload"]["manifests"][0];
    object["operation"] = json!({"sync": {}});
    object["metadata"]["annotations"][REFRESH] = json!("normal");
    object["metadata"]["annotations"][TRACKING_ID] = json!("x");
    let pull_work = read_work(&work);
    assert_eq!((&pull_work.operation, &pull_work.refresh), (&None, &None));
    assert_eq!(requests(&nothing_asked(), Some(&pull_work)).0, Requests::default());
}
