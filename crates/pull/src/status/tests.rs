//! Tests of an Application's status derived from feedback.

use super::*;
use crate::tests::{payload, work};
use hub_state::json::borrowed;
use hub_state::pull::forwarded::Requests;
use hub_state::testing::pull::{application, read_work, reported};
use serde_json::{Value, json};
use testing::merge;

const NOON: &str = "2026-06-01T12:00:00Z";
const LATER: &str = "2026-06-01T12:05:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

fn pull_work(reported: Option<Value>) -> PullWork {
    read_work(&work(&application(|_| ()), &Requests::default(), reported))
}

/// Returns a work with feedback on the current payload.
fn current(values: &[(&str, &str)]) -> Value {
    let form = payload(&application(|_| ()), &Requests::default());
    reported(&[&[("payload", &*form)], values].concat())
}

fn inputs(pull_work: Option<&PullWork>) -> StatusInputs<'_> {
    StatusInputs {
        application: None,
        cluster: "eu1",
        pull_work,
        overdue: None,
        notes: &[],
        read_only: false,
        is_ours: true,
        now: at(NOON),
    }
}

/// Returns a work with feedback on the current payload of an Application that is well, and more.
fn well(more: &[&[(&str, &str)]]) -> Value {
    current(&[&WELL[..], &more.concat()].concat())
}

/// The status of an Application.
struct Hub(Value);

impl Hub {
    fn new() -> Self {
        Self(json!({}))
    }

    /// Returns the write in this situation, and checks that a second one is not needed.
    fn write(&mut self, inputs: &StatusInputs<'_>) -> Option<Value> {
        let before = MirroredStatus::from_json(&borrowed(&self.0));
        let requested = is_comparison_requested(inputs.pull_work);
        let patch = super::patch(&before, &desired(&before, inputs), requested)?;
        merge(&mut self.0, &patch["status"]);
        let after = MirroredStatus::from_json(&borrowed(&self.0));
        let later = StatusInputs {
            now: at(LATER),
            ..*inputs
        };
        assert_eq!(
            super::patch(&after, &desired(&after, &later), requested),
            None,
            "one write per change"
        );
        required(&self.0);
        Some(patch)
    }

    fn hears(&mut self, reported: Value) -> Option<Value> {
        self.write(&inputs(Some(&pull_work(Some(reported)))))
    }

    fn health(&self) -> &str {
        self.0["health"]["status"].as_str().unwrap_or_default()
    }

    fn message(&self) -> &str {
        self.0["health"]["message"].as_str().unwrap_or_default()
    }
}

/// Checks the fields that the Application's CRD requires.
fn required(status: &Value) {
    let needs = |path: &str, keys: &[&str]| {
        let part = status.pointer(path);
        assert!(
            part.is_none_or(|part| keys.iter().all(|key| part.get(*key).is_some())),
            "{path} of {status}"
        );
    };
    needs("/sync", &["status"]);
    needs("/operationState", &["operation", "phase", "startedAt"]);
    needs("/operationState/syncResult", &["revision"]);
    for condition in status["conditions"].as_array().into_iter().flatten() {
        assert!(condition.get("type").is_some() && condition.get("message").is_some());
    }
}

const WELL: [(&str, &str); 3] = [
    ("healthStatus", "Healthy"),
    ("syncStatus", "Synced"),
    ("syncRevision", "abc"),
];

const SUCCEEDED: [(&str, &str); 4] = [
    ("operationStatePhase", "Succeeded"),
    ("operationStateStartedAt", "2026-06-01T11:59:00Z"),
    ("operationStateFinishedAt", "2026-06-01T11:59:30Z"),
    ("syncResultRevision", "abc"),
];

