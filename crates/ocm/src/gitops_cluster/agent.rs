//! Our own fields: settings of argocd-agent that the peer integrations lack.

use super::Field;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::crd::{any_share, rules, some_share};

/// Additional settings of argocd-agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentSettings {
    /// The images on managed clusters. Each defaults to the one that the controller is configured with.
    pub images: Field<AgentImages>,
    /// Install Argo CD and argocd-agent on managed clusters by argocd-operator. By default, the add-on installs them itself.
    pub operator: Field<Operator>,
    /// Managed clusters whose agents must not connect any more, even with a certificate that is still valid.
    #[cfg_attr(test, schemars(
        length(max = 1000),
        inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "set"),
    ))]
    pub revoked_clusters: Field<Vec<Box<str>>>,
    /// The rollout of a change of the agent over the managed clusters, as in a ClusterManagementAddOn. By default, all clusters
    /// change at once.
    pub rollout_strategy: Field<AgentRollout>,
}

/// The images on managed clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentImages {
    /// The image of argocd-agent.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub agent: Field<Box<str>>,
    /// The image of Argo CD.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub argocd: Field<Box<str>>,
    /// The image of argocd-operator, if it is enabled.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub operator: Field<Box<str>>,
    /// The image of Redis.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub redis: Field<Box<str>>,
    /// The image that contains the supervisor of argocd-agent, which restarts the agent when its certificate changes.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub supervisor: Field<Box<str>>,
}

/// The operator that installs Argo CD and argocd-agent on managed clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Operator {
    /// Install argocd-operator, with an ArgoCD for the agent: that of argoCDAgentAddon.argoCDCRManifestWork, or a default one.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
}

/// The rollout of a change over managed clusters: the `RolloutStrategy` of OCM's `cluster/v1alpha1`. Rejects values that OCM's
/// CRD accepts but OCM cannot read: a duration that Go cannot parse, which would break listing ClusterManagementAddOns, and a
/// number in quotes, which stops a rollout. Also rejects a missing maxConcurrency and one of 0, which would change all clusters
/// at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(
    extend("x-kubernetes-validations" = rules(&[
        (
            "self.type != 'Progressive' || has(self.progressive)",
            "the type Progressive needs progressive",
        ),
        (
            "!has(self.progressive) || self.type == 'Progressive'",
            "progressive needs the type Progressive",
        ),
        (
            "!has(self.progressivePerGroup) || self.type == 'ProgressivePerGroup'",
            "progressivePerGroup needs the type ProgressivePerGroup",
        ),
    ])),
))]
pub struct AgentRollout {
    /// The type of the rollout: all managed clusters at once (All), some at a time (Progressive), or one decision group of the
    /// Placement at a time (ProgressivePerGroup).
    #[cfg_attr(test, schemars(extend("enum" = ["All", "Progressive", "ProgressivePerGroup"])))]
    #[serde(rename = "type")]
    pub kind: String,
    /// Settings of the type Progressive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive: Option<Progressive>,
    /// Settings of the type ProgressivePerGroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<ProgressivePerGroup>,
}

impl Default for AgentRollout {
    fn default() -> Self {
        Self {
            kind: "All".to_owned(),
            progressive: None,
            progressive_per_group: None,
        }
    }
}

/// A rollout to some managed clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["maxConcurrency"])))]
pub struct Progressive {
    /// The maximum number of managed clusters that change at a time, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "some_share"))]
    pub max_concurrency: Option<IntOrString>,
    /// The maximum number of managed clusters that may fail before the rollout stops, as a number or a percentage. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "any_share"))]
    pub max_failures: Option<IntOrString>,
    /// The time for which a managed cluster must stay healthy before the next ones change, such as 90s, 10m or 2h.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^(0|[0-9]{1,6}[hms])$")))]
    pub min_success_time: Option<String>,
    /// The time after which a managed cluster counts as failed, such as 90s, 10m or 2h. By default, or with None, it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^([0-9]{1,6}[hms]|None)$")))]
    pub progress_deadline: Option<String>,
}

/// A rollout to one decision group of the Placement at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgressivePerGroup {
    /// The maximum number of managed clusters that may fail before the rollout stops, as a number or a percentage. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "any_share"))]
    pub max_failures: Option<IntOrString>,
    /// The time for which a group must stay healthy before the next one changes, such as 90s, 10m or 2h.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^(0|[0-9]{1,6}[hms])$")))]
    pub min_success_time: Option<String>,
    /// The time after which a managed cluster counts as failed, such as 90s, 10m or 2h. By default, or with None, it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^([0-9]{1,6}[hms]|None)$")))]
    pub progress_deadline: Option<String>,
}
