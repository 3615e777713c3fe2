//! The status of a GitOpsCluster.

use serde::{Deserialize, Serialize};

/// The maximum number of [`GitOpsClusterStatus::cluster_states`].
pub const STATES_MAX: usize = 100;
/// The maximum number of [`GitOpsClusterStatus::certificates`].
pub const CERTIFICATES_MAX: usize = 16;

/// The observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitOpsClusterStatus {
    /// The namespace of the Argo CD whose controller wrote this status. Missing while no controller serves that Argo CD.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub argo_namespace: Option<String>,
    /// The certificates on the hub that agents and the principal use to authenticate each other, with their expiry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(
        length(max = CERTIFICATES_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
    ))]
    pub certificates: Vec<CertificateExpiry>,
    /// The managed clusters whose agents are degraded or changing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(
        length(max = STATES_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
    ))]
    pub cluster_states: Vec<ClusterState>,
    /// The number of managed clusters that clusterStates omits because the list would be too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_states_cut: Option<u32>,
    /// The numbers of managed clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Clusters>,
    /// The conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    pub conditions: Vec<Condition>,
    /// The time of the last update of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_update_time: Option<String>,
    /// The reason why the GitOpsCluster is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The phase: successful or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The principal's address for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<PrincipalAddress>,
}

/// The numbers of managed clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clusters {
    /// The number of clusters whose agent is connected to the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<u32>,
    /// The number of clusters whose agent is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<u32>,
    /// The number of clusters on which the agent is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<u32>,
    /// The number of clusters that are registered in Argo CD by a Secret of this GitOpsCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<u32>,
    /// The number of clusters that the Placement selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
}

/// The address of the principal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PrincipalAddress {
    /// A host name or an IP address.
    pub address: String,
    /// The port.
    pub port: String,
}

/// A certificate on the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CertificateExpiry {
    /// The Secret that contains the certificate.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub name: String,
    /// The expiry of the certificate.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub not_after: String,
}

/// The state of the agent on a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClusterState {
    /// The expiry of the agent's client certificate for the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub certificate_not_after: Option<String>,
    /// Details of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub message: Option<String>,
    /// The name of the managed cluster.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub name: String,
    /// The state of the agent, in one word.
    #[cfg_attr(test, schemars(length(max = 64)))]
    pub state: String,
}

/// A condition of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Condition {
    /// The time of the last transition.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// The reason in readable form.
    #[cfg_attr(test, schemars(length(max = 32768)))]
    pub message: String,
    /// The generation of the GitOpsCluster that the condition describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub observed_generation: Option<i64>,
    /// The reason in one word.
    #[cfg_attr(
        test,
        schemars(
            length(min = 1, max = 1024),
            regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        )
    )]
    pub reason: String,
    /// The status: True, False or Unknown.
    #[cfg_attr(test, schemars(extend("enum" = ["True", "False", "Unknown"])))]
    pub status: String,
    /// The type of the condition.
    #[cfg_attr(test, schemars(length(max = 316)))]
    #[serde(rename = "type")]
    pub kind: String,
}
