//! The `statuses` of a report, for writing and reading; empty fields are omitted, as other writers do.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Statuses<'a> {
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub cluster_conditions: Vec<Entry<'a>>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceEntry<'a>>,
    /// The number of clusters by their state.
    pub summary: Summary,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub app: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub cluster: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionEntry<'a>>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub health_status: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub operation_state_phase: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub operation_state_started_at: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub sync_revision: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub sync_status: Cow<'a, str>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionEntry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub message: Cow<'a, str>,
    #[serde(borrow, rename = "type", skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'a, str>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceEntry<'a> {
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub api_version: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub name: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub namespace: Cow<'a, str>,
}

/// Counts, as strings.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    pub clusters: String,
    pub healthy: String,
    /// The clusters that are not healthy yet.
    pub in_progress: String,
    /// All clusters that are not healthy.
    pub not_healthy: String,
    pub not_synced: String,
    pub synced: String,
}
