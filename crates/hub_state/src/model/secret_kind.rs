//! The kinds of cluster Secrets that a GitOpsCluster can request.

use super::GitOpsCluster;

/// The way a GitOpsCluster registers managed clusters in Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    Blank,
    /// The Secret of the cluster's argocd-agent.
    Agent,
}

impl SecretKind {
    /// Both kinds, in the order of their precedence.
    pub const ALL: [Self; 2] = [Self::Blank, Self::Agent];

    /// Returns the kind of Secret that a GitOpsCluster requests. If it requests both, Secrets without a credential win, because
    /// they were requested explicitly.
    pub fn requested_by(gitops: &GitOpsCluster) -> Option<Self> {
        let agent = gitops.spec.agent.as_ref().map(|_| Self::Agent);
        if gitops.spec.creates_blank_secrets {
            Some(Self::Blank)
        } else {
            agent
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Blank => Self::Agent,
            Self::Agent => Self::Blank,
        }
    }
}
