//! The state of the agent of a managed cluster, as the hub knows it from the ManagedClusterAddOn, which OCM's agents write.
//!
//! Both the status of a GitOpsCluster and the command line use these rules.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of the agent of a cluster, worst first. Users see the names of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// A part of the add-on is broken.
    Degraded,
    /// The add-on is installed, but the agent is not connected to the principal.
    Disconnected,
    /// The add-on is being installed on the cluster.
    Installing,
    /// OCM has not created the ManagedClusterAddOn yet.
    Pending,
    /// The cluster is unreachable, so the state of its agent is unknown.
    Unreachable,
    /// The agent is connected to the principal.
    Connected,
}

/// The state of the agent of a cluster, as its ManagedClusterAddOn reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentStatus<'o> {
    pub state: State,
    /// True if all manifests of the add-on are applied, and the cluster is reachable.
    pub is_installed: bool,
    /// May be empty.
    pub message: &'o str,
}

/// Returns the state of the agent of a cluster from the JSON of its ManagedClusterAddOn, if that exists. The add-on is available
/// when the agent's Deployment is, which is ready when the agent is connected to the principal. The last report of an unreachable
/// cluster is ignored.
pub fn agent_status(addon: Option<&Value>, is_silent: bool) -> AgentStatus<'_> {
    let Some(addon) = addon else {
        return AgentStatus {
            state: State::Pending,
            is_installed: false,
            message: "",
        };
    };
    let is_installed = is_good(addon, "ManifestApplied");
    // The state, and the condition that explains it.
    let (state, reason) = match (is_installed, is_good(addon, "Available")) {
        _ if is_silent => (State::Unreachable, ""),
        _ if !is_good(addon, "Degraded") => (State::Degraded, "Degraded"),
        (true, true) => (State::Connected, ""),
        (true, false) => (State::Disconnected, "Available"),
        (false, _) => (State::Installing, "ManifestApplied"),
    };
    AgentStatus {
        state,
        is_installed: is_installed && !is_silent,
        message: condition(addon, reason)["message"].as_str().unwrap_or_default(),
    }
}

/// Returns true if a condition of an add-on has the status of a healthy add-on. A missing condition has it only for `Degraded`.
pub(crate) fn is_good(addon: &Value, kind: &str) -> bool {
    match (kind, condition(addon, kind)["status"].as_str()) {
        ("Degraded", status) => status.is_none_or(|status| status == "False"),
        (_, status) => status == Some("True"),
    }
}

/// Returns a condition of an object, or `Null` if the object does not have it.
pub fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions
        .find(|condition| condition["type"] == kind)
        .unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::State::{Connected, Degraded, Disconnected, Installing};
    use super::*;
    use serde_json::json;

    #[test]
    fn derives_the_agents_state_from_the_add_on() {
        for (state, reason, conditions) in [
            (Installing, "", ""),
            (Installing, "", "Available=True"),
            (Installing, "ManifestApplied", "ManifestApplied=False"),
            (Disconnected, "", "ManifestApplied=True"),
            (Disconnected, "Available", "ManifestApplied=True Available=False"),
            (Disconnected, "Available", "ManifestApplied=True Available=Unknown"),
            (Connected, "", "ManifestApplied=True Available=True"),
            (Connected, "", "Degraded=False ManifestApplied=True Available=True"),
            (
                Degraded,
                "Degraded",
                "Degraded=True ManifestApplied=True Available=True",
            ),
            (Degraded, "Degraded", "Degraded=True"),
            (
                Degraded,
                "Degraded",
                "Degraded=Unknown ManifestApplied=True Available=True",
            ),
        ] {
            let all = conditions.split_terminator(' ').filter_map(|pair| pair.split_once('='));
            let all = all.map(|(kind, status)| json!({"type": kind, "status": status, "message": kind}));
            let addon = json!({"status": {"conditions": all.collect::<Vec<_>>()}});
            let desired = AgentStatus {
                state,
                is_installed: conditions.contains("ManifestApplied=True"),
                message: reason,
            };
            assert_eq!(agent_status(Some(&addon), false), desired, "{conditions}");
            let silent = AgentStatus {
                state: State::Unreachable,
                is_installed: false,
                message: "",
            };
            assert_eq!(agent_status(Some(&addon), true), silent, "{conditions}");
        }
        for is_silent in [true, false] {
            assert_eq!(agent_status(None, is_silent).state, State::Pending);
        }
    }

    #[test]
    fn malformed_add_on_counts_as_installing() {
        for odd in [json!(null), json!([]), json!({"status": {"conditions": [1, {}, null]}})] {
            assert_eq!(agent_status(Some(&odd), false).state, State::Installing, "{odd}");
        }
    }
}
