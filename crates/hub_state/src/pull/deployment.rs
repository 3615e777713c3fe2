//! An entry of the deployment history of an Application.

use super::text::time;
use crate::json::{self, integer_at, items, text_at};
use jiff::Timestamp;
use manifest::value::Value as Borrowed;
use serde_json::Value;

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
