//! Reads, writes and compares the fields of an Application's status that the controller owns.

use super::forwarded::OperationRequest;
use super::text::{bounded, time};
use crate::json::{self, at, integer_at, items, own, text_at, without_empty};
use jiff::Timestamp;
use manifest::value::Value as Borrowed;
use ocm::merge_patch;
use primitives::timestamp::format_time;
use serde_json::{Value, json};

/// The fields of an Application's status that the controller owns. Times have whole seconds, as Kubernetes stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirroredStatus {
    pub health: Health,
    pub sync: Sync,
    pub operation: Option<OperationState>,
    pub reconciled_at: Option<Timestamp>,
    /// The type of the source, such as a Helm chart or a directory.
    pub source_type: Option<Box<str>>,
    /// The deployments to which the Application can be rolled back.
    pub history: Vec<Deployment>,
    /// The conditions, from any source.
    pub conditions: Vec<Condition>,
    /// True if the status has fields that only the Argo CD that runs the Application writes, such as its resources: the hub's ran it before.
    pub has_deployed: bool,
}

/// The `status.health` of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub status: Option<Box<str>>,
    pub message: Option<Box<str>>,
    pub since: Option<Timestamp>,
}

/// The `status.sync` of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// The sync status; the API server rejects the object without it.
    pub status: Option<Box<str>>,
    /// The compared revision.
    pub revision: Option<Box<str>>,
    /// The compared revisions of several sources.
    pub revisions: Vec<Box<str>>,
}

/// The `status.operationState` of an Application. The API server rejects it without its phase and its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationState {
    pub phase: Box<str>,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub message: Option<Box<str>>,
    pub retries: Option<i64>,
    /// The synced revision.
    pub revision: Option<Box<str>>,
    /// The synced revisions of several sources.
    pub revisions: Vec<Box<str>>,
    /// The operation, if the controller forwarded it: a client such as Kargo knows its own by its `info`, and repeats it otherwise.
    pub request: Option<OperationRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// The type; its suffix gives the severity.
    pub kind: Box<str>,
    pub message: Box<str>,
    pub since: Option<Timestamp>,
}

impl MirroredStatus {
    pub fn from_json(status: &Borrowed<'_>) -> Self {
        let message = |path| text_at(status, path).map(bounded);
        let time = |path| text_at(status, path).and_then(time);
        let conditions = items(status, "/conditions").iter();
        let mut mirror = Self {
            health: Health {
                status: own(status, "/health/status"),
                message: message("/health/message"),
                since: time("/health/lastTransitionTime"),
            },
            sync: Sync {
                status: own(status, "/sync/status"),
                revision: own(status, "/sync/revision"),
                revisions: texts(status, "/sync/revisions"),
            },
            operation: at(status, "/operationState").and_then(OperationState::from_json),
            reconciled_at: time("/reconciledAt"),
            source_type: own(status, "/sourceType"),
            history: Deployment::read_history(status),
            conditions: conditions.filter_map(Condition::from_json).collect(),
            has_deployed: DEPLOYED
                .iter()
                .any(|path| at(status, path).is_some_and(|field| !field.is_empty_collection())),
        };
        mirror.conditions.sort();
        mirror
    }

    /// Returns the JSON to write, without the operation itself.
    fn to_json(&self) -> Value {
        let Self { health, sync, .. } = self;
        let time = |at: Option<Timestamp>| at.map(format_time);
        // The present content does not matter, because it is never written.
        let deployed = self.has_deployed.then_some(true);
        let operation = self.operation.as_ref().map(|state| {
            // The API server rejects a result without a revision.
            let none: Option<Box<str>> = (!state.revisions.is_empty()).then(Box::default);
            json!({
                "phase": state.phase,
                "startedAt": format_time(state.started_at),
                "finishedAt": time(state.finished_at),
                "message": state.message,
                "retryCount": state.retries,
                "syncResult": {
                    "revision": state.revision.as_ref().or(none.as_ref()),
                    "revisions": state.revisions,
                    "resources": deployed,
                },
            })
        });
        let condition = |condition: &Condition| {
            let since = time(condition.since);
            without_empty(json!({"type": condition.kind, "message": condition.message, "lastTransitionTime": since}))
        };
        without_empty(json!({
            "health": {"status": health.status, "message": health.message, "lastTransitionTime": time(health.since)},
            "sync": {
                "status": sync.status, "revision": sync.revision, "revisions": sync.revisions, "comparedTo": deployed,
            },
            "resources": deployed,
            "summary": deployed,
            "operationState": operation,
            "reconciledAt": time(self.reconciled_at),
            "sourceType": self.source_type,
            "history": self.history.iter().map(Deployment::to_json).collect::<Vec<_>>(),
            "conditions": self.conditions.iter().map(condition).collect::<Vec<_>>(),
        }))
    }
}

