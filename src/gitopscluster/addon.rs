//! The add-on that brings an agent to managed clusters, as each peer describes it.

use super::Field;
use serde::Deserialize;
use serde_json::Value;

#[cfg(test)]
use super::crd::{object, rules};

#[cfg(test)]
const MODE: &str = "the mode is managed or autonomous";
#[cfg(test)]
const PORT: &[(&str, &str)] = &[(
    "self == '' || (self.matches('^[0-9]{1,5}$') && int(self) >= 1 && int(self) <= 65535)",
    "a port is a number from 1 to 65535",
)];

/// What argocd-pull-integration has in v1alpha1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentAddon {
    /// Where the agent and its Argo CD are on the managed cluster. Without it, argocd.
    pub agent_namespace: Field<Box<str>>,
    /// What is delivered to managed clusters instead of the default Argo CD.
    #[serde(rename = "argoCDCRManifestWork")]
    pub manifest_work: Field<ManifestWork>,
    /// Whether the hub says what runs on the managed cluster (managed), or the cluster itself (autonomous).
    #[cfg_attr(test, schemars(
        length(max = 16),
        extend("default" = "managed"),
        extend("x-kubernetes-validations" = rules(&[("self in ['managed', 'autonomous']", MODE)])),
    ))]
    pub mode: Field<Box<str>>,
    /// Where the operator is on the managed cluster.
    pub operator_namespace: Field<String>,
    /// Where the principal is reached. Without it, it is found.
    pub principal_server_address: Field<Box<str>>,
    /// At which port the principal is reached. Without it, it is found.
    #[cfg_attr(test, schemars(length(max = 8), extend("x-kubernetes-validations" = rules(PORT))))]
    pub principal_server_port: Field<Box<str>>,
}

/// What is delivered to managed clusters instead of the default Argo CD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["manifests"])))]
pub struct ManifestWork {
    /// The objects, one of them an ArgoCD of argoproj.io/v1beta1.
    #[cfg_attr(test, schemars(
        length(min = 1, max = 100),
        extend("items" = object()),
        extend("x-kubernetes-validations" = rules(&[(
            "self.exists(it, it.apiVersion == 'argoproj.io/v1beta1' && it.kind == 'ArgoCD')",
            "one of the manifests must be an ArgoCD of argoproj.io/v1beta1",
        )])),
    ))]
    pub manifests: Field<Vec<Value>>,
}

/// What Red Hat ACM has in v1beta1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "!has(self.argoCDAgent) || !self.argoCDAgent.enabled || self.enabled",
        "argoCDAgent.enabled needs gitopsAddon.enabled",
    ),
    (
        "!has(self.olmSubscription) || !self.olmSubscription.enabled || self.enabled",
        "olmSubscription.enabled needs gitopsAddon.enabled",
    ),
]))))]
pub struct GitOpsAddon {
    /// The argocd-agent of the add-on.
    #[serde(rename = "argoCDAgent")]
    pub agent: Field<AddonAgent>,
    /// Whether there is to be an add-on at all.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// The image of the operator on managed clusters.
    pub git_ops_operator_image: Field<String>,
    /// How the operator is installed by OLM on managed clusters.
    pub olm_subscription: Field<OlmSubscription>,
    /// Whether settings of the add-on are overwritten that somebody has made.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub override_existing_configs: Field<bool>,
}

/// The argocd-agent of Red Hat ACM's add-on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddonAgent {
    /// Whether argocd-agent is to run on the managed clusters.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// Whether the hub says what runs on the managed cluster (managed), or the cluster itself (autonomous). Without it, the hub.
    #[cfg_attr(test, schemars(
        length(max = 16),
        extend("x-kubernetes-validations" = rules(&[("self in ['', 'managed', 'autonomous']", MODE)])),
    ))]
    pub mode: Field<Box<str>>,
    /// Whether managed clusters get the CA of the hub.
    #[serde(rename = "propagateHubCA")]
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub propagate_hub_ca: Field<bool>,
    /// Where the principal is reached. Without it, it is found.
    pub server_address: Field<Box<str>>,
    /// At which port the principal is reached. Without it, it is found.
    #[cfg_attr(test, schemars(length(max = 8), extend("x-kubernetes-validations" = rules(PORT))))]
    pub server_port: Field<Box<str>>,
}

/// How an operator is installed by OLM.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OlmSubscription {
    /// The channel that is subscribed to.
    pub channel: Field<String>,
    /// Whether the operator is installed by OLM.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// Whether somebody has to approve of each version.
    #[cfg_attr(test, schemars(extend("enum" = ["Automatic", "Manual"])))]
    pub install_plan_approval: Field<String>,
    /// The name of the Subscription.
    pub name: Field<String>,
    /// The namespace of the Subscription.
    pub namespace: Field<String>,
    /// The CatalogSource.
    pub source: Field<String>,
    /// The namespace of the CatalogSource.
    pub source_namespace: Field<String>,
}
