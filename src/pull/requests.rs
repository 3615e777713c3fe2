//! What somebody asks of the hub's Application is handed on to the managed cluster, once: its `operation` (a sync, a rollback), and
//! the annotation that asks for a refresh.
//!
//! Nothing is kept but what the API server has, and a controller may die between any two writes. So a request has a name of its
//! own, and goes these ways:
//!
//! 1. It stands on the hub's Application. The work is made to carry it.
//! 2. The work carries it: it can be taken from the Application, and then somebody may ask again.
//! 3. It is gone from the Application, and the cluster says that it has it no longer, in the form that the work carries: Argo CD
//!    takes away what it has done. Then it is taken out of the work. Not before: an operation that is taken away while it runs
//!    would never end.
//!
//! It stays in the work as long as it stands on the Application, or it would be carried again. An operation that comes while the
//! one before it is not done, or one of the cluster's own, waits on the Application, where Argo CD refuses a third ("another operation is in progress"); on the
//! cluster it would be lost, for Argo CD clears the field when the first is done. Where the agent cannot apply the first, the
//! second takes its place.
//!
//! The agent applies all of the Application when anything of it changes. If an operation has been done by then, and that has not
//! yet come back, it is run again. So no refresh comes or goes while the work carries an operation. But a change of the Application does
//! not wait, since it may be what an operation needs that does not end: that one may be run on the new form as well.

use super::application::Application;
use super::carried::Carried;
use super::{annotation, entry, hash, items, names, text};
use crate::controller::seen::REFRESH;
use serde_json::{Value, json};

/// What is asked of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// To do this.
    pub operation: Option<Operation>,
    /// To compare again.
    pub refresh: Option<Refresh>,
}

/// An operation of Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its own name: a hash of what is to be done and, where that is known, the time at which it was asked for.
    pub id: Box<str>,
    /// What is to be done, as JSON, with its name in the `info`.
    pub value: Box<str>,
}

/// A request to compare again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// How: `normal`, `hard`.
    pub kind: Box<str>,
    /// Its own name.
    pub nonce: Box<str>,
}

/// What can be taken from the hub's Application, because the work carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Its `operation`.
    pub operation: bool,
    /// Its annotation that asks for a refresh.
    pub refresh: bool,
}

/// How many digits of a hash tell requests apart: 48 bits.
const DIGITS: usize = 12;

/// Stands between the hash and the time.
const AT: char = '@';

/// The hard kind of a refresh, which does more than the other.
const HARD: &str = "hard";

impl Operation {
    /// What is asked of an Application of the hub.
    pub(super) fn of_hub(object: &Value) -> Option<Self> {
        let mut operation = object.get("operation").filter(|it| it.is_object())?.clone();
        let mut info: Vec<Value> = items(&operation, "/info").to_vec();
        info.retain(|item| text(item, "/name") != Some(names::OPERATION));
        operation["info"] = info.into();
        let asked = asked(object, &["f:operation"]);
        let id = name(
            &[
                text(object, "/metadata/uid").unwrap_or_default(),
                &operation.to_string(),
            ],
            asked,
        );
        let own = json!({"name": names::OPERATION, "value": id});
        operation["info"].as_array_mut().expect("it was made one").push(own);
        Some(Self {
            id: id.into(),
            value: operation.to_string().into(),
        })
    }

    /// What a work carries, if we have named it.
    pub(super) fn of_payload(payload: &Value) -> Option<Self> {
        let operation = payload.get("operation")?;
        let mut info = items(operation, "/info").iter();
        let own = info.find(|item| text(item, "/name") == Some(names::OPERATION))?;
        Some(Self {
            id: text(own, "/value")?.into(),
            value: operation.to_string().into(),
        })
    }

    /// When it was asked for.
    #[must_use]
    pub fn asked(&self) -> Option<&str> {
        self.id.split_once(AT).map(|(_, time)| time)
    }

    /// Whether the controller of ApplicationSets asks for it, as it does to take a RollingSync a step further.
    #[must_use]
    pub fn is_of_set(&self) -> bool {
        let value: Value = serde_json::from_str(&self.value).unwrap_or_default();
        text(&value, "/initiatedBy/username") == Some(names::SET_CONTROLLER)
    }

    /// Whether both ask for the same, whenever.
    fn is_alike(&self, other: &Self) -> bool {
        let content = |it: &Self| it.id.split(AT).next().map(ToOwned::to_owned);
        content(self) == content(other)
    }
}

