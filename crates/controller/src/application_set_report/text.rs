//! The `statuses` of a report, for writing and reading; empty fields are omitted, as other writers do.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Statuses<'a> {
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) cluster_conditions: Vec<Entry<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) resources: Vec<ResourceEntry<'a>>,
    pub(super) summary: Summary,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) app: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) cluster: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<ConditionEntry<'a>>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) health_status: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) operation_state_phase: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) operation_state_started_at: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) sync_revision: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) sync_status: Cow<'a, str>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ConditionEntry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) message: Cow<'a, str>,
    #[serde(borrow, rename = "type", skip_serializing_if = "str::is_empty")]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResourceEntry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) api_version: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub(super) namespace: Cow<'a, str>,
}

/// Counts, as strings.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Summary {
    pub(super) clusters: String,
    pub(super) healthy: String,
    pub(super) in_progress: String,
    pub(super) not_healthy: String,
    pub(super) not_synced: String,
    pub(super) synced: String,
}
