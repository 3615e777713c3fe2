//! What is ours: more about argocd-agent than the peers let be said.

use super::Field;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::crd::{any_share, rules, some_share};

/// More about argocd-agent than the peers let be said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agent {
    /// The images that run on managed clusters. Without one, that which the controller is told.
    pub images: Field<Images>,
    /// Whether argocd-operator brings Argo CD and argocd-agent to the managed clusters. Without it, the add-on does itself.
    pub operator: Field<Operator>,
    /// Managed clusters whose agents may not connect any more, also with a certificate that is still valid.
    #[cfg_attr(test, schemars(
        length(max = 1000),
        inner(length(min = 1, max = 63)),
        extend("x-kubernetes-list-type" = "set"),
    ))]
    pub revoked_clusters: Field<Vec<Box<str>>>,
    /// How a change of the agent goes from managed cluster to managed cluster, as in a ClusterManagementAddOn. Without it, to
    /// all at once.
    pub rollout_strategy: Field<Rollout>,
}

/// The images that run on managed clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Images {
    /// argocd-agent.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub agent: Field<Box<str>>,
    /// Argo CD.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub argocd: Field<Box<str>>,
    /// argocd-operator, where it is chosen.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub operator: Field<Box<str>>,
    /// Redis.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub redis: Field<Box<str>>,
    /// That of which the supervisor of argocd-agent is taken, which starts it anew when its certificate has changed.
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub supervisor: Field<Box<str>>,
}

/// Who brings Argo CD and argocd-agent to the managed clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Operator {
    /// Whether argocd-operator is brought, with an ArgoCD for the agent: that of argoCDAgentAddon.argoCDCRManifestWork, or one with
    /// what the agent needs.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub enabled: Field<bool>,
}

/// How a change goes from managed cluster to managed cluster: the `RolloutStrategy` of OCM's `cluster/v1alpha1`. What OCM's CRD
/// takes and OCM then cannot read is refused here: a duration that Go does not know, for which no ClusterManagementAddOn could be
/// listed any more, and a number in quotes, at which a rollout stops. So is what means all clusters at once and hardly can:
/// a maxConcurrency of 0, or none.
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
pub struct Rollout {
    /// To all managed clusters at once (All), to some at a time (Progressive), or to a group of the Placement's at a time
    /// (ProgressivePerGroup).
    #[cfg_attr(test, schemars(extend("enum" = ["All", "Progressive", "ProgressivePerGroup"])))]
    #[serde(rename = "type")]
    pub kind: String,
    /// For the type Progressive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive: Option<Progressive>,
    /// For the type ProgressivePerGroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<ProgressivePerGroup>,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            kind: "All".to_owned(),
            progressive: None,
            progressive_per_group: None,
        }
    }
}

/// How a change goes to some managed clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(extend("required" = ["maxConcurrency"])))]
pub struct Progressive {
    /// How many managed clusters change at a time, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "some_share"))]
    pub max_concurrency: Option<IntOrString>,
    /// How many managed clusters may fail before the change stops, as a number or a percentage. Without it, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "any_share"))]
    pub max_failures: Option<IntOrString>,
    /// How long a managed cluster has to fare well before the next ones change, such as 90s, 10m or 2h.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^(0|[0-9]{1,6}[hms])$")))]
    pub min_success_time: Option<String>,
    /// After how long a managed cluster has failed, such as 90s, 10m or 2h. Without it, or with None, never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^([0-9]{1,6}[hms]|None)$")))]
    pub progress_deadline: Option<String>,
}

/// How a change goes to a group of the Placement's at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgressivePerGroup {
    /// How many managed clusters may fail before the change stops, as a number or a percentage. Without it, none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "any_share"))]
    pub max_failures: Option<IntOrString>,
    /// How long a group has to fare well before the next one changes, such as 90s, 10m or 2h.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^(0|[0-9]{1,6}[hms])$")))]
    pub min_success_time: Option<String>,
    /// After how long a managed cluster has failed, such as 90s, 10m or 2h. Without it, or with None, never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(regex(pattern = "^([0-9]{1,6}[hms]|None)$")))]
    pub progress_deadline: Option<String>,
}
