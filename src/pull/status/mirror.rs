//! The fields of an Application's status that are ours: read, written, and compared.

use crate::pull::history::Deployment;
use crate::pull::{items, own, text};
use crate::status;
use crate::text::{is_unprintable, one_line, shortened};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The fields of an Application's status that are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirror {
    /// Its health.
    pub health: Health,
    /// How it compares with Git.
    pub sync: Sync,
    /// Its last operation.
    pub operation: Option<OperationState>,
    /// When it was compared last.
    pub reconciled_at: Option<Box<str>>,
    /// What its source is: a chart, a folder.
    pub source_type: Option<Box<str>>,
    /// What it can be rolled back to.
    pub history: Vec<Deployment>,
    /// What else is to be said, whoever says it.
    pub conditions: Vec<Condition>,
}

/// An Application's `status.health`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The word for it.
    pub status: Option<Box<str>>,
    /// Why.
    pub message: Option<Box<str>>,
    /// Since when.
    pub since: Option<Box<str>>,
}

/// An Application's `status.sync`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// The word for it, without which the API server takes none of it.
    pub status: Option<Box<str>>,
    /// What it was compared with.
    pub revision: Option<Box<str>>,
    /// The same for each source of several.
    pub revisions: Vec<Box<str>>,
}

/// An Application's `status.operationState`. The API server takes none without its phase and its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationState {
    /// How far it is.
    pub phase: Box<str>,
    /// When it began.
    pub started_at: Box<str>,
    /// When it ended.
    pub finished_at: Option<Box<str>>,
    /// What it says.
    pub message: Option<Box<str>>,
    /// How often it was tried again.
    pub retries: Option<i64>,
    /// What was synced.
    pub revision: Option<Box<str>>,
}

/// A condition of an Application.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Its type, whose ending says how grave it is.
    pub kind: Box<str>,
    /// What is to be said.
    pub message: Box<str>,
    /// Since when.
    pub since: Option<Box<str>>,
}

/// The most of what is kept of a text, in bytes.
pub const TEXT_MAX: usize = 4096;

/// The most of what is kept of a word or a revision, in bytes.
pub(in crate::pull) const WORD_MAX: usize = 512;

/// Cuts a text that is too long to be kept of many Applications. It keeps its lines, and nothing else that a terminal acts on.
pub(in crate::pull) fn bounded(text: &str) -> Box<str> {
    let text = shortened(text, TEXT_MAX);
    let is_odd = |char| char != '\n' && is_unprintable(char);
    if text.contains(is_odd) {
        text.replace(is_odd, " ").into()
    } else {
        text.into()
    }
}

/// The same in one line.
pub(in crate::pull) fn bounded_line(text: &str) -> Box<str> {
    one_line(&shortened(text, TEXT_MAX)).into()
}

/// The same of what is short.
pub(in crate::pull) fn bounded_word(text: &str) -> Box<str> {
    one_line(&shortened(text, WORD_MAX)).into()
}

/// A time as Kubernetes writes it; nothing for what is none, which the API server would not take.
pub(in crate::pull) fn time(text: &str) -> Option<Box<str>> {
    let time: Timestamp = text.parse().ok()?;
    Some(status::time(time).into())
}

