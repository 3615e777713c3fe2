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

/// Returns a work that carries these requests, with the status that its agent reports, or without status.
fn work_with(requests: &Requests, reported: Option<Value>) -> PullWork {
    read_work(&work(&nothing_asked(), requests, reported))
}

/// Returns a work that carries these requests, applied by its agent, with its payload hash and these values as feedback.
fn carries(requests: &Requests, values: &[(&str, &str)]) -> PullWork {
    let form = payload(&nothing_asked(), requests);
    work_with(requests, Some(reported(&[&[("payload", &*form)], values].concat())))
}

/// Returns the requests that a work keeps although the Application has none.
fn kept(pull_work: &PullWork) -> Requests {
    let (requests, forwarded) = requests(&nothing_asked(), Some(pull_work));
    assert_eq!(forwarded, Forwarded::default());
    requests
}

fn id(requests: &Requests) -> &str {
    &requests.operation.as_ref().expect("an operation").id
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
fn request_stays_while_the_application_is_not_on_the_cluster() {
    let desired = synced("a", NOON).requests;
    let mut gone = reported(&[("payload", &payload(&nothing_asked(), &desired))]);
    gone["conditions"][1]["status"] = json!("False");
    assert_eq!(kept(&work_with(&desired, Some(gone))), desired);
}

#[test]
fn operation_that_cannot_be_applied_is_replaced() {
    let (first, second) = (synced("a", NOON).requests, synced("b", LATER));
    let mut refused = reported(&[]);
    refused["conditions"][0]["status"] = json!("False");
    for (pull_work, desired) in [
        (work_with(&first, None), &first),
        (work_with(&first, Some(refused)), &second.requests),
    ] {
        let expected = (desired.clone(), Forwarded::default());
        assert_eq!(requests(&second, Some(&pull_work)), expected);
    }
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
    let (first, repeated) = (synced("a", NOON).requests, synced("a", LATER));
    assert_ne!(first, repeated.requests);
    let (pending, begun) = (("operationPending", id(&first)), ("operationBegun", id(&first)));
    let forwarded = Forwarded {
        operation: true,
        refresh: false,
    };
    for (values, desired, forwarded) in [
        (&[pending][..], &first, forwarded),
        // Otherwise it would be run when another commit's turn has come.
        (&[pending, begun], &first, forwarded),
        (&[begun], &repeated.requests, Forwarded::default()),
    ] {
        let pull_work = carries(&first, values);
        assert_eq!(requests(&repeated, Some(&pull_work)), (desired.clone(), forwarded));
    }
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
        ("hard", second.requests.refresh.as_ref().map(|refresh| &refresh.nonce))
    );
    let hydration = application(|object| object["metadata"]["annotations"][names::HYDRATE] = json!("hard")).requests;
    let refresh = hydration.refresh.as_ref().expect("it needs a refresh");
    assert_eq!((&*refresh.kind, refresh.hydrate.as_deref()), ("normal", Some("hard")));
    let hydrating = carries(&hydration, &[("refreshPending", "normal")]);
    let refresh = requests(&second, Some(&hydrating)).0.refresh.expect("a refresh");
    assert_eq!(refresh.hydrate.as_deref(), Some("hard"));
    let done = carries(&refreshed("hard", NOON).requests, &[]);
    assert_eq!(requests(&second, Some(&done)).0, second.requests);
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
    assert_eq!(kept(&pull_work), Requests::default());
}
