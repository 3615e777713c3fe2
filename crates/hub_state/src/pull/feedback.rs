//! Selects and reads the status feedback of a cluster: single values that the agent extracts from its Application.
//!
//! A path to a list or a mapping is an error for the agent, and so is a list index out of range; a filter without a match is not.
//! So conditions are selected by type.

use super::mirrored_status::{Condition, Health, MirroredStatus, OperationState, Sync};
use super::text::{bounded, bounded_line, bounded_word, time};
use crate::annotations::REFRESH;
use crate::json::{at, integer_at, items, text_at};
use manifest::value::Value as Borrowed;
use ocm::pull_model as names;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The feedback values that both peer integrations select, by name.
const PEERS: [(&str, &str); 5] = [
    ("healthStatus", ".status.health.status"),
    ("syncStatus", ".status.sync.status"),
    ("operationStateStartedAt", ".status.operationState.startedAt"),
    ("operationStatePhase", ".status.operationState.phase"),
    ("syncRevision", ".status.sync.revision"),
];

/// The additional feedback values that the controller selects.
const OURS: [(&str, &str); 12] = [
    ("healthMessage", ".status.health.message"),
    ("healthLastTransitionTime", ".status.health.lastTransitionTime"),
    ("operationStateFinishedAt", ".status.operationState.finishedAt"),
    ("operationStateMessage", ".status.operationState.message"),
    ("operationStateRetryCount", ".status.operationState.retryCount"),
    (
        "operationStateInitiatedBy",
        ".status.operationState.operation.initiatedBy.username",
    ),
    ("operationStateDryRun", ".status.operationState.operation.sync.dryRun"),
    (
        "operationStateSelectedKind",
        ".status.operationState.operation.sync.resources[0].kind",
    ),
    ("syncResultRevision", ".status.operationState.syncResult.revision"),
    ("reconciledAt", ".status.reconciledAt"),
    ("sourceType", ".status.sourceType"),
    (
        "payload",
        r".metadata.annotations['argocd-ocm-cmp\.github\.io/payload']",
    ),
];

/// The revisions of several sources: the prefix of a source's number, starting at 0, in the name of the feedback value, and the list.
const REVISIONS: [(&str, &str); 2] = [
    ("syncRevision", ".status.sync.revisions"),
    ("syncResultRevision", ".status.operationState.syncResult.revisions"),
];

/// The maximum number of sources of an Application whose revisions are read; a cluster may report any number.
const SOURCES_MAX: usize = 100;

/// The suffix of a condition type in the name of its transition time.
const SINCE: &str = "LastTransitionTime";

