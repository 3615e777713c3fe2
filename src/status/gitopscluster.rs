//! `gitopscluster status`: prints the state of a GitOpsCluster and of the agents that it installs on managed clusters.
//!
//! ```text
//! hub ─▶ Fleet ─▶ Report ─▶ table, JSON or YAML
//! ```
//!
//! The report repeats the status that the controller wrote, and evaluates the health of the agents from their add-ons, by the
//! same rules ([`state`]), because a status lists at most a hundred clusters. If reading add-ons is not permitted, the report
//! uses that list.

mod print;
mod table;

pub(crate) use print::GitOpsClusterList;

use crate::workload::items;
use argocd_agent::state;
use argocd_agent::state::State;
use ocm::gitops_cluster::GitOpsClusterSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The state that was read on a hub. The values are JSON objects of the API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetState {
    /// The requested GitOpsClusters.
    pub(crate) gitops_clusters: Vec<Value>,
    /// The health of their agents; `None` if the user is not permitted to read it.
    pub(crate) agents: Option<AgentInputs>,
    /// The expiry of the agents' certificates (RFC 3339), by managed cluster; `None` if not requested, or not permitted.
    pub(crate) certificates: Option<BTreeMap<String, String>>,
    /// The reads that failed: one line each.
    pub(crate) notices: Vec<String>,
}

/// The inputs of the agents' health.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentInputs {
    /// The managed clusters that get an agent, by the GitOpsCluster that installs it, as `NAMESPACE/NAME`.
    pub(crate) members: BTreeMap<String, BTreeSet<String>>,
    /// The add-ons of argocd-agent, by managed cluster. Only their status is read.
    pub(crate) addons: BTreeMap<String, Value>,
    /// The managed clusters that the hub does not hear from, if the user is permitted to read that.
    pub(crate) silent: BTreeSet<String>,
}

/// The state of a GitOpsCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitOpsClusterReport {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// True if it is being deleted.
    pub(crate) deleting: bool,
    /// True if its conditions are about the current generation.
    pub(crate) is_current: bool,
    pub(crate) placement: String,
    /// Its settings of argocd-agent, if it installs one.
    pub(crate) agent: Option<AgentConnection>,
    /// The numbers of selected managed clusters, registered ones, and so on, as far as known.
    pub(crate) counts: Vec<(&'static str, u64)>,
    /// The certificates on the hub by the names of their Secrets, and their expiry (RFC 3339).
    pub(crate) certificates: Vec<(String, String)>,
    /// The conditions in its status, including `Ready`.
    pub(crate) conditions: Vec<GitOpsClusterCondition>,
    /// The managed clusters that get an agent, the least healthy first.
    pub(crate) members: Vec<AgentMember>,
    /// The number of other clusters, of unknown state.
    pub(crate) unlisted: u64,
}

/// The settings of argocd-agent in a GitOpsCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentConnection {
    /// `managed` or `autonomous`.
    pub(crate) mode: String,
    /// The address that agents connect to, if known.
    pub(crate) server: Option<String>,
}

/// A condition of a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct GitOpsClusterCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// The reason, in one word.
    pub(crate) reason: String,
    /// The message for people.
    pub(crate) message: String,
}

/// A managed cluster with an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentMember {
    /// The state of the agent; `None` if the status has a word that is unknown here.
    pub(crate) state: Option<State>,
    /// The cluster.
    pub(crate) name: String,
    /// The expiry of the agent's certificate (RFC 3339), if known.
    pub(crate) certificate_expiry: Option<String>,
    /// The message about the state; empty if there is none.
    pub(crate) message: String,
}

impl AgentMember {
    /// Returns the state as text for people.
    pub(crate) fn state(&self) -> String {
        self.state
            .map_or_else(|| "Unknown".to_owned(), |state| format!("{state:?}"))
    }
}

/// Returns true if a GitOpsCluster enables argocd-agent, in either dialect.
pub(crate) fn has_agents(gitops_cluster: &Value) -> bool {
    mode(&gitops_cluster["spec"]).is_some()
}

/// Returns the mode of the agents; the default is `managed`.
fn mode(spec: &Value) -> Option<Box<str>> {
    let spec = GitOpsClusterSpec::deserialize(spec).ok()?;
    let mode = spec
        .asked_agent()?
        .mode()
        .filter(|mode| !mode.is_empty())
        .unwrap_or("managed")
        .into();
    Some(mode)
}

fn format_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

