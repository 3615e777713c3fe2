//! What the hub's Application says of itself: what the managed cluster's Argo CD says of its own, and where that says nothing,
//! what is the matter. An Application that nobody runs is never green, and never empty.
//!
//! The Application's resource has no status subresource, and its status is otherwise nobody's, since the hub's Argo CD skips it.
//! It is written as one merge patch of what differs.
//!
//! The peers write `Progressing` before each `Healthy`, so that an ApplicationSet's RollingSync sees a transition. It need not: its
//! controller looks at the state, not at how it came about. An Application of a step that has been synced (`Succeeded`, not
//! `OutOfSync`) goes from `Pending` to `Progressing` to `Healthy` in one look. An operation that a cluster has not begun
//! is shown as `Running`, so it is not asked for again and again either.

use super::carried::Carried;
use super::{items, names, own, text};
use crate::status;
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

/// Cuts a text that is too long to be kept of many Applications.
pub(super) fn bounded(text: &str) -> Box<str> {
    if text.len() <= TEXT_MAX {
        return text.into();
    }
    let room = TEXT_MAX - '…'.len_utf8();
    let end = (0..=room).rev().find(|&end| text.is_char_boundary(end));
    format!("{}…", &text[..end.unwrap_or(0)]).into()
}

/// A time as Kubernetes writes it; nothing for what is none, which the API server would not take.
pub(super) fn time(text: &str) -> Option<Box<str>> {
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

/// Of what an Application's status is made.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'s> {
    /// The managed cluster to which it is to go.
    pub cluster: &'s str,
    /// Its work there.
    pub carried: Option<&'s Carried>,
    /// What else is to be said, as conditions of types that begin with one of [`names::OWN_CONDITIONS`]; since when does not count.
    pub notes: &'s [Condition],
    /// Whether the agents only look.
    pub read_only: bool,
    /// Whether its status is ours: Argo CD on the hub leaves it alone.
    pub is_ours: bool,
    /// The time.
    pub now: Timestamp,
}

/// The words of Argo CD that are used here.
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const MISSING: &str = "Missing";
const UNKNOWN: &str = "Unknown";
const RUNNING: &str = "Running";

/// What an Application that says `current` of itself is to say.
#[must_use]
pub fn wanted(current: &Mirror, situation: &Situation<'_>) -> Mirror {
    if !situation.is_ours {
        return Mirror {
            conditions: conditions(current, Vec::new(), situation),
            ..current.clone()
        };
    }
    let mut mirror = said(current, situation);
    if mirror.health.since.is_none() {
        let same = mirror.health.status == current.health.status;
        let since = same.then(|| current.health.since.clone()).flatten();
        mirror.health.since = since.or_else(|| Some(status::time(situation.now).into()));
    }
    if let Some(waiting) = not_begun(situation) {
        mirror.operation = Some(waiting);
    }
    mirror.conditions = conditions(current, mirror.conditions, situation);
    mirror
}

/// What is to be said, without what does not come from the cluster.
fn said(current: &Mirror, situation: &Situation<'_>) -> Mirror {
    let cluster = situation.cluster;
    let waiting = |what: &str| stands(PROGRESSING, format!("waiting for {cluster}: {what}"));
    // One that is about to be sent is told of as if it were.
    let Some(carried) = situation.carried else {
        return waiting("its agent has not applied the Application");
    };
    if carried.deleting {
        return waiting("its agent is removing the Application");
    }
    if !carried.heard {
        return waiting("its agent has not applied the Application");
    }
    if let Some(refused) = carried.refused.as_ref().filter(|_| !carried.is_current()) {
        let told = stands(
            DEGRADED,
            format!("{cluster} could not apply the Application: {refused}"),
        );
        return Mirror {
            // What has been done was done, and is no business of what is refused.
            operation: current.operation.clone(),
            ..told
        };
    }
    if carried.missing {
        return stands(MISSING, format!("the Application is not on {cluster}"));
    }
    let feedback = &carried.feedback;
    let is_first = current.health.status.is_none();
    // What is said of an earlier form says nothing of this one.
    if feedback.is_silent || !carried.is_current() && !situation.read_only {
        return if is_first {
            waiting("nothing has come back of the Application")
        } else {
            current.clone()
        };
    }
    let mut said = feedback.said.clone();
    said.conditions = told_by(cluster, said.conditions);
    if said.health.status.is_none() && said.sync.status.is_none() {
        let waiting = waiting("its Argo CD has not looked at the Application");
        return Mirror {
            conditions: said.conditions,
            ..waiting
        };
    }
    said.health.status.get_or_insert_with(|| UNKNOWN.into());
    said.sync.status.get_or_insert_with(|| UNKNOWN.into());
    said
}