/// Returns the feedback rules for an Application with this number of sources. The rules of the peer integrations come first, one
/// value each, in their form.
pub fn rules(sources: usize) -> Value {
    let path = |name: &str, path: &str| json!({"name": name, "path": path});
    let rule = |paths: Vec<Value>| {
        let mut rule = json!({"type": "JSONPaths"});
        rule["jsonPaths"] = paths.into();
        rule
    };
    let mut rules: Vec<Value> = PEERS
        .iter()
        .map(|(name, field)| rule(vec![path(name, field)]))
        .collect();
    let mut ours: Vec<Value> = OURS.iter().map(|(name, field)| path(name, field)).collect();
    ours.push(path(
        "refreshPending",
        &format!(".metadata.annotations['{}']", REFRESH.replace('.', r"\.")),
    ));
    let info = format!(r#"info[?(@.name=="{}")].value"#, names::OPERATION);
    ours.push(path("operationPending", &format!(".operation.{info}")));
    ours.push(path(
        "operationBegun",
        &format!(".status.operationState.operation.{info}"),
    ));
    for source in 0..sources.min(SOURCES_MAX) {
        for (name, list) in REVISIONS {
            ours.push(path(&format!("{name}{source}"), &format!("{list}[{source}]")));
        }
    }
    for kind in names::CONDITIONS {
        let condition = format!(r#".status.conditions[?(@.type=="{kind}")]"#);
        ours.push(path(kind, &format!("{condition}.message")));
        ours.push(path(
            &format!("{kind}{SINCE}"),
            &format!("{condition}.lastTransitionTime"),
        ));
    }
    rules.push(rule(ours));
    rules.into()
}

/// The status feedback of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    pub reported: MirroredStatus,
    /// The hash of the Application that the status describes.
    pub payload: Option<Box<str>>,
    /// The refresh request that the cluster's Argo CD has not processed yet.
    pub refresh_pending: Option<Box<str>>,
    /// The ID of the operation that the cluster's Argo CD has not completed yet.
    pub operation_pending: Option<Box<str>>,
    /// The ID of the last operation that it started, if the controller forwarded it.
    pub operation_begun: Option<Box<str>>,
    /// The user or component that requested the last operation.
    pub initiated_by: Option<Box<str>>,
    /// True if the last operation was a dry run, or synced only selected resources, as each self-heal does.
    pub is_partial: bool,
    /// True if the cluster reports nothing.
    pub is_silent: bool,
}

impl Feedback {
    /// Reads the feedback of the Application's manifest. Ignores values that are empty or of another type.
    pub(super) fn from_manifest(manifest: &Borrowed<'_>) -> Self {
        let values = items(manifest, "/statusFeedback/values").iter();
        let values = values.filter_map(|value| Some((text_at(value, "/name")?, at(value, "/fieldValue")?)));
        let values: BTreeMap<_, _> = values.collect();
        let of_type = |name: &str, kind| {
            let value = values.get(name).copied();
            value.filter(|value| text_at(value, "/type") == Some(kind))
        };
        // With its feature gate RawFeedbackJsonString, the agent reports several results of a path, such as of several conditions of
        // a type, as a list in JSON; without it, the first.
        let string = |name: &str| match of_type(name, "JsonRaw") {
            Some(list) => serde_json::from_str::<Vec<String>>(text_at(list, "/jsonRaw")?)
                .ok()?
                .into_iter()
                .next()
                .filter(|text| !text.is_empty()),
            None => text_at(of_type(name, "String")?, "/string").map(str::to_owned),
        };
        let word = |name: &str| string(name).as_deref().map(bounded_word);
        let message = |name| string(name).as_deref().map(bounded);
        let time = |name: &str| string(name).as_deref().and_then(time);
        let [revisions, synced] = REVISIONS.map(|(name, _)| {
            let revisions = (0..SOURCES_MAX).map_while(|source| word(&format!("{name}{source}")));
            revisions.collect()
        });
        let operation = word("operationStatePhase").zip(time("operationStateStartedAt"));
        let operation = operation.map(|(phase, started_at)| OperationState {
            phase,
            started_at,
            finished_at: time("operationStateFinishedAt"),
            message: message("operationStateMessage"),
            retries: of_type("operationStateRetryCount", "Integer").and_then(|value| integer_at(value, "/integer")),
            revision: word("syncResultRevision"),
            revisions: synced,
            request: None,
        });
        let conditions = names::CONDITIONS.iter().filter_map(|kind| {
            Some(Condition {
                kind: (*kind).into(),
                message: string(kind).as_deref().map(bounded_line)?,
                since: time(&format!("{kind}{SINCE}")),
            })
        });
        Self {
            reported: MirroredStatus {
                health: Health {
                    status: word("healthStatus"),
                    message: message("healthMessage"),
                    since: time("healthLastTransitionTime"),
                },
                sync: Sync {
                    status: word("syncStatus"),
                    revision: word("syncRevision"),
                    revisions,
                },
                operation,
                reconciled_at: time("reconciledAt"),
                source_type: word("sourceType"),
                history: Vec::new(),
                conditions: conditions.collect(),
                has_deployed: false,
            },
            payload: word("payload"),
            refresh_pending: word("refreshPending"),
            operation_pending: word("operationPending"),
            operation_begun: word("operationBegun"),
            initiated_by: word("operationStateInitiatedBy"),
            // Argo CD omits a false value.
            is_partial: values.contains_key("operationStateDryRun")
                || values.contains_key("operationStateSelectedKind"),
            is_silent: values.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::borrowed;
    use crate::testing::pull::reported;

    fn read(manifest: &Value) -> Feedback {
        Feedback::from_manifest(&borrowed(manifest))
    }

    #[test]
    fn first_feedback_rules_match_the_peers() {
        let rules = rules(0);
        let five = [0, 1, 2, 3, 4].map(|number: usize| rules[number]["jsonPaths"].clone());
        let one = |name: &str, path: &str| json!([{"name": name, "path": path}]);
        let desired = [
            one("healthStatus", ".status.health.status"),
            one("syncStatus", ".status.sync.status"),
            one("operationStateStartedAt", ".status.operationState.startedAt"),
            one("operationStatePhase", ".status.operationState.phase"),
            one("syncRevision", ".status.sync.revision"),
        ];
        assert_eq!(five, desired);
    }

    #[test]
    fn requests_each_value_once_and_the_revisions_of_each_source() {
        let names = |sources| -> Vec<String> {
            let rules = rules(sources);
            let rules = borrowed(&rules);
            let paths = rules.items().iter().flat_map(|rule| items(rule, "/jsonPaths"));
            paths
                .map(|path| text_at(path, "/name").expect("a name").to_owned())
                .collect()
        };
        let mut all = names(2);
        assert_eq!(all.len(), names(0).len() + 4);
        assert!(all.contains(&"syncRevision1".to_owned()));
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn bounds_what_a_cluster_can_report() {
        let names: Vec<_> = (0..20_000).map(|source| format!("syncRevision{source}")).collect();
        let mut values: Vec<_> = names.iter().map(|name| (&**name, "abc")).collect();
        values.push(("reconciledAt", "-000001-06-01T12:00:00Z"));
        let feedback = read(&reported(&values));
        assert_eq!(feedback.reported.sync.revisions.len(), SOURCES_MAX);
        assert_eq!(feedback.reported.reconciled_at, None, "the API server refuses it");
    }

    #[test]
    fn reads_every_feedback_value() {
        let mut manifest = reported(&[
            ("healthStatus", "Degraded"),
            ("healthMessage", "it crashes"),
            ("healthLastTransitionTime", "2026-06-01T12:00:00Z"),
            ("syncStatus", "Synced"),
            ("syncRevision", "abc"),
            ("syncRevision0", "abc"),
            ("syncRevision1", "def"),
            ("operationStatePhase", "Succeeded"),
            ("operationStateStartedAt", "2026-06-01T11:59:00Z"),
            ("operationStateFinishedAt", "2026-06-01T11:59:30+00:00"),
            ("operationStateMessage", "done"),
            ("syncResultRevision", "abc"),
            ("syncResultRevision0", "abc"),
            ("reconciledAt", "2026-06-01T12:00:00Z"),
            ("sourceType", "Helm"),
            ("SyncError", "no"),
            ("SyncErrorLastTransitionTime", "2026-06-01T12:00:00Z"),
            ("payload", "p"),
            ("refreshPending", "normal"),
            ("operationPending", "o"),
            ("operationBegun", "b"),
        ]);
        let retries = json!({"name": "operationStateRetryCount", "fieldValue": {"type": "Integer", "integer": 2}});
        let dry_run = json!({"name": "operationStateDryRun", "fieldValue": {"type": "Boolean", "boolean": true}});
        assert!(!read(&manifest).is_partial);
        assert!(read(&reported(&[("operationStateSelectedKind", "Deployment")])).is_partial);
        let values = manifest["statusFeedback"]["values"].as_array_mut();
        values.expect("a list").extend([retries, dry_run]);
        let text = |text: &str| Some(Box::from(text));
        let noon = time("2026-06-01T12:00:00Z");
        let desired = Feedback {
            reported: MirroredStatus {
                history: Vec::new(),
                health: Health {
                    status: text("Degraded"),
                    message: text("it crashes"),
                    since: noon,
                },
                sync: Sync {
                    status: text("Synced"),
                    revision: text("abc"),
                    revisions: vec!["abc".into(), "def".into()],
                },
                operation: Some(OperationState {
                    phase: "Succeeded".into(),
                    started_at: time("2026-06-01T11:59:00Z").expect("a time"),
                    finished_at: time("2026-06-01T11:59:30Z"),
                    message: text("done"),
                    retries: Some(2),
                    revision: text("abc"),
                    revisions: vec!["abc".into()],
                    request: None,
                }),
                reconciled_at: noon,
                source_type: text("Helm"),
                conditions: vec![Condition {
                    kind: "SyncError".into(),
                    message: "no".into(),
                    since: noon,
                }],
                has_deployed: false,
            },
            payload: text("p"),
            refresh_pending: text("normal"),
            operation_pending: text("o"),
            operation_begun: text("b"),
            initiated_by: None,
            is_partial: true,
            is_silent: false,
        };
        assert_eq!(read(&manifest), desired);
    }

    #[test]
    fn bounds_and_escapes_texts_of_a_cluster() {
        let long = "x".repeat(10_000);
        let read = |name, text| read(&reported(&[(name, text)])).reported;
        let word = read("healthStatus", &long).health.status.expect("a word");
        assert_eq!(word.len(), 512);
        let word = read("syncRevision", "a\nb\u{1b}[2J\u{202e}").sync.revision;
        assert_eq!(word.as_deref(), Some("a b [2J "));
        let message = read("healthMessage", "one\ntwo\u{1b}\u{2028}").health.message;
        assert_eq!(message.as_deref(), Some("one\ntwo  "), "a message keeps its lines");
        let condition = &read("SyncError", "one\ntwo").conditions[0];
        assert_eq!(&*condition.message, "one two");
    }

    #[test]
    fn reads_the_first_of_several_conditions_of_a_type() {
        let value = |name: &str, list: Value| json!({"name": name, "fieldValue": {"type": "JsonRaw", "jsonRaw": list.to_string()}});
        let mut manifest = reported(&[]);
        manifest["statusFeedback"]["values"] = json!([
            value("SharedResourceWarning", json!(["a is shared", "b is shared"])),
            value(
                "SharedResourceWarningLastTransitionTime",
                json!(["2026-06-01T12:00:00Z", "2026-06-01T13:00:00Z"])
            ),
        ]);
        let condition = Condition {
            kind: "SharedResourceWarning".into(),
            message: "a is shared".into(),
            since: time("2026-06-01T12:00:00Z"),
        };
        assert_eq!(read(&manifest).reported.conditions, [condition]);
    }

    #[test]
    fn ignores_empty_values_and_values_of_other_types() {
        let started = [
            ("operationStatePhase", "Running"),
            ("reconciledAt", "today"),
            ("syncStatus", ""),
        ];
        assert_eq!(read(&reported(&started)).reported, MirroredStatus::default());
        for value in [
            json!({"type": "Integer", "integer": 1}),
            json!({"type": "JsonRaw", "jsonRaw": "[]"}),
            json!({"type": "String"}),
            json!({"type": "String", "string": null}),
            json!({"type": "Boolean", "boolean": true, "string": "x"}),
            json!({"string": "x"}),
            Value::Null,
        ] {
            let mut manifest = reported(&[]);
            manifest["statusFeedback"]["values"] = json!([{"name": "healthStatus", "fieldValue": value}, {}, "x"]);
            let feedback = read(&manifest);
            assert_eq!(feedback.reported, MirroredStatus::default(), "{manifest}");
            assert!(!feedback.is_silent);
        }
        assert!(read(&reported(&[])).is_silent);
        for broken in [json!({}), json!({"statusFeedback": {"values": {}}}), Value::Null] {
            assert_eq!(read(&broken).reported, MirroredStatus::default());
        }
    }
}
