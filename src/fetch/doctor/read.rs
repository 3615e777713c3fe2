//! The kept fields of kinds that may have many objects.

mod work;

pub(super) use work::ReadWork;

use crate::diagnosis::DiagnosedCluster;
use crate::doctor::Project;
use crate::workload::named;
use jiff::Timestamp;
use manifest::text::{one_line, without_middle};
use ocm::global_projects::GlobalProjects;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum length of a kept text, in bytes.
const TEXT_MAX: usize = 512;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    generation: i64,
    managed_fields: Option<Vec<ManagedFields>>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

/// The fields of one writer, of which only the spec as a whole matters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields {
    /// The time as text: a managed cluster may write one that no [`Timestamp`] has, which must not make the object unreadable.
    time: Option<String>,
    fields_v1: Option<OwnedFields>,
}

#[derive(Deserialize)]
struct OwnedFields {
    #[serde(rename = "f:spec")]
    spec: Option<IgnoredAny>,
}

impl ReadMetadata {
    /// Returns the time of the last write to the spec.
    fn last_change(&self) -> Option<Timestamp> {
        let of_spec = |write: &&ManagedFields| write.fields_v1.as_ref().is_some_and(|fields| fields.spec.is_some());
        let writes = self.managed_fields.iter().flatten().filter(of_spec);
        writes
            .filter_map(|fields| fields.time.as_ref()?.parse().ok())
            .chain(self.creation_timestamp)
            .max()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OcmCondition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    observed_generation: i64,
}

/// Returns the rules of AppProjects about the kinds that their Applications may write, by name.
pub(super) fn projects(all: &[Value], globals: &GlobalProjects) -> BTreeMap<String, Project> {
    let extended = all.iter().map(|read| globals.extend(read, |wanted| named(all, wanted)));
    extended.filter_map(|read| project(&read)).collect()
}

fn project(read: &Value) -> Option<(String, Project)> {
    let name = read["metadata"]["name"].as_str()?.to_owned();
    let kinds = |list: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pairs = list
            .as_array()?
            .iter()
            .map(|value| (text(&value["group"]), text(&value["kind"])));
        Some(pairs.collect::<Vec<_>>()).filter(|list| !list.is_empty())
    };
    let spec = &read["spec"];
    let project = Project {
        allowed: kinds(&spec["namespaceResourceWhitelist"]),
        refused: kinds(&spec["namespaceResourceBlacklist"]).unwrap_or_default(),
    };
    Some((name, project))
}

#[derive(Deserialize)]
pub(super) struct ConditionedObject {
    metadata: ReadMetadata,
    #[serde(default)]
    spec: Accepted,
    #[serde(default)]
    status: ConditionsStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    #[serde(default)]
    hub_accepts_client: bool,
}

#[derive(Deserialize, Default)]
struct ConditionsStatus {
    conditions: Option<Vec<OcmCondition>>,
}

impl ConditionedObject {
    fn status(&self, kind: &str) -> Option<&str> {
        let mut conditions = self.status.conditions.iter().flatten();
        conditions
            .find(|condition| condition.kind == kind)
            .map(|condition| &*condition.status)
    }
}

pub(super) fn cluster(read: ConditionedObject) -> (String, DiagnosedCluster) {
    let cluster = DiagnosedCluster {
        accepted: read.spec.hub_accepts_client,
        joined: read.spec.hub_accepts_client && read.status("ManagedClusterJoined") == Some("True"),
        available: match read.status("ManagedClusterConditionAvailable") {
            Some("True") => Some(true),
            Some("False") => Some(false),
            _ => None,
        },
        unreachable: read.status("ManagedClusterConditionAvailable") == Some("Unknown"),
        has_wrong_clock: read.status("ManagedClusterConditionClockSynced") == Some("False"),
    };
    (read.metadata.name, cluster)
}

/// Returns the managed cluster of an add-on, and its availability.
pub(super) fn addon(read: ConditionedObject) -> (String, bool) {
    let is_available = read.status("Available") == Some("True");
    (read.metadata.namespace, is_available)
}

/// Returns the namespace and name of a GitOpsCluster whose agents have another version than the principal.
pub(super) fn other_version(read: &ConditionedObject) -> Option<String> {
    let ReadMetadata { namespace, name, .. } = &read.metadata;
    (read.status("AgentVersionMatches") == Some("False")).then(|| format!("{namespace}/{name}"))
}

/// Returns a short text on one line.
fn plain(text: &str) -> String {
    one_line(&without_middle(text, TEXT_MAX)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn projects_have_the_rules_of_global_projects() {
        let works = json!({"group": "work.open-cluster-management.io", "kind": "ManifestWork"});
        let all = [
            json!({"metadata": {"name": "shop"}}),
            json!({"metadata": {"name": "global"}, "spec": {"namespaceResourceBlacklist": [works]}}),
        ];
        let globals = GlobalProjects::configured(|_| Some("- projectName: global"));
        assert_eq!(projects(&all, &globals)["shop"].refused.len(), 1);
    }
}
