//! The labels of cluster Secrets.

/// The label that names the agent of a Secret (`LabelKeyClusterAgentMapping` in argocd-agent).
pub const AGENT_NAME: &str = "argocd-agent.argoproj-labs.io/agent-name";

/// The label on which users of argocd-pull-integration and Red Hat ACM select a cluster by its name.
pub const CLUSTER_NAME: &str = "apps.open-cluster-management.io/cluster-name";

/// The label with the host of the server of a Secret without credentials.
pub(super) const CLUSTER_SERVER: &str = "apps.open-cluster-management.io/cluster-server";

/// The label with the origin of a Secret's credentials.
pub(super) const DATA_SOURCE: &str = "apps.open-cluster-management.io/data-source";

/// The label with the Placement of a cluster, on which users of argocd-pull-integration select clusters.
pub const PLACEMENT_NAME: &str = "placement-name";

/// The labels that say which cluster a Secret is for and who maintains it. The controller sets them or nobody does: a cluster's
/// agent can write the labels of its ManagedCluster.
pub const IDENTITY_LABELS: [&str; 4] = [ACM, CLUSTER_NAME, CLUSTER_SERVER, DATA_SOURCE];

/// The label of the cluster Secrets that Red Hat ACM writes and deletes.
pub const ACM: &str = "apps.open-cluster-management.io/acm-cluster";
