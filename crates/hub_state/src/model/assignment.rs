//! The assignment of a managed cluster to GitOpsClusters.

use super::SecretKind;
use primitives::object_ref::ObjectRef;

/// The GitOpsClusters that a managed cluster belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The first GitOpsCluster that registers the cluster without a credential, and the first that registers its agent.
    pub registrars: [Option<ObjectRef>; 2],
    /// The GitOpsCluster that runs argocd-agent on the cluster. It may currently not be served: its agents then stay unchanged.
    pub agent_owner: Option<ObjectRef>,
    /// True if the controller serves [`Self::agent_owner`], which requests agents.
    pub is_served: bool,
    /// The GitOpsCluster that revokes the cluster's agent.
    pub revoked_by: Option<ObjectRef>,
    /// The reason why the principal must refuse the certificates that the agent has.
    pub blocked: Option<Blocked>,
}

impl Assignment {
    /// Returns the first GitOpsCluster that registers the cluster with a Secret of this kind.
    pub fn registrar(&self, secret_kind: SecretKind) -> Option<&ObjectRef> {
        self.registrars[secret_kind as usize].as_ref()
    }

    /// Returns the GitOpsCluster that runs argocd-agent on the cluster, if the controller serves it and it requests agents.
    pub fn served_owner(&self) -> Option<&ObjectRef> {
        self.agent_owner.as_ref().filter(|_| self.is_served)
    }
}

/// The reason why the certificates of a cluster's agent are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocked {
    Revoked,
    Uninstalled,
}
