//! The `statuses` of a report, for writing and reading; empty fields are omitted, as other writers do.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The `statuses` of a report.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Statuses<'a> {
    /// The Applications on their clusters.
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub cluster_conditions: Vec<Entry<'a>>,
    /// The objects on the clusters.
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceEntry<'a>>,
    /// The number of clusters by their state.
    pub summary: Summary,
}

/// An Application on a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry<'a> {
    /// The Application, and the work that carries it.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub app: Cow<'a, str>,
    /// The managed cluster.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub cluster: Cow<'a, str>,
    /// The conditions.
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionEntry<'a>>,
    /// The health status.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub health_status: Cow<'a, str>,
    /// The phase of the last operation.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub operation_state_phase: Cow<'a, str>,
    /// The start time of the last operation.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub operation_state_started_at: Cow<'a, str>,
    /// The compared revision.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub sync_revision: Cow<'a, str>,
    /// The sync status.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub sync_status: Cow<'a, str>,
}

/// A condition of an Application on a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionEntry<'a> {
    /// The message.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub message: Cow<'a, str>,
    /// The type.
    #[serde(borrow, rename = "type", skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'a, str>,
}

/// An object on a cluster.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceEntry<'a> {
    /// The API group and version.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub api_version: Cow<'a, str>,
    /// The kind.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'a, str>,
    /// The name.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub name: Cow<'a, str>,
    /// The namespace.
    #[serde(borrow, skip_serializing_if = "str::is_empty")]
    pub namespace: Cow<'a, str>,
}

/// Counts, as strings.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// All clusters.
    pub clusters: String,
    /// The healthy clusters.
    pub healthy: String,
    /// The clusters that are not healthy yet.
    pub in_progress: String,
    /// All clusters that are not healthy.
    pub not_healthy: String,
    /// The clusters that are not synced.
    pub not_synced: String,
    /// The synced clusters.
    pub synced: String,
}
