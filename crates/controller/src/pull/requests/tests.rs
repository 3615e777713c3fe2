//! Tests of requests, step by step.

use super::super::tests::{application, payload, reported, work};
use super::*;
use ocm::tracking::TRACKING_ID;

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
    read(&work(&nothing_asked(), requests, Some(reported(&all))))
}

pub(super) fn read(work: &Value) -> PullWork {
    PullWork::read(work).expect("it is of the pull model")
}

#[test]
fn an_operation_waits_while_the_cluster_is_in_the_middle_of_one_of_its_own() {
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
fn a_request_is_carried_and_then_taken_and_then_dropped() {
    for asked in [synced("a", NOON), refreshed("normal", NOON)] {
        let (desired, forwarded) = requests(&asked, None);
        assert_eq!(
            (&desired, forwarded),
            (&asked.requests, Forwarded::default()),
            "first the work"
        );
        let other = read(&work(&nothing_asked(), &Requests::default(), None));
        assert_eq!(requests(&asked, Some(&other)), (desired.clone(), Forwarded::default()));
        let offline = read(&work(&nothing_asked(), &desired, None));
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
fn nothing_is_dropped_before_the_cluster_says_that_it_is_done() {
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
    assert_eq!(requests(&nothing_asked(), Some(&read(&late))).0, desired);
    let silent = work(&nothing_asked(), &desired, Some(reported(&[])));
    assert_eq!(requests(&nothing_asked(), Some(&read(&silent))).0, desired);
    let mut gone = reported(&[("payload", &payload(&nothing_asked(), &desired))]);
    gone["conditions"][1]["status"] = json!("False");
    let gone = work(&nothing_asked(), &desired, Some(gone));
    assert_eq!(
        requests(&nothing_asked(), Some(&read(&gone))).0,
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
    let offline = read(&work(&nothing_asked(), &first, None));
    assert_eq!(requests(&second, Some(&offline)), (first.clone(), Forwarded::default()));
    let done = carries(&first, &[]);
    assert_eq!(
        requests(&second, Some(&done)),
        (second.requests.clone(), Forwarded::default())
    );
    let mut refused = reported(&[]);
    refused["conditions"][0]["status"] = json!("False");
    let refused = read(&work(&nothing_asked(), &first, Some(refused)));
    assert_eq!(
        requests(&second, Some(&refused)).0,
        second.requests,
        "which cannot be applied"
    );
}

#[test]
fn a_set_that_asks_for_what_has_been_done_meanwhile_gets_nothing_more() {
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
fn what_is_not_done_is_not_asked_for_twice() {
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
fn a_refresh_can_be_asked_for_at_any_time_and_a_hard_one_stays_hard() {
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
fn no_refresh_comes_or_goes_while_the_work_carries_an_operation() {
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
fn another_cluster_is_asked_anew() {
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
fn a_request_has_the_same_name_after_a_restart_and_another_when_it_is_made_again() {
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
fn an_operation_arrives_as_it_was_asked_for() {
    let asked = application(|object| {
        object["operation"] = json!({"sync": {"prune": true}, "info": [{"name": "Reason", "value": "x"}]});
    });
    let pull_work = read(&work(&asked, &asked.requests, None));
    assert_eq!(pull_work.operation, asked.requests.operation);
    let value: Value = serde_json::from_str(&pull_work.operation.expect("an operation").value).expect("JSON");
    assert_eq!(value["sync"], json!({"prune": true}));
    assert_eq!(value["info"][0], json!({"name": "Reason", "value": "x"}));
    assert_eq!(value["info"][1]["name"], names::OPERATION);
}

#[test]
fn what_the_peers_have_left_in_a_work_is_no_request() {
    let mut work = work(&nothing_asked(), &Requests::default(), None);
    let object = &mut work["spec"]["workload"]["manifests"][0];
    object["operation"] = json!({"sync": {}});
    object["metadata"]["annotations"][REFRESH] = json!("normal");
    object["metadata"]["annotations"][TRACKING_ID] = json!("x");
    let pull_work = read(&work);
    assert_eq!((&pull_work.operation, &pull_work.refresh), (&None, &None));
    assert_eq!(requests(&nothing_asked(), Some(&pull_work)).0, Requests::default());
}
