//! The model of a ManagedCluster.

use super::Labels;
use crate::json::{self, at, items, own, text_at};
use jiff::Timestamp;
use manifest::value::Value;

/// The name, and the label, by which Red Hat ACM marks the managed cluster that is the hub itself.
pub const ACM_HUB: &str = "local-cluster";

/// The taints of OCM on clusters that do not report that they are available.
const SILENT_TAINTS: [&str; 2] = [
    "cluster.open-cluster-management.io/unreachable",
    "cluster.open-cluster-management.io/unavailable",
];
/// The condition that OCM sets when an administrator of the hub accepts a cluster, and keeps as False if they deny it later.
const ACCEPTED: &str = "HubAcceptedManagedCluster";

/// The reachability of a managed cluster, as reported by OCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The agent of the cluster sends heartbeats.
    Available,
    /// The agent of the cluster sends no heartbeats.
    Unknown,
    /// The agent reports that the API server of the cluster is unhealthy.
    Unavailable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub uid: Box<str>,
    pub availability: Availability,
    /// The time since which Placements may select the cluster: OCM taints a cluster that has not joined, is silent or is unhealthy,
    /// and removes the taints after its return. `None` while the cluster is not available, reports a time that cannot be read, or has
    /// a taint.
    pub selectable_since: Option<Timestamp>,
    /// True if an administrator of the hub has accepted the cluster, also if they denied it later. Until then, the object may be
    /// anyone's with a token to join: its name and labels mean nothing.
    pub is_accepted: bool,
    pub labels: Labels,
    pub deleting: bool,
}

impl Availability {
    pub const ALL: [Self; 3] = [Self::Available, Self::Unknown, Self::Unavailable];

    /// Returns the reachability of a managed cluster. A cluster that does not exist has not joined, which does not count as silent.
    pub fn from_cluster(cluster: Option<&Cluster>) -> Self {
        cluster.map_or(Self::Available, |cluster| cluster.availability)
    }
}

impl Cluster {
    /// Returns true if a managed cluster of this name is marked as the hub itself. Its agent can write the label, so the mark
    /// proves nothing.
    pub fn has_hub_mark(&self, name: &str) -> bool {
        name == ACM_HUB || self.labels.get(ACM_HUB) == Some("true")
    }

    /// Reads the JSON of a ManagedCluster. A cluster without any heartbeat yet has not joined, which does not count as silent.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let object = json::parse(text)?;
        let mut taints = items(&object, "/spec/taints").iter();
        let is_tainted = taints.any(|taint| text_at(taint, "/key").is_some_and(|key| SILENT_TAINTS.contains(&key)));
        let condition = |kind| {
            let mut conditions = items(&object, "/status/conditions").iter();
            conditions.find(|condition| text_at(condition, "/type") == Some(kind))
        };
        let accepts = at(&object, "/spec/hubAcceptsClient") == Some(&Value::Bool(true));
        let available = condition("ManagedClusterConditionAvailable");
        let status = available.and_then(|available| text_at(available, "/status"));
        let selectable = available.filter(|_| status == Some("True") && !is_tainted);
        Ok(Self {
            uid: own(&object, "/metadata/uid").unwrap_or_default(),
            selectable_since: selectable.and_then(|available| {
                match at(available, "/lastTransitionTime").and_then(Value::as_str) {
                    // The cluster writes the time: one that cannot be read must not make the labels unreadable, too.
                    Some(time) => time.parse().ok(),
                    None => Some(Timestamp::UNIX_EPOCH),
                }
            }),
            availability: match status {
                Some("Unknown") => Availability::Unknown,
                Some("False") => Availability::Unavailable,
                _ => Availability::Available,
            },
            is_accepted: accepts || condition(ACCEPTED).is_some(),
            labels: Labels::from_sorted(json::labels(&object)),
            deleting: text_at(&object, "/metadata/deletionTimestamp").is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_administrators_of_the_hub_accept_a_cluster() {
        let is_accepted = |spec: Value, condition: Value| {
            let object = json!({"metadata": {"uid": "u"}, "spec": spec, "status": {"conditions": [condition]}});
            Cluster::from_json(&object.to_string()).expect("a cluster").is_accepted
        };
        let joined = json!({"type": "ManagedClusterJoined", "status": "True"});
        let denied = json!({"type": "HubAcceptedManagedCluster", "status": "False"});
        let (accepts, rejects) = (json!({"hubAcceptsClient": true}), json!({"hubAcceptsClient": false}));
        assert!(is_accepted(accepts, joined.clone()));
        assert!(is_accepted(rejects.clone(), denied), "it keeps what it has");
        for spec in [rejects, json!({}), Value::Null] {
            assert!(!is_accepted(spec.clone(), joined.clone()), "{spec}");
        }
    }

    #[test]
    fn a_cluster_cannot_make_itself_unreadable_by_a_time() {
        for (time, since) in [
            (json!("2026-01-01T00:00:00Z"), Some("2026-01-01T00:00:00Z")),
            (json!("9999-12-31T23:59:59Z"), None),
            (json!("2026-01-01T00:00:00+99:99"), None),
            (Value::Null, Some("1970-01-01T00:00:00Z")),
        ] {
            let available = json!({
                "type": "ManagedClusterConditionAvailable", "status": "True", "lastTransitionTime": time,
            });
            let object = json!({"metadata": {"labels": {"env": "prod"}}, "status": {"conditions": [available]}});
            let cluster = Cluster::from_json(&object.to_string()).expect("the API server stores such times");
            assert_eq!(cluster.labels.get("env"), Some("prod"));
            let since = since.map(|since| since.parse().expect("a time"));
            assert_eq!(cluster.selectable_since, since, "{time}");
        }
    }
}