impl Refresh {
    /// What is asked of an Application of the hub.
    pub(super) fn of_hub(object: &Value) -> Option<Self> {
        let kind = entry(object, "annotations", REFRESH)?;
        let field = format!("f:{REFRESH}");
        let asked = asked(object, &["f:metadata", "f:annotations", &field]);
        let uid = text(object, "/metadata/uid").unwrap_or_default();
        let stamp = annotation(object, names::REFRESH_TIMESTAMP).unwrap_or_default();
        Some(Self {
            kind: kind.into(),
            nonce: name(&[uid, kind, stamp], asked).into(),
        })
    }

    /// What a work carries, if we have named it.
    pub(super) fn of_payload(payload: &Value) -> Option<Self> {
        Some(Self {
            kind: entry(payload, "annotations", REFRESH)?.into(),
            nonce: annotation(payload, names::REFRESH_REQUEST)?.into(),
        })
    }
}

/// When somebody last wrote this field, as the API server has noted it: to the second.
fn asked<'v>(object: &'v Value, field: &[&str]) -> Option<&'v str> {
    let owns = |entry: &&Value| {
        let fields = entry.get("fieldsV1");
        field
            .iter()
            .try_fold(fields?, |fields, name| fields.get(*name))
            .map(|_| ())
    };
    let entries = items(object, "/metadata/managedFields").iter();
    let owners = entries.filter(|entry| owns(entry).is_some());
    owners.filter_map(|entry| text(entry, "/time")).max()
}

fn name(content: &[&str], asked: Option<&str>) -> String {
    let hash = hash(content, DIGITS);
    asked.map_or_else(|| hash.clone(), |asked| format!("{hash}{AT}{asked}"))
}

/// What the work is to carry, and what can be taken from the hub's Application. `carried` is its work on the cluster to which
/// it is to go now: what another cluster was asked is no business of this one.
#[must_use]
pub fn requests(application: &Application, carried: Option<&Carried>) -> (Requests, Taken) {
    let asked = &application.requests;
    let Some(carried) = carried else {
        return (asked.clone(), Taken::default());
    };
    let (operation, operation_taken) = operation(asked.operation.as_ref(), carried);
    let (mut refresh, refresh_taken) = refresh(asked.refresh.as_ref(), carried);
    if operation.is_some() && operation == carried.operation {
        refresh.clone_from(&carried.refresh);
    }
    let taken = Taken {
        operation: operation_taken,
        refresh: refresh_taken,
    };
    (Requests { operation, refresh }, taken)
}

fn operation(asked: Option<&Operation>, carried: &Carried) -> (Option<Operation>, bool) {
    // What came of it has come back already: the controller of ApplicationSets asks for what it has not seen yet.
    if asked.is_some_and(Operation::is_of_set) && carried.is_synced() {
        let (kept, _) = operation(None, carried);
        return (kept, true);
    }
    let Some(before) = &carried.operation else {
        return (asked.filter(|_| !carried.is_busy()).cloned(), false);
    };
    let is_done = carried.has_done(before);
    let Some(asked) = asked else {
        return ((!is_done).then(|| before.clone()), false);
    };
    // What is not known to be done is not asked for twice, as Argo CD's API server does not take another then. The API server's note
    // of the time may move because whoever has asked changes something else; and the controller of ApplicationSets asks again
    // and again until it sees an end: done later, that would sync what is in Git by then, and its step's turn may be over.
    if asked.id == before.id || !is_done && asked.is_alike(before) {
        (Some(before.clone()), true)
    } else if is_done || !carried.is_current() && carried.refused().is_some() {
        (Some(asked.clone()), false)
    } else {
        (Some(before.clone()), false)
    }
}

/// A refresh can be asked for at any time: Argo CD does those that come together at once.
fn refresh(asked: Option<&Refresh>, carried: &Carried) -> (Option<Refresh>, bool) {
    let Some(before) = &carried.refresh else {
        return (asked.cloned(), false);
    };
    let is_done = carried.is_current() && carried.feedback.refresh_pending.is_none();
    match asked {
        None => ((!is_done).then(|| before.clone()), false),
        Some(asked) if asked.nonce == before.nonce => (Some(before.clone()), true),
        Some(asked) => {
            let stays_hard = !is_done && &*before.kind == HARD;
            let kind = if stays_hard { &before.kind } else { &asked.kind };
            let refresh = Refresh {
                kind: kind.clone(),
                nonce: asked.nonce.clone(),
            };
            (Some(refresh), false)
        }
    }
}

#[cfg(test)]
mod world;

#[cfg(test)]
mod tests;
