//! The resource GitOpsCluster as it is written: the union of what argocd-pull-integration has in `v1alpha1` and Red Hat ACM in
//! `v1beta1`, and what is ours. One schema for both versions, so what is written as one is read as the other without a loss.
//!
//! `gitopscluster_crd.yaml` is made of these types: their doc comments are what `kubectl explain` says. A test holds the file to
//! them, and says how to write it anew. What a field may be is said by the CRD alone; to read, any field may be missing or
//! be something else, see [`Field`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod addon;
mod agent;
#[cfg(test)]
mod crd;
mod finalizers;
mod status;
#[cfg(test)]
mod tests;

pub use addon::{AddonAgent, AgentAddon, GitOpsAddon, ManifestWork, OlmSubscription};
pub use agent::{Agent, Images, Operator, Progressive, ProgressivePerGroup, Rollout};
pub use finalizers::{SHARED_FINALIZER, finalizer, namespace_of_finalizer};
pub use status::{CERTIFICATES_MAX, Certificate, ClusterState, Clusters, Condition, STATES_MAX, Server, Status};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::ops::Deref;

#[cfg(test)]
use crd::rules;

/// A field that may be missing. One that holds something else than it should is read as though it were missing: a hub can still
/// have a peer's CRD, or an object from the time of one, and such an object must not be lost from sight as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<T>(Option<T>);

impl<T> Field<T> {
    /// The value, if there is one.
    #[must_use]
    pub fn into_option(self) -> Option<T> {
        self.0
    }
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Field<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<'d, T: DeserializeOwned> Deserialize<'d> for Field<T> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(T::deserialize(value).ok()))
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(
    extend("required" = ["placementRef"]),
    extend("x-kubernetes-validations" = rules(&[
        (
            "has(self.argoServer) || has(self.argoCDAgentAddon)",
            "either argoServer (as in v1beta1) or argoCDAgentAddon (as in v1alpha1) is required",
        ),
        (
            "!has(self.argoCDAgentAddon) || !has(self.gitopsAddon)",
            "argoCDAgentAddon and gitopsAddon both describe the add-on, and only one of them may be given",
        ),
        (
            "!has(self.agent) || has(self.argoCDAgentAddon) || has(self.gitopsAddon) && self.gitopsAddon.enabled && \
             has(self.gitopsAddon.argoCDAgent) && self.gitopsAddon.argoCDAgent.enabled",
            "agent needs an agent: argoCDAgentAddon (as in v1alpha1) or gitopsAddon.argoCDAgent.enabled (as in v1beta1)",
        ),
    ])),
))]
pub struct Spec {
    /// More about argocd-agent than the peers let be said. Needs argoCDAgentAddon or gitopsAddon.argoCDAgent.enabled.
    pub agent: Field<Agent>,
    /// The add-on that runs argocd-agent, as argocd-pull-integration describes it in v1alpha1.
    #[serde(rename = "argoCDAgentAddon")]
    pub agent_addon: Field<AgentAddon>,
    /// The Argo CD on the hub. Without it, that of the GitOpsCluster's own namespace.
    pub argo_server: Field<ArgoServer>,
    /// Whether clusters are registered without a credential, also where an agent is asked for.
    pub create_blank_cluster_secrets: Field<bool>,
    /// Whether a Policy is made that gives a ManagedServiceAccount its rights.
    pub create_policy_template: Field<bool>,
    /// The add-on that runs Argo CD on managed clusters, as Red Hat ACM describes it in v1beta1.
    pub gitops_addon: Field<GitOpsAddon>,
    /// The ManagedServiceAccount by whose token Argo CD connects to managed clusters.
    pub managed_service_account_ref: Field<String>,
    /// The Placement that selects the managed clusters. It is in the namespace of the GitOpsCluster.
    pub placement_ref: Field<PlacementRef>,
}

/// What is asked for of argocd-agent, in the words of one of the peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AskedAgent<'s> {
    /// In those of argocd-pull-integration.
    Pull(&'s AgentAddon),
    /// In those of Red Hat ACM.
    Acm(&'s AddonAgent),
}

impl Spec {
    /// What is asked for of argocd-agent, if it is.
    #[must_use]
    pub fn asked_agent(&self) -> Option<AskedAgent<'_>> {
        if let Some(agent) = self.agent_addon.as_ref() {
            return Some(AskedAgent::Pull(agent));
        }
        let addon = self
            .gitops_addon
            .as_ref()
            .filter(|addon| addon.enabled.unwrap_or_default())?;
        let agent = addon.agent.as_ref().filter(|agent| agent.enabled.unwrap_or_default())?;
        Some(AskedAgent::Acm(agent))
    }
}

impl AskedAgent<'_> {
    /// In which mode, as it is written.
    #[must_use]
    pub fn mode(&self) -> Option<&str> {
        match self {
            Self::Pull(agent) => agent.mode.as_deref(),
            Self::Acm(agent) => agent.mode.as_deref(),
        }
    }
}

/// The Argo CD on the hub.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["argoNamespace"])))]
pub struct ArgoServer {
    /// The namespace of Argo CD.
    pub argo_namespace: Field<Box<str>>,
    /// Not used.
    pub cluster: Field<String>,
}

/// A Placement, as an ObjectReference of Kubernetes'.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(
    extend("x-kubernetes-map-type" = "atomic"),
    extend("x-kubernetes-validations" = rules(&[
        ("has(self.name) && self.name != ''", "a Placement has a name"),
        ("!has(self.kind) || self.kind == 'Placement'", "the kind is Placement"),
        (
            "!has(self.apiVersion) || self.apiVersion.startsWith('cluster.open-cluster-management.io/')",
            "a Placement is of cluster.open-cluster-management.io",
        ),
    ])),
))]
pub struct PlacementRef {
    /// Any version of cluster.open-cluster-management.io.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub api_version: Field<String>,
    /// Not used.
    pub field_path: Field<String>,
    /// Placement.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub kind: Field<String>,
    /// The name of the Placement.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub name: Field<Box<str>>,
    /// The namespace of the GitOpsCluster, if any.
    pub namespace: Field<Box<str>>,
    /// Not used.
    pub resource_version: Field<String>,
    /// Not used.
    pub uid: Field<String>,
}

/// Registers the managed clusters that a Placement selects in an Argo CD, and has argocd-agent run on them if that is asked for.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
struct GitOpsCluster {
    #[expect(dead_code, reason = "it is there for its schema")]
    spec: Spec,
    #[expect(dead_code, reason = "it is there for its schema")]
    status: Option<Status>,
}
