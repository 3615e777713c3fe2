//! Forwards requests on the hub's Application to the managed cluster exactly once: its `operation` (a sync, a rollback), and the
//! annotation that requests a refresh.
//!
//! All state is in the API server, because the controller may stop between any two writes. So each request has its own ID and
//! passes these steps:
//!
//! 1. It is on the hub's Application. The controller adds it to the work.
//! 2. The work carries it: the controller removes it from the Application, and users can make another request.
//! 3. The Application no longer has it, and the cluster reports that it no longer has it either, for the payload in the work:
//!    Argo CD removes completed requests. Then the controller removes it from the work. Not earlier: an operation that is removed
//!    while it runs would never end.
//!
//! The work keeps a request as long as the Application has it, otherwise the controller would add it again. A second operation
//! waits on the Application until the first one, or one of the cluster's own, is done; Argo CD then rejects a third ("another
//! operation is in progress"). On the cluster it would be lost, because Argo CD clears the field when the first one is done. If
//! the agent cannot apply the first operation, the second one replaces it.
//!
//! The agent applies the whole Application if any of it changes. If an operation is done but not yet reported as such, that runs
//! it again. So refreshes are neither added nor removed while the work carries an operation. A change of the Application does not
//! wait, because it may fix an operation that does not end: the operation may then run on the new payload as well.

use super::application::Application;
use super::hash;
use super::pull_work::PullWork;
use super::status::time;
use crate::annotations::REFRESH;
use crate::json::{self, Json, annotation, entry, items, text};
use ocm::pull_model as names;
use serde_json::{Value, json};

/// The requests on an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The operation to run.
    pub operation: Option<Operation>,
    /// The refresh to do.
    pub refresh: Option<Refresh>,
}

/// An operation of Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The ID: a hash of the operation and, if known, of the time of the request.
    pub id: Box<str>,
    /// The operation as JSON, with its ID in the `info`.
    pub value: Box<str>,
}

/// A request to compare the Application with Git again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// The kind of refresh: `normal` or `hard`.
    pub kind: Box<str>,
    /// The ID of the request.
    pub nonce: Box<str>,
}

/// The requests that can be removed from the hub's Application because the work carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// True if the `operation` can be removed.
    pub operation: bool,
    /// True if the refresh annotation can be removed.
    pub refresh: bool,
}

/// The number of digits of the hash in an ID: 48 bits.
const DIGITS: usize = 12;

/// The separator between the hash and the time.
const TIME_SEPARATOR: char = '@';

/// The kind of a hard refresh, which includes a normal one.
const HARD: &str = "hard";

impl Operation {
    /// Reads the operation of an Application of the hub.
    pub(super) fn of_hub(object: &impl Json) -> Option<Self> {
        let operation = object.field("operation").filter(|it| it.as_fields().is_some())?;
        let mut operation: Value = serde_json::from_str(&json::to_string(operation)).ok()?;
        let mut info: Vec<Value> = items(&operation, "/info").to_vec();
        info.retain(|item| text(item, "/name") != Some(names::OPERATION));
        operation["info"] = info.into();
        let requested = written_at(object, &["f:operation"]);
        let id = name(
            &[
                text(object, "/metadata/uid").unwrap_or_default(),
                &operation.to_string(),
            ],
            requested,
        );
        let own = json!({"name": names::OPERATION, "value": id});
        operation["info"].as_array_mut().expect("it was made one").push(own);
        Some(Self {
            id: id.into(),
            value: operation.to_string().into(),
        })
    }

    /// Reads the operation in a work's payload, if it has an ID of ours.
    pub(super) fn of_payload(payload: &impl Json) -> Option<Self> {
        let operation = payload.field("operation")?;
        let mut info = items(operation, "/info").iter();
        let own = info.find(|item| text(*item, "/name") == Some(names::OPERATION))?;
        Some(Self {
            id: text(own, "/value")?.into(),
            value: json::to_string(operation).into(),
        })
    }

    /// Returns the time of the request.
    #[must_use]
    pub fn requested_at(&self) -> Option<&str> {
        self.id.split_once(TIME_SEPARATOR).map(|(_, time)| time)
    }

    /// Returns true if the ApplicationSet controller requested the operation, as it does in each step of a RollingSync.
    #[must_use]
    pub fn is_of_set(&self) -> bool {
        let value: Value = serde_json::from_str(&self.value).unwrap_or_default();
        text(&value, "/initiatedBy/username") == Some(names::SET_CONTROLLER)
    }

    /// Returns true if both request the same, ignoring the time.
    fn is_alike(&self, other: &Self) -> bool {
        let content = |it: &Self| it.id.split(TIME_SEPARATOR).next().map(ToOwned::to_owned);
        content(self) == content(other)
    }
}

impl Refresh {
    /// Reads the refresh request of an Application of the hub.
    pub(super) fn of_hub(object: &impl Json) -> Option<Self> {
        let kind = entry(object, "annotations", REFRESH)?;
        let field = format!("f:{REFRESH}");
        let requested = written_at(object, &["f:metadata", "f:annotations", &field]);
        let uid = text(object, "/metadata/uid").unwrap_or_default();
        let stamp = annotation(object, names::REFRESH_TIMESTAMP).unwrap_or_default();
        Some(Self {
            kind: kind.into(),
            nonce: name(&[uid, kind, stamp], requested).into(),
        })
    }

