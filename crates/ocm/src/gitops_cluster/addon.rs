//! The add-on that installs an agent on managed clusters, as each peer integration defines it.

use super::Field;
use serde::Deserialize;
use serde_json::Value;

#[cfg(test)]
use super::crd::{object, rules};

#[cfg(test)]
const MODE: &str = "the mode must be managed or autonomous";
#[cfg(test)]
const PORT: &[(&str, &str)] = &[(
    "self == '' || (self.matches('^[0-9]{1,5}$') && int(self) >= 1 && int(self) <= 65535)",
    "a port must be a number from 1 to 65535",
)];

/// The add-on of argocd-pull-integration (v1alpha1).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentAddon {
    /// The namespace of the agent and its Argo CD on the managed cluster. Defaults to argocd.
    pub agent_namespace: Field<Box<str>>,
    /// Objects to deliver to managed clusters instead of the default Argo CD.
    #[serde(rename = "argoCDCRManifestWork")]
    pub manifest_work: Field<AddonManifestWork>,
    /// The mode of the agent: the hub (managed) or the cluster itself (autonomous) defines the Applications of the managed
    /// cluster.
    #[cfg_attr(test, schemars(
        length(max = 16),
        extend("default" = "managed"),
        extend("x-kubernetes-validations" = rules(&[("self in ['managed', 'autonomous']", MODE)])),
    ))]
    pub mode: Field<Box<str>>,
    /// The namespace of the operator on the managed cluster.
    pub operator_namespace: Field<String>,
    /// The address of the principal. By default, the controller finds it.
    pub principal_server_address: Field<Box<str>>,
    /// The port of the principal. By default, the controller finds it.
    #[cfg_attr(test, schemars(length(max = 8), extend("x-kubernetes-validations" = rules(PORT))))]
    pub principal_server_port: Field<Box<str>>,
}

/// Objects to deliver to managed clusters instead of the default Argo CD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["manifests"])))]
pub struct AddonManifestWork {
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

/// The add-on of Red Hat ACM (v1beta1).
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
    /// Enable the add-on.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// The image of Argo CD on managed clusters, in Red Hat ACM 2.15.
    pub git_ops_image: Field<String>,
    /// The namespace of Argo CD on managed clusters, in Red Hat ACM 2.15.
    pub git_ops_namespace: Field<String>,
    /// The image of the operator on managed clusters.
    pub git_ops_operator_image: Field<String>,
    /// The namespace of the operator on managed clusters, in Red Hat ACM 2.15.
    pub git_ops_operator_namespace: Field<String>,
    /// The installation of the operator by OLM on managed clusters.
    pub olm_subscription: Field<OlmSubscription>,
    /// Overwrite settings of the add-on that others have made.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub override_existing_configs: Field<bool>,
    /// The scope of the operator on managed clusters, in Red Hat ACM 2.15.
    pub reconcile_scope: Field<String>,
    /// The image of Redis on managed clusters, in Red Hat ACM 2.15.
    pub redis_image: Field<String>,
    /// Uninstall the add-on, in Red Hat ACM 2.15.
    pub uninstall: Field<bool>,
}

/// The argocd-agent of Red Hat ACM's add-on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddonAgent {
    /// Run argocd-agent on the managed clusters.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// The image of the agent, in Red Hat ACM 2.15.
    pub image: Field<String>,
    /// The mode of the agent: the hub (managed) or the cluster itself (autonomous) defines the Applications of the managed
    /// cluster. Defaults to managed.
    #[cfg_attr(test, schemars(
        length(max = 16),
        extend("x-kubernetes-validations" = rules(&[("self in ['', 'managed', 'autonomous']", MODE)])),
    ))]
    pub mode: Field<Box<str>>,
    /// Deliver the CA of the hub to managed clusters.
    #[serde(rename = "propagateHubCA")]
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub propagate_hub_ca: Field<bool>,
    /// The address of the principal. By default, the controller finds it.
    pub server_address: Field<Box<str>>,
    /// The port of the principal. By default, the controller finds it.
    #[cfg_attr(test, schemars(length(max = 8), extend("x-kubernetes-validations" = rules(PORT))))]
    pub server_port: Field<Box<str>>,
    /// Uninstall the agent, in Red Hat ACM 2.15.
    pub uninstall: Field<bool>,
}

/// The installation of an operator by OLM.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OlmSubscription {
    /// The channel of the Subscription.
    pub channel: Field<String>,
    /// Install the operator by OLM.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
    /// The approval of new versions: Automatic or Manual.
    #[cfg_attr(test, schemars(extend("enum" = ["Automatic", "Manual"])))]
    pub install_plan_approval: Field<String>,
    /// The name of the Subscription.
    pub name: Field<String>,
    /// The namespace of the Subscription.
    pub namespace: Field<String>,
    /// The name of the CatalogSource.
    pub source: Field<String>,
    /// The namespace of the CatalogSource.
    pub source_namespace: Field<String>,
}