/// An Application of which nothing is known but this.
fn stands(health: &str, message: String) -> Mirror {
    Mirror {
        health: Health {
            status: Some(health.into()),
            message: Some(bounded(&message)),
            since: None,
        },
        sync: Sync {
            status: Some(UNKNOWN.into()),
            ..Sync::default()
        },
        ..Mirror::default()
    }
}

/// The state of an operation that has been taken from the hub's Application, and is not begun. `argocd app sync` and an ApplicationSet
/// would think that all is done if it were not shown.
fn not_begun(situation: &Situation<'_>) -> Option<OperationState> {
    let carried = situation.carried?;
    let operation = carried.operation.as_ref()?;
    if carried.has_done(operation) || carried.has_begun(operation) {
        return None;
    }
    Some(OperationState {
        phase: RUNNING.into(),
        started_at: operation.asked().and_then(time)?,
        finished_at: None,
        message: Some(format!("waiting for {} to begin", situation.cluster).into()),
        retries: None,
        revision: None,
    })
}

/// The same conditions with the name of the cluster before what they say.
fn told_by(cluster: &str, conditions: Vec<Condition>) -> Vec<Condition> {
    let told = conditions.into_iter().map(|condition| Condition {
        message: bounded(&format!("{cluster}: {}", condition.message)),
        ..condition
    });
    told.collect()
}

/// Whether a condition of one of Argo CD's types came back from a cluster. Others are those of the hub's Argo CD, which sets
/// `InvalidSpecError` on an Application that it skips as well, whenever it hears of one whose destination or AppProject it does not know:
/// taking it away would go on for ever.
fn is_told(condition: &Condition) -> bool {
    let is_name = |text: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.bytes().all(is_of_it)
    };
    let said = condition.message.split_once(": ");
    names::CONDITIONS.contains(&&*condition.kind) && said.is_some_and(|(cluster, _)| is_name(cluster))
}

/// The conditions, in the order in which Argo CD keeps them: the cluster's, ours, and those that are neither's.
fn conditions(current: &Mirror, said: Vec<Condition>, situation: &Situation<'_>) -> Vec<Condition> {
    let is_ours = |kind: &str| names::OWN_CONDITIONS.iter().any(|own| kind.starts_with(own));
    let mut all: Vec<Condition> = said.into_iter().filter(is_told).collect();
    let others = current.conditions.iter();
    all.extend(others.filter(|it| !is_ours(&it.kind) && !is_told(it)).cloned());
    let refused = situation.carried.and_then(|carried| carried.refused.as_deref());
    let refused = refused.map(|refused| Condition {
        kind: names::APPLY_ERROR.into(),
        message: bounded(&format!("{}: {refused}", situation.cluster)),
        since: None,
    });
    for note in situation.notes.iter().cloned().chain(refused) {
        let before = current.conditions.iter();
        let same = before
            .filter(|it| it.since.is_some())
            .find(|it| it.kind == note.kind && it.message == note.message);
        let since = same.and_then(|same| same.since.clone());
        all.push(Condition {
            since: since.or_else(|| Some(status::time(situation.now).into())),
            ..note
        });
    }
    all.sort();
    all
}

/// For how long the time of the last comparison may be late, in seconds: the clusters' Argo CDs compare every few minutes, and
/// a write for each would be most of all that is written.
const LATE: i64 = 3600;

/// The merge patch of an Application that makes it say what is wanted; nothing where it does.
#[must_use]
pub fn patch(current: &Mirror, wanted: &Mirror) -> Option<Value> {
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
    after.as_second() - before.as_second() >= LATE
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