#[test]
fn writes_the_clusters_status_immediately_and_once() {
    let mut hub = Hub::new();
    let revisions = [("syncRevision0", "abc"), ("syncRevision1", "def")];
    // Argo CD leaves the single revision of the result empty.
    let synced = [("syncResultRevision0", "abc"), ("syncResultRevision1", "def")];
    let all = [&WELL[..], &SUCCEEDED[..3], &revisions, &synced].concat();
    let patch = hub.hears(current(&all)).expect("a write");
    let desired = json!({"status": {
        "health": {"status": "Healthy", "lastTransitionTime": NOON},
        "sync": {"status": "Synced", "revision": "abc", "revisions": ["abc", "def"]},
        "operationState": {
            "operation": {},
            "phase": "Succeeded",
            "startedAt": "2026-06-01T11:59:00Z",
            "finishedAt": "2026-06-01T11:59:30Z",
            "syncResult": {"revision": "", "revisions": ["abc", "def"]},
        },
    }});
    assert_eq!(patch, desired, "and never Progressing before Healthy");
    assert_eq!(hub.hears(current(&all)), None);
}

#[test]
fn healthy_application_stays_healthy_on_other_changes() {
    let mut hub = Hub::new();
    hub.hears(well(&[]));
    let more = [&WELL[..], &SUCCEEDED, &[("SyncError", "no")]].concat();
    let patch = hub.hears(current(&more)).expect("a write");
    assert_eq!(patch["status"].get("health"), None, "{patch}");
    assert_eq!(
        hub.hears(reported(&[("payload", "of before"), ("healthStatus", "Progressing")])),
        None
    );
    assert_eq!(hub.hears(reported(&[])), None);
    assert_eq!(hub.health(), "Healthy");
}

#[test]
fn patch_has_only_differences_and_removes_dropped_fields() {
    let mut hub = Hub::new();
    hub.hears(well(&[&SUCCEEDED, &[("healthMessage", "x"), ("SyncError", "no")]]));
    let patch = hub.hears(current(&[
        ("healthStatus", "Healthy"),
        ("syncStatus", "OutOfSync"),
        ("syncRevision", "abc"),
    ]));
    let desired = json!({"status": {
        "health": {"message": null},
        "sync": {"status": "OutOfSync"},
        "operationState": null,
        "conditions": null,
    }});
    assert_eq!(patch, Some(desired));
}

#[test]
fn unreported_application_is_progressing_with_a_reason() {
    let unheard = pull_work(None);
    let silent = pull_work(Some(reported(&[])));
    let dormant = pull_work(Some(current(&[])));
    for (pull_work, why) in [
        (None, "waiting for eu1: its agent has not applied the Application"),
        (
            Some(&unheard),
            "waiting for eu1: its agent has not applied the Application",
        ),
        (Some(&silent), "waiting for eu1: no feedback yet"),
        (
            Some(&dormant),
            "waiting for eu1: its Argo CD has not reconciled the Application",
        ),
    ] {
        let mut hub = Hub::new();
        hub.write(&inputs(pull_work)).expect("a write");
        assert_eq!((hub.health(), hub.message()), ("Progressing", why));
        assert_eq!(hub.0["sync"], json!({"status": "Unknown"}));
    }
}

