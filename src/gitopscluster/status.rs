//! What the status of a GitOpsCluster says.

use serde::{Deserialize, Serialize};

/// How many [`Status::cluster_states`] a status lists at most.
pub const STATES_MAX: usize = 100;
/// How many [`Status::certificates`] a status lists at most.
pub const CERTIFICATES_MAX: usize = 16;

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// The namespace of the Argo CD whose controller wrote this status. Missing while no controller serves that Argo CD.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub argo_namespace: Option<String>,
    /// The certificates on the hub by which agents and the principal trust each other, and until when they are valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(
        length(max = CERTIFICATES_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
    ))]
    pub certificates: Vec<Certificate>,
    /// The managed clusters whose agents somebody should look at, or that change now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(
        length(max = STATES_MAX),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]),
    ))]
    pub cluster_states: Vec<ClusterState>,
    /// How many managed clusters clusterStates leaves out, because it would be too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_states_cut: Option<u32>,
    /// How many managed clusters there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Clusters>,
    /// What is so and what is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])))]
    pub conditions: Vec<Condition>,
    /// When the status was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_update_time: Option<String>,
    /// What keeps the GitOpsCluster from being ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether all is well, as successful or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Where agents are told to reach the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
}

/// How many managed clusters there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clusters {
    /// Those whose agent is connected to the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<u32>,
    /// Those whose agent is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<u32>,
    /// Those on which the agent is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<u32>,
    /// Those that Argo CD knows by a Secret of this GitOpsCluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered: Option<u32>,
    /// Those that the Placement selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
}

/// Where the principal is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Server {
    /// A name or an address.
    pub address: String,
    /// The port.
    pub port: String,
}

/// A certificate on the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Certificate {
    /// The Secret that holds it.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub name: String,
    /// Until when it is valid.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub not_after: String,
}

/// How the agent of a managed cluster fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClusterState {
    /// Until when the certificate is valid by which the agent is known to the principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub certificate_not_after: Option<String>,
    /// What is known besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub message: Option<String>,
    /// The managed cluster.
    #[cfg_attr(test, schemars(length(max = 63)))]
    pub name: String,
    /// How far its agent is, in one word.
    #[cfg_attr(test, schemars(length(max = 64)))]
    pub state: String,
}

/// A condition of Kubernetes'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Condition {
    /// Since when it is so.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// Why, for people.
    #[cfg_attr(test, schemars(length(max = 32768)))]
    pub message: String,
    /// Of which generation of the GitOpsCluster that is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub observed_generation: Option<i64>,
    /// Why, in one word.
    #[cfg_attr(
        test,
        schemars(
            length(min = 1, max = 1024),
            regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        )
    )]
    pub reason: String,
    /// Whether it is so.
    #[cfg_attr(test, schemars(extend("enum" = ["True", "False", "Unknown"])))]
    pub status: String,
    /// What is so.
    #[cfg_attr(test, schemars(length(max = 316)))]
    #[serde(rename = "type")]
    pub kind: String,
}
