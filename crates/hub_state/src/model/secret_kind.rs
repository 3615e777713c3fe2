//! The kinds of cluster Secrets that a GitOpsCluster can request.

/// The way a GitOpsCluster registers managed clusters in Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    Blank,
    /// The Secret of the cluster's argocd-agent.
    Agent,
}

impl SecretKind {
    /// Both kinds, in the order of the registrars of an assignment.
    pub const ALL: [Self; 2] = [Self::Blank, Self::Agent];

    pub fn other(self) -> Self {
        match self {
            Self::Blank => Self::Agent,
            Self::Agent => Self::Blank,
        }
    }
}