#[test]
fn apply_error_is_degraded_with_its_reason() {
    let mut refused = reported(&[
        ("payload", "of before"),
        ("healthStatus", "Healthy"),
        ("syncStatus", "Synced"),
    ]);
    refused["conditions"] = json!([
        {"type": "Applied", "status": "False", "message": "no such kind", "observedGeneration": 2},
    ]);
    let mut hub = Hub::new();
    hub.hears(well(&[&SUCCEEDED]));
    hub.hears(refused.clone()).expect("a write");
    assert_eq!(
        (hub.health(), hub.message()),
        ("Degraded", "eu1 could not apply the Application: no such kind")
    );
    assert_eq!(hub.0["sync"], json!({"status": "Unknown"}));
    let condition =
        json!({"type": "ManifestWorkApplyError", "message": "eu1: no such kind", "lastTransitionTime": NOON});
    assert_eq!(hub.0["conditions"], json!([condition]));
    assert_eq!(hub.0["operationState"]["phase"], "Succeeded");
    refused["conditions"][0]["message"] = json!("timeout");
    let other = pull_work(Some(refused.clone()));
    let later = StatusInputs {
        now: at(LATER),
        ..inputs(Some(&other))
    };
    hub.write(&later).expect("a write");
    let condition = json!({"type": "ManifestWorkApplyError", "message": "eu1: timeout", "lastTransitionTime": NOON});
    assert_eq!(hub.0["conditions"], json!([condition]), "no new problem");
    hub.hears(well(&[])).expect("a write");
    assert_eq!((hub.health(), hub.0.get("conditions")), ("Healthy", None));
    let form = payload(&application(|_| ()), &Requests::default());
    for value in refused["statusFeedback"]["values"].as_array_mut().expect("a list") {
        if value["name"] == "payload" {
            value["fieldValue"]["string"] = json!(form);
        }
    }
    hub.hears(refused).expect("a write");
    assert_eq!(hub.health(), "Healthy", "it stands there as it should");
    assert_eq!(hub.0["conditions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn application_removed_from_the_cluster_is_missing() {
    let mut gone = well(&[]);
    gone["conditions"][1]["status"] = json!("False");
    let mut hub = Hub::new();
    hub.hears(well(&[]));
    hub.hears(gone).expect("a write");
    assert_eq!(
        (hub.health(), hub.message()),
        ("Missing", "the Application is not on eu1")
    );
}

#[test]
fn read_only_works_show_the_reported_status() {
    let peers = pull_work(Some(reported(&WELL)));
    let mut hub = Hub::new();
    let frozen = StatusInputs {
        read_only: true,
        ..inputs(Some(&peers))
    };
    hub.write(&frozen).expect("a write");
    assert_eq!(hub.health(), "Healthy");
}

#[test]
fn partial_status_is_completed_with_unknown() {
    let mut hub = Hub::new();
    hub.hears(current(&[("healthStatus", "Healthy")]));
    assert_eq!(hub.0["sync"], json!({"status": "Unknown"}));
    hub.hears(current(&[("syncStatus", "Synced")]));
    assert_eq!(hub.health(), "Unknown");
    hub.hears(current(&[("healthStatus", "Splendid"), ("syncStatus", "Odd")]));
    assert_eq!(
        (hub.health(), &hub.0["sync"]["status"]),
        ("Splendid", &json!("Odd")),
        "words are passed on"
    );
}

#[test]
fn rolling_sync_sees_only_finished_operations() {
    let running = |by: &'static str| {
        let state = [
            ("healthStatus", "Missing"),
            ("syncStatus", "OutOfSync"),
            ("operationStatePhase", "Running"),
            ("operationStateStartedAt", NOON),
            ("operationStateInitiatedBy", by),
        ];
        current(&state)
    };
    let phase = |hub: &Hub| hub.0["operationState"]["phase"].clone();
    let mut hub = Hub::new();
    hub.hears(running("applicationset-controller"));
    assert_eq!((phase(&hub), hub.health()), (Value::Null, "Missing"));
    hub.hears(well(&[&SUCCEEDED]));
    assert_eq!(phase(&hub), "Succeeded");
    hub.hears(running("admin"));
    assert_eq!(phase(&hub), "Running", "an operation of a user is shown");
}

#[test]
fn hubs_own_condition_alone_causes_no_write() {
    let unknown = json!([{"type": "InvalidSpecError", "message": "error getting cluster by server: not found"}]);
    let mut hub = Hub::new();
    hub.hears(well(&[]));
    hub.0["conditions"] = unknown.clone();
    let unchanged = pull_work(Some(well(&[])));
    assert_eq!(
        hub.write(&inputs(Some(&unchanged))),
        None,
        "it would say it again at once"
    );
    hub.hears(well(&[&SUCCEEDED]));
    assert_eq!(hub.0.get("conditions"), None, "it says it again where it is still so");
}

#[test]
fn cleared_operation_shows_as_running() {
    let asked = application(|object| {
        object["operation"] = json!({"sync": {}});
        let fields = json!({"f:operation": {}});
        object["metadata"]["managedFields"] = json!([{"manager": "argocd-server", "time": NOON, "fieldsV1": fields}]);
    });
    let id = asked.requests.operation.as_ref().expect("an operation").id.to_string();
    let form = payload(&application(|_| ()), &asked.requests);
    let pull_works = |reported: Value| read_work(&work(&application(|_| ()), &asked.requests, Some(reported)));
    let mut hub = Hub::new();
    hub.hears(well(&[&SUCCEEDED]));
    // As Argo CD does when a user requests a sync.
    hub.0["operationState"] = Value::Null;
    let before = pull_works(well(&[&SUCCEEDED]));
    let with_request = StatusInputs {
        application: Some(&asked),
        ..inputs(Some(&before))
    };
    hub.write(&with_request).expect("a write");
    // Kargo requests a sync again that is not shown as its own.
    let requested = asked.requests.operation.as_ref().expect("an operation").to_json();
    let waiting = json!({
        "operation": requested, "phase": "Running", "startedAt": NOON, "message": "waiting for eu1 to start the operation",
    });
    assert_eq!(hub.0["operationState"], waiting);
    assert_eq!(hub.health(), "Healthy", "which is not in doubt");
    let existing = [&WELL[..], &SUCCEEDED, &[("payload", &form), ("operationPending", &id)]].concat();
    let existing = pull_works(reported(&existing));
    assert_eq!(
        hub.write(&inputs(Some(&existing))),
        None,
        "and what it did before is not shown"
    );
    let running = [("operationStatePhase", "Running"), ("operationStateStartedAt", LATER)];
    let marks = [("payload", &*form), ("operationPending", &id), ("operationBegun", &id)];
    let begun = pull_works(reported(&[&WELL[..], &running, &marks].concat()));
    hub.write(&inputs(Some(&begun))).expect("a write");
    assert_eq!(
        hub.0["operationState"],
        json!({"operation": requested, "phase": "Running", "startedAt": LATER})
    );
    let over = well(&[&SUCCEEDED, &[("operationBegun", &*id)]]);
    hub.hears(over).expect("a write, when the work no longer carries it");
    let state = &hub.0["operationState"];
    assert_eq!(
        (&state["phase"], &state["operation"]),
        (&json!("Succeeded"), &requested)
    );
    hub.hears(well(&[&running])).expect("a write");
    assert_eq!(
        hub.0["operationState"]["operation"],
        json!({}),
        "one of the cluster's own"
    );
}

#[test]
fn keeps_foreign_conditions_and_replaces_ours() {
    let condition = |kind: &str| json!({"type": kind, "message": "eu1: x", "lastTransitionTime": NOON});
    let mut hub =
        Hub(json!({"conditions": [condition("SyncError"), condition("Mine"), condition("ManifestWorkInfo")]}));
    let well = pull_work(Some(well(&[&[("ComparisonError", "y")]])));
    let notes = [Condition {
        kind: "ManagedClusterUnreachableWarning".into(),
        message: "z".into(),
        since: None,
    }];
    let silent = StatusInputs {
        notes: &notes,
        ..inputs(Some(&well))
    };
    hub.write(&silent).expect("a write");
    let reported = |hub: &Hub| -> Vec<String> {
        let conditions = hub.0["conditions"].as_array().into_iter().flatten();
        conditions
            .map(|condition| condition["type"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        reported(&hub),
        ["ComparisonError", "ManagedClusterUnreachableWarning", "Mine"]
    );
    hub.write(&inputs(Some(&well))).expect("a write");
    assert_eq!(reported(&hub), ["ComparisonError", "Mine"]);
    let conditions = hub.0["conditions"].as_array_mut().expect("a list");
    conditions.reverse();
    assert_eq!(hub.write(&inputs(Some(&well))), None, "in whatever order");
}

#[test]
fn reconciled_at_alone_is_written_at_most_hourly() {
    let mut hub = Hub::new();
    let compared = |time| well(&[&SUCCEEDED, &[("reconciledAt", time)]]);
    hub.hears(compared("2026-06-01T11:59:10Z")).expect("a write");
    let patch = hub.hears(compared("2026-06-01T11:59:31Z"));
    assert_eq!(
        patch,
        Some(json!({"status": {"reconciledAt": "2026-06-01T11:59:31Z"}})),
        "after an operation"
    );
    assert_eq!(hub.hears(compared("2026-06-01T12:02:31Z")), None);
    assert!(hub.hears(compared("2026-06-01T12:59:31Z")).is_some(), "an hour later");
}