    /// Reads the refresh request in a work's payload, if it has an ID of ours.
    pub(super) fn of_payload(payload: &impl Json) -> Option<Self> {
        Some(Self {
            kind: entry(payload, "annotations", REFRESH)?.into(),
            nonce: annotation(payload, names::REFRESH_REQUEST)?.into(),
        })
    }
}

/// Returns the time of the last write to this field, to the second, from `managedFields`.
pub(super) fn written_at<'v, V: Json>(object: &'v V, field: &[&str]) -> Option<&'v str> {
    let owns = |entry: &&V| {
        let fields = entry.field("fieldsV1");
        field
            .iter()
            .try_fold(fields?, |fields, name| fields.field(name))
            .map(|_| ())
    };
    let entries = items(object, "/metadata/managedFields").iter();
    let owners = entries.filter(|entry| owns(entry).is_some());
    owners.filter_map(|entry| text(entry, "/time")).max()
}

fn name(content: &[&str], requested: Option<&str>) -> String {
    let hash = hash(content, DIGITS);
    requested.map_or_else(
        || hash.clone(),
        |requested| format!("{hash}{TIME_SEPARATOR}{requested}"),
    )
}

/// Returns the requests for the work, and those that can be removed from the hub's Application. `pull_work` is its work on the
/// present target cluster: requests for another cluster are ignored.
#[must_use]
pub fn requests(application: &Application, pull_work: Option<&PullWork>) -> (Requests, Forwarded) {
    let requested = &application.requests;
    let Some(pull_work) = pull_work else {
        return (requested.clone(), Forwarded::default());
    };
    let (operation, operation_taken) = match &requested.operation {
        Some(requested) if is_done_already(requested, application, pull_work) => (operation(None, pull_work).0, true),
        requested => operation(requested.as_ref(), pull_work),
    };
    let (mut refresh, refresh_taken) = refresh(requested.refresh.as_ref(), pull_work);
    if operation.is_some() && operation == pull_work.operation {
        refresh.clone_from(&pull_work.refresh);
    }
    let forwarded = Forwarded {
        operation: operation_taken,
        refresh: refresh_taken,
    };
    (Requests { operation, refresh }, forwarded)
}

/// Returns true if the ApplicationSet controller requests a sync that has ended, because it has not seen the result yet.
///
/// If the Application showed the result before the request, the result does not count for that controller: a sync of a RollingSync
/// must start in a later second than its step (`OperationState.StartedAt` in Argo CD's `applicationset/progressivesync`), and the
/// cluster's clock may be late. Then the sync runs again, as it does without the pull model.
fn is_done_already(requested: &Operation, application: &Application, pull_work: &PullWork) -> bool {
    let current = &application.current;
    let written = application.operation_state_written;
    let requested_at = requested.requested_at().and_then(time);
    let has_shown_result = current.sync.status.as_deref() == Some("Synced")
        && current.operation.as_ref().is_some_and(|it| it.finished_at.is_some())
        && requested_at
            .zip(written)
            .is_some_and(|(requested, written)| requested > written);
    requested.is_of_set() && pull_work.is_synced() && !has_shown_result
}

fn operation(requested: Option<&Operation>, pull_work: &PullWork) -> (Option<Operation>, bool) {
    let Some(before) = &pull_work.operation else {
        return (requested.filter(|_| !pull_work.is_busy()).cloned(), false);
    };
    let is_done = pull_work.has_done(before);
    let Some(requested) = requested else {
        return ((!is_done).then(|| before.clone()), false);
    };
    // An operation that is not known to be done is not repeated; Argo CD's API server also rejects another one in that case. The
    // time in `managedFields` may move because the requester changes another field. The ApplicationSet controller repeats its
    // request until it sees the operation end: a later run would sync what is in Git by then, perhaps after the turn of its step.
    if requested.id == before.id || !is_done && requested.is_alike(before) {
        (Some(before.clone()), true)
    } else if is_done || !pull_work.is_current() && pull_work.refused().is_some() {
        (Some(requested.clone()), false)
    } else {
        (Some(before.clone()), false)
    }
}

/// Decides on the refresh, which can be requested at any time: Argo CD merges concurrent refreshes.
fn refresh(requested: Option<&Refresh>, pull_work: &PullWork) -> (Option<Refresh>, bool) {
    let Some(before) = &pull_work.refresh else {
        return (requested.cloned(), false);
    };
    let is_done = pull_work.is_current() && pull_work.feedback.refresh_pending.is_none();
    match requested {
        None => ((!is_done).then(|| before.clone()), false),
        Some(requested) if requested.nonce == before.nonce => (Some(before.clone()), true),
        Some(requested) => {
            let stays_hard = !is_done && &*before.kind == HARD;
            let kind = if stays_hard { &before.kind } else { &requested.kind };
            let refresh = Refresh {
                kind: kind.clone(),
                nonce: requested.nonce.clone(),
            };
            (Some(refresh), false)
        }
    }
}

#[cfg(test)]
mod simulated_hub;

#[cfg(test)]
mod tests;