impl Mirror {
    /// Reads an Application's `status`.
    #[must_use]
    pub fn read(status: &Value) -> Self {
        let message = |path| text(status, path).map(bounded);
        let time = |path| text(status, path).and_then(time);
        let revisions = items(status, "/sync/revisions").iter().filter_map(Value::as_str);
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
            operation: status.get("operationState").and_then(OperationState::read),
            reconciled_at: time("/reconciledAt"),
            source_type: own(status, "/sourceType"),
            history: Deployment::read(status),
            conditions: conditions.filter_map(Condition::read).collect(),
        };
        mirror.conditions.sort();
        mirror
    }

    /// What is written of it. An operation must be there where its state is, and nothing of it comes back.
    fn to_json(&self) -> Value {
        let mut health = Map::new();
        put(&mut health, "status", self.health.status.as_deref());
        put(&mut health, "message", self.health.message.as_deref());
        put(&mut health, "lastTransitionTime", self.health.since.as_deref());
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
        put(&mut status, "reconciledAt", self.reconciled_at.as_deref());
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
    fn read(state: &Value) -> Option<Self> {
        Some(Self {
            phase: own(state, "/phase")?,
            started_at: text(state, "/startedAt").and_then(time)?,
            finished_at: text(state, "/finishedAt").and_then(time),
            message: text(state, "/message").map(bounded),
            retries: state.get("retryCount").and_then(Value::as_i64),
            revision: own(state, "/syncResult/revision"),
        })
    }

    fn to_json(&self) -> Map<String, Value> {
        let mut state = Map::new();
        put(&mut state, "phase", Some(&*self.phase));
        put(&mut state, "startedAt", Some(&*self.started_at));
        put(&mut state, "finishedAt", self.finished_at.as_deref());
        put(&mut state, "message", self.message.as_deref());
        put(&mut state, "retryCount", self.retries);
        if let Some(revision) = &self.revision {
            state.insert("syncResult".to_owned(), json!({"revision": revision}));
        }
        state
    }
}

impl Condition {
    fn read(condition: &Value) -> Option<Self> {
        Some(Self {
            kind: own(condition, "/type")?,
            message: text(condition, "/message").map(bounded).unwrap_or_default(),
            since: text(condition, "/lastTransitionTime").and_then(time),
        })
    }

    fn to_json(&self) -> Value {
        let mut condition = Map::new();
        put(&mut condition, "type", Some(&*self.kind));
        put(&mut condition, "message", Some(&*self.message));
        put(&mut condition, "lastTransitionTime", self.since.as_deref());
        condition.into()
    }
}

fn put<T: Into<Value>>(map: &mut Map<String, Value>, key: &str, value: Option<T>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

/// For how long the time of the last comparison may be late, in seconds: the clusters' Argo CDs compare every few minutes, and
/// a write for each would be most of all that is written.
const LATE: i64 = 3600;

/// The merge patch of an Application that makes it say what is wanted; nothing where it does.
#[must_use]
pub fn patch(current: &Mirror, wanted: &Mirror) -> Option<Value> {
    // As at most looks, which need no JSON for that.
    if current == wanted {
        return None;
    }
    let (before, after) = (current.to_json(), wanted.to_json());
    let mut patch = difference(&before, &after)?;
    let only = patch
        .as_object()
        .is_some_and(|patch| patch.len() == 1 && patch.contains_key("reconciledAt"));
    if only && !is_late(current, wanted) {
        return None;
    }
    if let Some(Value::Object(state)) = patch.get_mut("operationState") {
        state.insert("operation".to_owned(), json!({}));
    }
    Some(json!({ "status": patch }))
}

/// Whether the time of the last comparison is worth a write of its own: also where somebody waits for a comparison after an
/// operation, as `argocd app sync` does.
fn is_late(current: &Mirror, wanted: &Mirror) -> bool {
    let time = |text: Option<&str>| text?.parse::<Timestamp>().ok();
    let (Some(before), Some(after)) = (
        time(current.reconciled_at.as_deref()),
        time(wanted.reconciled_at.as_deref()),
    ) else {
        return true;
    };
    let finished = wanted
        .operation
        .as_ref()
        .and_then(|operation| time(operation.finished_at.as_deref()));
    after.as_second().saturating_sub(before.as_second()) >= LATE
        || finished.is_some_and(|finished| before < finished && finished <= after)
}

/// The merge patch that makes the one the other. Lists are replaced.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let part = match old.get(key) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        if let Some(part) = part {
            patch.insert(key.clone(), part);
        }
    }
    (!patch.is_empty()).then(|| patch.into())
}
