//! The requests on an Application that are forwarded to the managed cluster: an operation, and a refresh.

use super::text::hash;
use crate::annotations::REFRESH;
use crate::json::{self, annotation, at, entry, items, text_at};
use manifest::value::Value as Borrowed;
use ocm::pull_model as names;
use serde_json::{Value, json};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub operation: Option<OperationRequest>,
    pub refresh: Option<RefreshRequest>,
}

/// An operation of Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRequest {
    /// The ID: a hash of the operation and, if known, of the time of the request.
    pub id: Box<str>,
    /// The operation as JSON, with its ID in the `info`.
    pub value: Box<str>,
}

/// A request to compare the Application with Git again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The kind of refresh: `normal` or `hard`.
    pub kind: Box<str>,
    /// The kind of hydration that is requested with it.
    pub hydrate: Option<Box<str>>,
    /// The ID of the request.
    pub nonce: Box<str>,
}

/// The requests that can be removed from the hub's Application because the work carries them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    pub operation: bool,
    pub refresh: bool,
}

/// The number of digits of the hash in an ID: 48 bits.
const DIGITS: usize = 12;

/// The separator between the hash and the time.
pub const TIME_SEPARATOR: char = '@';

impl OperationRequest {
    /// Reads the operation of an Application of the hub.
    pub(super) fn of_hub(object: &Borrowed<'_>) -> Option<Self> {
        let operation = at(object, "/operation").filter(|operation| operation.as_map().is_some())?;
        let mut operation: Value = serde_json::from_str(&json::to_string(operation)).ok()?;
        let mut info = operation["info"].as_array().cloned().unwrap_or_default();
        info.retain(|item| item["name"] != names::OPERATION);
        operation["info"] = info.into();
        let requested = written_at(object, &["f:operation"]);
        let id = name(
            &[
                text_at(object, "/metadata/uid").unwrap_or_default(),
                &operation.to_string(),
            ],
            requested,
        );
        let item = json!({"name": names::OPERATION, "value": id});
        operation["info"].as_array_mut().expect("it was made one").push(item);
        Some(Self {
            id: id.into(),
            value: operation.to_string().into(),
        })
    }

    /// Reads the operation of an operation state, with an empty ID if the controller has not forwarded it.
    pub fn of_state(state: &Borrowed<'_>) -> Option<Self> {
        let foreign = |operation| Self {
            id: Box::default(),
            value: json::to_string(operation).into(),
        };
        Self::of_payload(state).or_else(|| at(state, "/operation").map(foreign))
    }

    /// Reads the operation of a work's payload, if it has an ID of ours.
    pub fn of_payload(payload: &Borrowed<'_>) -> Option<Self> {
        let operation = at(payload, "/operation")?;
        let mut info = items(operation, "/info").iter();
        let item = info.find(|item| text_at(item, "/name") == Some(names::OPERATION))?;
        Some(Self {
            id: text_at(item, "/value")?.into(),
            value: json::to_string(operation).into(),
        })
    }

    pub fn to_json(&self) -> Value {
        serde_json::from_str(&self.value).expect("it was written as JSON")
    }

    pub fn requested_at(&self) -> Option<&str> {
        self.id.split_once(TIME_SEPARATOR).map(|(_, time)| time)
    }

    /// Returns true if the ApplicationSet controller requested the operation, as it does in each step of a RollingSync.
    pub fn is_of_set(&self) -> bool {
        self.to_json()["initiatedBy"]["username"] == names::SET_CONTROLLER
    }

    /// Returns true if both request the same, ignoring the time.
    pub fn is_alike(&self, other: &Self) -> bool {
        let content = |request: &Self| request.id.split(TIME_SEPARATOR).next().map(ToOwned::to_owned);
        content(self) == content(other)
    }
}

impl RefreshRequest {
    pub(super) fn of_hub(object: &Borrowed<'_>) -> Option<Self> {
        let hydrate = annotation(object, names::HYDRATE);
        // Argo CD hydrates in its next comparison, so a user who requests that alone requests both.
        let kind = entry(object, "annotations", REFRESH).or(hydrate.map(|_| "normal"))?;
        let field = format!("f:{REFRESH}");
        let requested = written_at(object, &["f:metadata", "f:annotations", &field]);
        let uid = text_at(object, "/metadata/uid").unwrap_or_default();
        let stamp = annotation(object, names::REFRESH_TIMESTAMP).unwrap_or_default();
        Some(Self {
            kind: kind.into(),
            hydrate: hydrate.map(Into::into),
            nonce: name(&[uid, kind, stamp, hydrate.unwrap_or_default()], requested).into(),
        })
    }

    /// Reads the refresh request in a work's payload, if it has an ID of ours.
    pub(super) fn of_payload(payload: &Borrowed<'_>) -> Option<Self> {
        Some(Self {
            kind: entry(payload, "annotations", REFRESH)?.into(),
            hydrate: annotation(payload, names::HYDRATE).map(Into::into),
            nonce: annotation(payload, names::REFRESH_REQUEST)?.into(),
        })
    }
}

/// Returns the time of the last write to this field, to the second, from `managedFields`.
pub(super) fn written_at<'v>(object: &'v Borrowed<'_>, field: &[&str]) -> Option<&'v str> {
    let owns = |entry: &&Borrowed<'_>| {
        let fields = at(entry, "/fieldsV1").and_then(Borrowed::as_map);
        fields.is_some_and(|fields| fields.at(field).is_some())
    };
    let owners = items(object, "/metadata/managedFields").iter().filter(owns);
    owners.filter_map(|entry| text_at(entry, "/time")).max()
}

fn name(content: &[&str], requested: Option<&str>) -> String {
    let hash = hash(content, DIGITS);
    match requested {
        Some(requested) => format!("{hash}{TIME_SEPARATOR}{requested}"),
        None => hash,
    }
}