/// The fields of a status that only the Argo CD that runs the Application writes.
const DEPLOYED: [&str; 4] = [
    "/resources",
    "/summary",
    "/sync/comparedTo",
    "/operationState/syncResult/resources",
];

fn texts(object: &Borrowed<'_>, path: &str) -> Vec<Box<str>> {
    let texts = items(object, path).iter().filter_map(Borrowed::as_str);
    texts.map(Into::into).collect()
}

impl OperationState {
    fn from_json(state: &Borrowed<'_>) -> Option<Self> {
        Some(Self {
            phase: own(state, "/phase")?,
            started_at: text_at(state, "/startedAt").and_then(time)?,
            finished_at: text_at(state, "/finishedAt").and_then(time),
            message: text_at(state, "/message").map(bounded),
            retries: integer_at(state, "/retryCount"),
            revision: own(state, "/syncResult/revision"),
            revisions: texts(state, "/syncResult/revisions"),
            request: OperationRequest::of_state(state),
        })
    }
}

impl Condition {
    fn from_json(condition: &Borrowed<'_>) -> Option<Self> {
        Some(Self {
            kind: own(condition, "/type")?,
            message: text_at(condition, "/message").map(bounded).unwrap_or_default(),
            since: text_at(condition, "/lastTransitionTime").and_then(time),
        })
    }
}

/// A deployment: an entry of `status.history`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    pub id: i64,
    /// The start time, which distinguishes deployments.
    pub started: Option<Timestamp>,
    /// The entry, as JSON.
    pub text: Box<str>,
}

impl Deployment {
    pub fn read_history(status: &Borrowed<'_>) -> Vec<Self> {
        let entries = items(status, "/history").iter();
        let read = |entry: &Borrowed<'_>| Self {
            id: integer_at(entry, "/id").unwrap_or_default(),
            started: text_at(entry, "/deployStartedAt").and_then(time),
            text: json::to_string(entry).into(),
        };
        entries.map(read).collect()
    }

    pub fn to_json(&self) -> Value {
        serde_json::from_str(&self.text).expect("it was written as JSON")
    }
}

/// The maximum delay of the last comparison's time, in seconds: the clusters' Argo CDs compare every few minutes, and a write for
/// each comparison would be most of all writes.
const MAX_RECONCILED_AT_LAG: i64 = 3600;

/// Returns the merge patch to the desired status, or `None` if nothing changes.
///
/// The time of the last comparison alone is written at most once an hour, except if a client waits for it: after an operation, and
/// if a comparison was requested. The ApplicationSet controller of Argo CD 3.6 continues a RollingSync only after it has seen the
/// time of a comparison that it requested (`needsReconcile` in `applicationset/progressivesync`).
pub fn patch(current: &MirroredStatus, desired: &MirroredStatus, comparison_requested: bool) -> Option<Value> {
    // The common case, which needs no JSON.
    if current == desired {
        return None;
    }
    let (before, after) = (current.to_json(), desired.to_json());
    let mut patch = merge_patch::between(&before, &after)?;
    let only = patch
        .as_object()
        .is_some_and(|patch| patch.len() == 1 && patch.contains_key("reconciledAt"));
    if only && !comparison_requested && !is_late(current, desired) {
        return None;
    }
    if let Some(Value::Object(state)) = patch.get_mut("operationState") {
        let [before, mut after] = [current, desired].map(operation);
        // They are large, and may contain Secrets.
        if let Some(Value::Object(sync)) = after.get_mut("sync") {
            sync.remove("manifests");
        }
        // The API server rejects a state without an operation.
        let operation = merge_patch::between(&before, &after).unwrap_or_else(|| json!({}));
        state.insert("operation".to_owned(), operation);
    }
    Some(json!({ "status": patch }))
}

fn operation(status: &MirroredStatus) -> Value {
    let request = status.operation.as_ref().and_then(|state| state.request.as_ref());
    request.map_or_else(|| json!({}), OperationRequest::to_json)
}

/// Returns true if the time of the last comparison needs a write by itself: if it is too old, or if a client such as `argocd app
/// sync` waits for a comparison after an operation.
fn is_late(current: &MirroredStatus, desired: &MirroredStatus) -> bool {
    let (Some(before), Some(after)) = (current.reconciled_at, desired.reconciled_at) else {
        return true;
    };
    let finished = desired.operation.as_ref().and_then(|operation| operation.finished_at);
    after.as_second().saturating_sub(before.as_second()) >= MAX_RECONCILED_AT_LAG
        || finished.is_some_and(|finished| before < finished && finished <= after)
}