impl GitOpsClusterReport {
    /// Creates the report on this GitOpsCluster of a fleet.
    pub(crate) fn new(gitops_cluster: &Value, fleet: &FleetState) -> Self {
        let [metadata, spec, status] = ["metadata", "spec", "status"].map(|part| &gitops_cluster[part]);
        let text = |object: &Value, key: &str| format_scalar(&object[key]);
        let [namespace, name] = ["namespace", "name"].map(|key| text(metadata, key));
        let mode = mode(spec);
        let is_agent = mode.is_some();
        let (members, agent_counts) = match &fleet.agents {
            _ if !is_agent => (Vec::new(), None),
            Some(agents) => {
                let (members, counts) = live(agents, &format!("{namespace}/{name}"), fleet.certificates.as_ref());
                (members, Some(counts))
            }
            None => (listed(status), None),
        };
        let count = |key: &'static str| {
            let counted = agent_counts.and_then(|counts| counts.into_iter().find(|(state, _)| *state == key));
            let count = counted
                .map(|(_, count)| count)
                .or_else(|| status["clusters"][key].as_u64());
            Some((key, count?))
        };
        let server = &status["server"];
        let ready = state::condition(gitops_cluster, "Ready");
        let certificate = |certificate: &Value| (text(certificate, "name"), text(certificate, "notAfter"));
        let is_cut = is_agent && fleet.agents.is_none();
        let unlisted = status["clusterStatesCut"].as_u64().filter(|_| is_cut);
        Self {
            deleting: metadata["deletionTimestamp"].is_string(),
            is_current: ready["observedGeneration"] == metadata["generation"],
            placement: text(&spec["placementRef"], "name"),
            agent: mode.map(|mode| AgentConnection {
                mode: mode.into(),
                server: server
                    .is_object()
                    .then(|| format!("{}:{}", text(server, "address"), text(server, "port"))),
            }),
            counts: ["selected", "registered", "installed", "connected", "degraded"]
                .into_iter()
                .filter_map(count)
                .collect(),
            certificates: items(&status["certificates"]).iter().map(certificate).collect(),
            conditions: Vec::deserialize(&status["conditions"]).unwrap_or_default(),
            members,
            unlisted: unlisted.unwrap_or_default(),
            namespace,
            name,
        }
    }

    /// Returns its `Ready` condition, if any.
    pub(crate) fn ready(&self) -> Option<&GitOpsClusterCondition> {
        self.conditions.iter().find(|condition| condition.kind == "Ready")
    }

    /// Returns true if everything is as desired and no agent is unhealthy. The state of a silent cluster is unknown.
    pub(crate) fn is_healthy(&self) -> bool {
        let is_ready = self.ready().is_some_and(|ready| ready.status == "True");
        let is_healthy = |member: &AgentMember| matches!(member.state, Some(State::Connected | State::Unreachable));
        is_ready && self.is_current && self.members.iter().all(is_healthy)
    }
}

/// Returns the health of the agents of a GitOpsCluster, from their add-ons.
fn live(
    agents: &AgentInputs,
    owner: &str,
    certificates: Option<&BTreeMap<String, String>>,
) -> (Vec<AgentMember>, [(&'static str, u64); 3]) {
    let (mut members, mut counts) = (Vec::new(), [("installed", 0), ("connected", 0), ("degraded", 0)]);
    for name in agents.members.get(owner).into_iter().flatten() {
        let agent_status = state::agent_status(agents.addons.get(name), agents.silent.contains(name));
        let is_counted = [
            agent_status.is_installed,
            agent_status.state == State::Connected,
            agent_status.state == State::Degraded,
        ];
        for ((_, count), is_counted) in counts.iter_mut().zip(is_counted) {
            *count = u64::saturating_add(*count, u64::from(is_counted));
        }
        members.push(AgentMember {
            state: Some(agent_status.state),
            name: name.clone(),
            certificate_expiry: certificates.and_then(|all| all.get(name)).cloned(),
            message: agent_status.message.to_owned(),
        });
    }
    members.sort();
    (members, counts)
}

/// Returns the agents that the status lists.
fn listed(status: &Value) -> Vec<AgentMember> {
    let member = |value: &Value| AgentMember {
        state: State::deserialize(&value["state"]).ok(),
        name: format_scalar(&value["name"]),
        certificate_expiry: value["certificateNotAfter"].as_str().map(str::to_owned),
        message: format_scalar(&value["message"]),
    };
    let mut members: Vec<_> = items(&status["clusterStates"]).iter().map(member).collect();
    members.sort();
    members
}

#[cfg(test)]
mod tests;
