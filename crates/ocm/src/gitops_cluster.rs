//! The GitOpsCluster resource: the union of argocd-pull-integration's `v1alpha1`, Red Hat ACM's `v1beta1` and our own fields.
//! Both versions have one schema, so an object written in one version is read in the other without loss.
//!
//! `deploy/gitopscluster_crd.yaml` is generated from these types: their doc comments are the output of `kubectl explain`. A test
//! compares the file with them, and its message contains the command to regenerate it. Only the CRD validates fields; the reader
//! accepts missing or invalid ones, see [`Field`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod addon;
mod agent;
#[cfg(test)]
mod crd;
mod finalizers;
mod status;
#[cfg(test)]
mod tests;

pub use addon::{AddonAgent, AddonManifestWork, AgentAddon, GitOpsAddon, OlmSubscription};
pub use agent::{AgentImages, AgentRollout, AgentSettings, Operator, Progressive, ProgressivePerGroup};
pub use finalizers::{SHARED_FINALIZER, finalizer, namespace_of_finalizer};
pub use status::{
    CERTIFICATES_MAX, CertificateExpiry, ClusterState, Clusters, Condition, GitOpsClusterStatus, PrincipalAddress,
    STATES_MAX,
};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::ops::Deref;

#[cfg(test)]
use crd::rules;

/// An optional field. A value of the wrong type is read as missing: a hub may still have a peer integration's CRD, or an object
/// from that time, and such an object must not be ignored as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<T>(Option<T>);

impl<T> Field<T> {
    /// Returns the value, if any.
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

/// The desired state.
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
pub struct GitOpsClusterSpec {
    /// Additional settings of argocd-agent. Needs argoCDAgentAddon or gitopsAddon.argoCDAgent.enabled.
    pub agent: Field<AgentSettings>,
    /// The add-on that runs argocd-agent, as argocd-pull-integration defines it in v1alpha1.
    #[serde(rename = "argoCDAgentAddon")]
    pub agent_addon: Field<AgentAddon>,
    /// The Argo CD on the hub. Defaults to the one in the namespace of the GitOpsCluster.
    pub argo_server: Field<ArgoServer>,
    /// Register clusters without credentials. An agent has precedence.
    pub create_blank_cluster_secrets: Field<bool>,
    /// Create a Policy that grants a ManagedServiceAccount its permissions.
    pub create_policy_template: Field<bool>,
    /// The add-on that runs Argo CD on managed clusters, as Red Hat ACM defines it in v1beta1.
    pub gitops_addon: Field<GitOpsAddon>,
    /// The ManagedServiceAccount whose token Argo CD uses to connect to managed clusters.
    pub managed_service_account_ref: Field<String>,
    /// The Placement that selects the managed clusters, in the namespace of the GitOpsCluster.
    pub placement_ref: Field<PlacementRef>,
}

/// The settings of argocd-agent, in the form of one of the peer integrations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AskedAgent<'s> {
    /// The settings in the form of argocd-pull-integration.
    Pull(&'s AgentAddon),
    /// The settings in the form of Red Hat ACM.
    Acm(&'s AddonAgent),
}

impl GitOpsClusterSpec {
    /// Returns the settings of argocd-agent, if the GitOpsCluster requests it.
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
    /// Returns the mode of the agent, unvalidated.
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

/// A Placement, as an ObjectReference of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(
    extend("x-kubernetes-map-type" = "atomic"),
    extend("x-kubernetes-validations" = rules(&[
        ("has(self.name) && self.name != ''", "a Placement needs a name"),
        ("!has(self.kind) || self.kind == 'Placement'", "the kind must be Placement"),
        (
            "!has(self.apiVersion) || self.apiVersion.startsWith('cluster.open-cluster-management.io/')",
            "the apiVersion must be of cluster.open-cluster-management.io",
        ),
    ])),
))]
pub struct PlacementRef {
    /// Any version of cluster.open-cluster-management.io.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub api_version: Field<String>,
    /// Not used.
    pub field_path: Field<String>,
    /// Must be Placement.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub kind: Field<String>,
    /// The name of the Placement.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub name: Field<Box<str>>,
    /// The namespace of the GitOpsCluster, if set.
    pub namespace: Field<Box<str>>,
    /// Not used.
    pub resource_version: Field<String>,
    /// Not used.
    pub uid: Field<String>,
}

/// Registers the managed clusters that a Placement selects in an Argo CD, and installs argocd-agent on them if requested.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
struct GitOpsCluster {
    #[expect(dead_code, reason = "only its schema is used")]
    spec: GitOpsClusterSpec,
    #[expect(dead_code, reason = "only its schema is used")]
    status: Option<GitOpsClusterStatus>,
}
