//! Property tests for the readers of feedback about an Application, which a managed cluster can forge.

use super::status::{StatusInputs, desired};
use super::tests::{payload, work};
use hub_state::json::{self, borrowed};
use hub_state::pull::feedback;
use hub_state::pull::forwarded::Requests;
use hub_state::pull::mirrored_status::{MirroredStatus, patch};
use hub_state::pull::pull_work::PullWork;
use hub_state::pull::text::TEXT_MAX;
use hub_state::testing::pull::{application, read_work, reported};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};
use testing::{holds, hostile_json, hostile_text, is_plain_line, tampered};

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// Generates feedback for the current payload, with values of any type.
fn reports() -> BoxedStrategy<Value> {
    #[rustfmt::skip]
    const TEXTS: &[&str] = &[
        "Healthy", "Degraded", "Synced", "OutOfSync", "Running", "Succeeded", "NaN", "2026-06-01T11:59:00Z",
        "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "-009999-01-01T00:00:00Z", "2026-06-01T11:59:60Z",
        "applicationset-controller",
    ];
    let rules = feedback::rules(2);
    let paths = rules.as_array().into_iter().flatten();
    let paths = paths.flat_map(|rule| rule["jsonPaths"].as_array().into_iter().flatten());
    let names = paths.filter_map(|path| path["name"].as_str().filter(|name| *name != "payload"));
    let names: Vec<_> = names.map(str::to_owned).collect();
    let text = prop_oneof![2 => select(TEXTS).prop_map(str::to_owned), 1 => hostile_text()];
    let value = prop_oneof![
        5 => text.prop_map(|text| json!({"type": "String", "string": text})),
        1 => any::<i64>().prop_map(|number| json!({"type": "Integer", "integer": number})),
        1 => hostile_json().prop_map(|value| json!({"type": "Integer", "integer": value})),
        1 => hostile_json().prop_map(|value| json!({"type": "JsonRaw", "jsonRaw": value.to_string()})),
        1 => hostile_json(),
    ];
    let values = vec((select(names), value), 0..12);
    let reports = values.prop_map(|values| {
        let form = payload(&application(|_| ()), &Requests::default());
        let mut reported = reported(&[("payload", &form)]);
        let list = reported["statusFeedback"]["values"].as_array_mut().expect("a list");
        list.extend(
            values
                .into_iter()
                .map(|(name, value)| json!({"name": name, "fieldValue": value})),
        );
        reported
    });
    let tampered = reports.clone().prop_flat_map(|reported| tampered(vec![reported]));
    prop_oneof![3 => reports, 1 => tampered].boxed()
}

#[track_caller]
fn assert_bounded(mirror: &MirroredStatus) {
    let operation = mirror.operation.as_ref();
    let messages = [
        mirror.health.message.as_deref(),
        operation.and_then(|operation| operation.message.as_deref()),
    ];
    for message in messages.into_iter().flatten() {
        assert!(
            message.len() <= TEXT_MAX && message.split('\n').all(is_plain_line),
            "{message:?}"
        );
    }
    for condition in &mirror.conditions {
        assert!(
            condition.message.len() <= TEXT_MAX && is_plain_line(&condition.message),
            "{condition:?}"
        );
    }
    let words = [
        mirror.health.status.as_deref(),
        mirror.sync.status.as_deref(),
        mirror.sync.revision.as_deref(),
        mirror.source_type.as_deref(),
        operation.map(|operation| &*operation.phase),
        operation.and_then(|operation| operation.revision.as_deref()),
    ];
    let revisions = mirror.sync.revisions.iter().map(|revision| &**revision);
    for word in words.into_iter().flatten().chain(revisions) {
        assert!(word.len() <= 512 && is_plain_line(word), "{word:?}");
    }
}

#[test]
fn writes_any_reported_status_once_and_bounded() {
    holds(1200, reports, |report| {
        // The status alone makes no work unreadable.
        let pull_work = read_work(&work(&application(|_| ()), &Requests::default(), Some(report)));
        let inputs = StatusInputs {
            application: None,
            cluster: "eu1",
            pull_work: Some(&pull_work),
            overdue: None,
            notes: &[],
            read_only: false,
            is_ours: true,
            now: now(),
        };
        let before = MirroredStatus::default();
        let after = desired(&before, &inputs);
        assert_bounded(&after);
        assert!(
            after.health.status.is_some() && after.sync.status.is_some(),
            "it is never empty"
        );
        let written = patch(&before, &after, false).expect("it says something");
        assert!(written.to_string().len() < 100_000);
        let read = MirroredStatus::from_json(&borrowed(&written["status"]));
        assert_eq!(
            patch(&read, &desired(&read, &inputs), false),
            None,
            "nothing is left to be written"
        );
    });
}

#[test]
fn parses_or_ignores_any_work() {
    let inputs = || {
        let form = payload(&application(|_| ()), &Requests::default());
        let report = reported(&[
            ("payload", &form),
            ("healthStatus", "Healthy"),
            ("syncStatus", "Synced"),
        ]);
        tampered(vec![work(&application(|_| ()), &Requests::default(), Some(report))])
    };
    holds(1200, inputs, |work| {
        let pull_work = PullWork::from_json(&borrowed(&work)).expect("it is not deep");
        // The API server stores no number that exceeds the range of a float.
        if let Ok(read) = json::parse(&work.to_string()) {
            let borrowed = PullWork::from_json(&read).expect("it is not deep");
            assert_eq!(format!("{borrowed:?}"), format!("{pull_work:?}"));
        }
        let Some(pull_work) = pull_work else { return };
        assert!(!pull_work.name.is_empty());
        if let Some(claim) = &pull_work.claim {
            assert!(!claim.namespace.is_empty() && claim.name == pull_work.name);
        }
    });
}
