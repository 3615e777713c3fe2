//! `gitopscluster status`: how a GitOpsCluster fares, with every managed cluster whose agent it brings.
//!
//! ```text
//! hub ─▶ Fleet ─▶ Report ─▶ table, JSON or YAML
//! ```
//!
//! What the controller says in the status of a GitOpsCluster is repeated, and how the agents fare is told of their add-ons, by the same
//! rules ([`state`]): a status lists a hundred clusters at most. Where the add-ons must not be read, that is what is told.

mod print;
mod table;

pub use print::value;
pub use table::table;

use crate::agent::state::{self, State};
use crate::gitopscluster::Spec;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was read on a hub. The values are JSON objects as the API server has them.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// The GitOpsClusters that are asked for.
    pub gitops_clusters: Vec<Value>,
    /// How their agents fare; none where the user must not read that.
    pub agents: Option<Agents>,
    /// Until when agents have certificates (RFC 3339), by their managed clusters; none where nobody has asked, or must not read that.
    pub certificates: Option<BTreeMap<String, String>>,
    /// What could not be read: one line each.
    pub notices: Vec<String>,
}

/// What says how agents fare.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// Which managed clusters are brought an agent, by the GitOpsCluster that does it, as `NAMESPACE/NAME`.
    pub members: BTreeMap<String, BTreeSet<String>>,
    /// The add-ons of argocd-agent, by their managed clusters. Of them, only the status is read.
    pub addons: BTreeMap<String, Value>,
    /// The managed clusters that the hub does not hear from, where the user may see that.
    pub silent: BTreeSet<String>,
}

/// How a GitOpsCluster fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether its conditions are about what is asked for now.
    pub is_current: bool,
    /// The name of its Placement.
    pub placement: String,
    /// How it brings argocd-agent, if it does.
    pub agent: Option<Agent>,
    /// How many managed clusters are selected, registered, and so on, as far as that is known.
    pub counts: Vec<(&'static str, u64)>,
    /// The certificates on the hub by the names of their Secrets, and until when they are good (RFC 3339).
    pub certificates: Vec<(String, String)>,
    /// What its status says, `Ready` too.
    pub conditions: Vec<Condition>,
    /// The managed clusters that are brought an agent: those that fare worst first.
    pub members: Vec<Member>,
    /// How many more there are, of which nothing can be told.
    pub untold: u64,
}

/// How a GitOpsCluster brings argocd-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// `managed` or `autonomous`.
    pub mode: String,
    /// Where agents are told to connect to, if that is known.
    pub server: Option<String>,
}

/// A condition of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// A managed cluster with an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// How the agent fares; none where that is a word that is not known here.
    pub state: Option<State>,
    /// The cluster.
    pub name: String,
    /// Until when the agent has a certificate (RFC 3339), where that is known.
    pub until: Option<String>,
    /// Why it fares so; empty where nothing is to be said.
    pub message: String,
}

impl Member {
    /// What people read of its state.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.state.map_or("Unknown", State::name)
    }
}

/// Whether a GitOpsCluster asks for argocd-agent, in either dialect.
#[must_use]
pub fn has_agents(gitops_cluster: &Value) -> bool {
    mode(&gitops_cluster["spec"]).is_some()
}

