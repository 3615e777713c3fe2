//! Reads, writes and compares the fields of an Application's status that the controller owns.

use super::deployment::Deployment;
use super::text::{bounded, time};
use crate::json::{Json, items, own, text_at};
use jiff::Timestamp;
use ocm::merge_patch;
use primitives::timestamp::format_time;
use serde_json::{Map, Value, json};

/// The fields of an Application's status that the controller owns. Times have whole seconds, as Kubernetes stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirroredStatus {
    /// The health.
    pub health: Health,
    /// The sync status.
    pub sync: Sync,
    /// The state of the last operation.
    pub operation: Option<OperationState>,
    /// The time of the last comparison.
    pub reconciled_at: Option<Timestamp>,
    /// The type of the source, such as a Helm chart or a directory.
    pub source_type: Option<Box<str>>,
    /// The deployments to which the Application can be rolled back.
    pub history: Vec<Deployment>,
    /// The conditions, from any source.
    pub conditions: Vec<Condition>,
}

/// The `status.health` of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The health status.
    pub status: Option<Box<str>>,
    /// The reason.
    pub message: Option<Box<str>>,
    /// The time of the last transition.
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
    /// The phase.
    pub phase: Box<str>,
    /// The start time.
    pub started_at: Timestamp,
    /// The end time.
    pub finished_at: Option<Timestamp>,
    /// The message.
    pub message: Option<Box<str>>,
    /// The number of retries.
    pub retries: Option<i64>,
    /// The synced revision.
    pub revision: Option<Box<str>>,
}

/// A condition of an Application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// The type; its suffix gives the severity.
    pub kind: Box<str>,
    /// The message.
    pub message: Box<str>,
    /// The time of the last transition.
    pub since: Option<Timestamp>,
}

impl MirroredStatus {
    /// Reads an Application's `status`.
    pub fn from_json<V: Json>(status: &V) -> Self {
        let message = |path| text_at(status, path).map(bounded);
        let time = |path| text_at(status, path).and_then(time);
        let revisions = items(status, "/sync/revisions").iter().filter_map(V::as_text);
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
                revisions: revisions.map(Into::into).collect(),
            },
            operation: status.field("operationState").and_then(OperationState::from_json),
            reconciled_at: time("/reconciledAt"),
            source_type: own(status, "/sourceType"),
            history: Deployment::read_history(status),
            conditions: conditions.filter_map(Condition::from_json).collect(),
        };
        mirror.conditions.sort();
        mirror
    }

    /// Returns the JSON to write. The operation state needs an operation, which the feedback does not contain.
    fn to_json(&self) -> Value {
        let mut health = Map::new();
        put(&mut health, "status", self.health.status.as_deref());
        put(&mut health, "message", self.health.message.as_deref());
        put(&mut health, "lastTransitionTime", self.health.since.map(format_time));
        let mut sync = Map::new();
        put(&mut sync, "status", self.sync.status.as_deref());
        put(&mut sync, "revision", self.sync.revision.as_deref());
        if !self.sync.revisions.is_empty() {
            sync.insert("revisions".to_owned(), json!(self.sync.revisions));
        }
        let mut status = Map::new();
        for (key, part) in [("health", health), ("sync", sync)] {
            if !part.is_empty() {
                status.insert(key.to_owned(), part.into());
            }
        }
        if let Some(operation) = &self.operation {
            status.insert("operationState".to_owned(), operation.to_json().into());
        }
        put(&mut status, "reconciledAt", self.reconciled_at.map(format_time));
        put(&mut status, "sourceType", self.source_type.as_deref());
        if !self.history.is_empty() {
            let history: Vec<_> = self.history.iter().map(Deployment::to_json).collect();
            status.insert("history".to_owned(), history.into());
        }
        if !self.conditions.is_empty() {
            let conditions: Vec<_> = self.conditions.iter().map(Condition::to_json).collect();
            status.insert("conditions".to_owned(), conditions.into());
        }
        status.into()
    }
}

impl OperationState {
    fn from_json<V: Json>(state: &V) -> Option<Self> {
        Some(Self {
            phase: own(state, "/phase")?,
            started_at: text_at(state, "/startedAt").and_then(time)?,
            finished_at: text_at(state, "/finishedAt").and_then(time),
            message: text_at(state, "/message").map(bounded),
            retries: state.field("retryCount").and_then(V::as_integer),
            revision: own(state, "/syncResult/revision"),
        })
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut state = Map::new();
        put(&mut state, "phase", Some(&*self.phase));
        put(&mut state, "startedAt", Some(format_time(self.started_at)));
        put(&mut state, "finishedAt", self.finished_at.map(format_time));
        put(&mut state, "message", self.message.as_deref());
        put(&mut state, "retryCount", self.retries);
        if let Some(revision) = &self.revision {
            state.insert("syncResult".to_owned(), json!({"revision": revision}));
        }
        state
    }
}

impl Condition {
    fn from_json(condition: &impl Json) -> Option<Self> {
        Some(Self {
            kind: own(condition, "/type")?,
            message: text_at(condition, "/message").map(bounded).unwrap_or_default(),
            since: text_at(condition, "/lastTransitionTime").and_then(time),
        })
    }

    fn to_json(&self) -> Value {
        let mut condition = Map::new();
        put(&mut condition, "type", Some(&*self.kind));
        put(&mut condition, "message", Some(&*self.message));
        put(&mut condition, "lastTransitionTime", self.since.map(format_time));
        condition.into()
    }
}

fn put<T: Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
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
        state.insert("operation".to_owned(), json!({}));
    }
    Some(json!({ "status": patch }))
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