/// The mode of the agents that are asked for; nothing said is `managed`.
fn mode(spec: &Value) -> Option<Box<str>> {
    let spec = Spec::deserialize(spec).ok()?;
    let mode = spec
        .asked_agent()?
        .mode()
        .filter(|mode| !mode.is_empty())
        .unwrap_or("managed")
        .into();
    Some(mode)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Report {
    /// How this GitOpsCluster of a fleet fares.
    #[must_use]
    pub fn new(gitops_cluster: &Value, fleet: &Fleet) -> Self {
        let [metadata, spec, status] = ["metadata", "spec", "status"].map(|part| &gitops_cluster[part]);
        let [namespace, name] = ["namespace", "name"].map(|key| text(&metadata[key]));
        let mode = mode(spec);
        let is_agent = mode.is_some();
        let (members, told) = match &fleet.agents {
            _ if !is_agent => (Vec::new(), None),
            Some(agents) => {
                let (members, counts) = live(agents, &format!("{namespace}/{name}"), fleet.certificates.as_ref());
                (members, Some(counts))
            }
            None => (listed(status), None),
        };
        let count = |key: &'static str| {
            let told = told.and_then(|told| told.into_iter().find(|(state, _)| *state == key));
            let count = told
                .map(|(_, count)| count)
                .or_else(|| status["clusters"][key].as_u64());
            Some((key, count?))
        };
        let server = &status["server"];
        let conditions = items(&status["conditions"]).map(|it| Condition {
            kind: text(&it["type"]),
            status: text(&it["status"]),
            reason: text(&it["reason"]),
            message: text(&it["message"]),
        });
        let ready = state::condition(gitops_cluster, "Ready");
        let untold = status["clusterStatesCut"].as_u64().unwrap_or_default();
        Self {
            deleting: metadata["deletionTimestamp"].is_string(),
            is_current: ready["observedGeneration"] == metadata["generation"],
            placement: text(&spec["placementRef"]["name"]),
            agent: mode.map(|mode| Agent {
                mode: mode.into(),
                server: server
                    .is_object()
                    .then(|| format!("{}:{}", text(&server["address"]), text(&server["port"]))),
            }),
            counts: ["selected", "registered", "installed", "connected", "degraded"]
                .into_iter()
                .filter_map(count)
                .collect(),
            certificates: items(&status["certificates"])
                .map(|it| (text(&it["name"]), text(&it["notAfter"])))
                .collect(),
            conditions: conditions.collect(),
            members,
            untold: if is_agent && fleet.agents.is_none() { untold } else { 0 },
            namespace,
            name,
        }
    }

    /// What it says of all together, if it says anything.
    #[must_use]
    pub fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == "Ready")
    }

    /// Whether all is as asked for, and no agent fares badly. Of a cluster that is silent nobody knows.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let is_ready = self.ready().is_some_and(|ready| ready.status == "True");
        let is_well = |member: &Member| matches!(member.state, Some(State::Connected | State::Unreachable));
        is_ready && self.is_current && self.members.iter().all(is_well)
    }
}

/// How the agents of a GitOpsCluster fare, of their add-ons.
fn live(
    agents: &Agents,
    owner: &str,
    certificates: Option<&BTreeMap<String, String>>,
) -> (Vec<Member>, [(&'static str, u64); 3]) {
    let (mut members, mut counts) = (Vec::new(), [("installed", 0), ("connected", 0), ("degraded", 0)]);
    for name in agents.members.get(owner).into_iter().flatten() {
        let told = state::told(agents.addons.get(name), agents.silent.contains(name));
        let is = [
            told.is_installed,
            told.state == State::Connected,
            told.state == State::Degraded,
        ];
        for ((_, count), is) in counts.iter_mut().zip(is) {
            *count = u64::saturating_add(*count, u64::from(is));
        }
        members.push(Member {
            state: Some(told.state),
            name: name.clone(),
            until: certificates.and_then(|all| all.get(name)).cloned(),
            message: told.message.to_owned(),
        });
    }
    members.sort();
    (members, counts)
}

/// What the status lists of them.
fn listed(status: &Value) -> Vec<Member> {
    let member = |it: &Value| Member {
        state: it["state"].as_str().and_then(State::named),
        name: text(&it["name"]),
        until: it["certificateNotAfter"].as_str().map(str::to_owned),
        message: text(&it["message"]),
    };
    let mut members: Vec<_> = items(&status["clusterStates"]).map(member).collect();
    members.sort();
    members
}

#[cfg(test)]
mod tests;
