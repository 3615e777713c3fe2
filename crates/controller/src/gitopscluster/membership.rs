//! The assignment of managed clusters to GitOpsClusters. The first GitOpsCluster that selects a cluster keeps it, and releases it
//! only when it certainly no longer selects it: missing, empty or contradictory input never removes anything.

use super::ownership::{Ownership, is_anothers, is_held};
use crate::cache::{Cache, Selection};
use crate::cluster_secrets::{ClusterSecret, SecretManager, is_hub};
use crate::model::{AgentResource, Availability, GitOpsCluster, Object};
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// The way a managed cluster is registered in Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretKind {
    /// A Secret without a credential.
    Blank,
    /// The Secret of the cluster's argocd-agent.
    Agent,
}

impl SecretKind {
    pub(super) const ALL: [Self; 2] = [Self::Blank, Self::Agent];

    /// Returns the kind of Secret that a GitOpsCluster requests. If it requests both, Secrets without a credential win, because
    /// they were requested explicitly.
    pub(super) fn of(it: &GitOpsCluster) -> Option<Self> {
        let agent = it.spec.agent.as_ref().map(|_| Self::Agent);
        if it.spec.registers { Some(Self::Blank) } else { agent }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Blank => Self::Agent,
            Self::Agent => Self::Blank,
        }
    }

    /// Returns the name of the Secret of this cluster.
    pub(super) fn secret_name(self, cluster: &str) -> String {
        let (owner, before) = ("", None);
        match self {
            Self::Blank => SecretManager::GitOps { owner, before }.name(cluster),
            Self::Agent => SecretManager::Hub { owner, before }.name(cluster),
        }
    }
}

/// Returns true if any GitOpsCluster registers a managed cluster.
pub(crate) fn is_wanted(cache: &Cache, cluster: &str, argocd: &str) -> bool {
    let mut all = cache.gitops_clusters();
    all.any(|(object_ref, it)| SecretKind::of(it).is_some() && selects(cache, object_ref, it, cluster, argocd))
}

/// Returns true if a GitOpsCluster registers a managed cluster with a Secret of this kind.
pub(super) fn wants(
    secret_kind: SecretKind,
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    let can_be = secret_kind == SecretKind::Blank || names::check_agent(cluster, argocd).is_ok();
    SecretKind::of(it) == Some(secret_kind) && can_be && selects(cache, object_ref, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster that registered a managed cluster with a Secret of this kind still maintains its Secret. The
/// Secret of an agent has a certificate that expires, so the controller also maintains it while the selection is in doubt, until
/// the cluster is certainly released.
fn maintains(
    secret_kind: SecretKind,
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    wants(secret_kind, cache, object_ref, it, cluster, argocd)
        || secret_kind == SecretKind::Agent
            && SecretKind::of(it) == Some(secret_kind)
            && is_held(object_ref, it, argocd)
            && Ownership::of(cache, object_ref, it, argocd) == Ownership::Served
            && !certainly_released(cache, object_ref, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster certainly no longer registers a managed cluster with a Secret of this kind: it released the
/// cluster, or registers it with the other kind.
pub(super) fn certainly_released_as(
    secret_kind: SecretKind,
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    certainly_released(cache, object_ref, it, cluster, argocd)
        || wants(secret_kind.other(), cache, object_ref, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster selects a managed cluster.
fn selects(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    !it.deleting
        && is_held(object_ref, it, argocd)
        && !is_revoked(it, cluster)
        && Ownership::of(cache, object_ref, it, argocd) == Ownership::Served
        && cache.is_selected_by(&it.placement(object_ref), cluster)
}

/// Returns true if a GitOpsCluster has certainly released a managed cluster.
fn certainly_released(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    if it.deleting || is_revoked(it, cluster) {
        return true;
    }
    match Ownership::of(cache, object_ref, it, argocd) {
        Ownership::Elsewhere(_) => true,
        Ownership::Unauthorised | Ownership::WrongPlacement(_) => false,
        Ownership::Served => {
            let placement = it.placement(object_ref);
            let is_sure = matches!(cache.selection(&placement), Selection::Consistent(_));
            // OCM taints an unreachable cluster, and Placements do not select it until it is reachable again.
            let is_available = cache.availability(cluster) == Availability::Available;
            is_sure && is_available && !cache.is_selected_by(&placement, cluster)
        }
    }
}

fn is_revoked(it: &GitOpsCluster, cluster: &str) -> bool {
    it.spec
        .agent
        .as_ref()
        .is_some_and(|agent| agent.revoked.contains(cluster))
}

/// Returns true if a GitOpsCluster that installed argocd-agent on a managed cluster certainly no longer wants it there. Returns
/// false for objects that another controller has to remove: most of them are outside Argo CD's namespace, where both controllers
/// see them.
pub(crate) fn has_given_up(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    !is_anothers(object_ref, it, argocd)
        && (!it.spec.may_have_agent() || certainly_released(cache, object_ref, it, cluster, argocd))
}

/// Returns the managed clusters on which a GitOpsCluster runs argocd-agent: the clusters that it selects, and those listed in its
/// PlacementDecisions that it has not certainly released, without the clusters of other GitOpsClusters. Never includes the hub
/// itself.
pub(crate) fn agents_of<'i>(
    cache: &'i Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    argocd: &str,
) -> BTreeSet<&'i str> {
    let selected = cache.selected_by(&it.placement(object_ref)).map(|cluster| &**cluster);
    let mut all: BTreeSet<_> = selected.collect();
    all.extend(clusters_of(cache, object_ref));
    all.retain(|cluster| has_agent(cache, object_ref, it, cluster, argocd));
    all
}

/// Returns the PlacementDecisions, written for a GitOpsCluster, that name all clusters with the add-on.
pub(crate) fn decisions_of<'i>(
    cache: &'i Cache,
    object_ref: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = cache.objects(AgentResource::Decisions);
    let all = all.filter(move |(_, it)| it.owner().as_ref() == Some(object_ref));
    all.filter(|(at, _)| names::next_decision_number(&object_ref.name, &at.name).is_none())
}

/// Returns the clusters in these PlacementDecisions.
pub(crate) fn clusters_of<'i>(cache: &'i Cache, object_ref: &ObjectRef) -> BTreeSet<&'i str> {
    decisions_of(cache, object_ref)
        .flat_map(|(_, it)| it.decided())
        .collect()
}

/// Returns true if this GitOpsCluster runs argocd-agent on a managed cluster, by the rules of [`agents_of`].
pub(crate) fn has_agent(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    let keeps = |object_ref: &ObjectRef, it: &GitOpsCluster| {
        !has_given_up(cache, object_ref, it, cluster, argocd) && cache.has_written_decision(object_ref, cluster)
    };
    let takes = |object_ref: &ObjectRef, it: &GitOpsCluster| {
        it.spec.agent.is_some() && selects(cache, object_ref, it, cluster, argocd)
    };
    let is_out = match cache.cluster(cluster) {
        Some(seen) => seen.deleting || is_hub(cluster, &seen.labels),
        None => cache.is_deleted(cluster),
    } || names::check_agent(cluster, argocd).is_err();
    if is_out || !(takes(object_ref, it) || keeps(object_ref, it)) {
        return false;
    }
    // Precedence: the GitOpsCluster that registered the cluster, then the one that already has its agent, then the first by name.
    let registered = SecretKind::ALL.iter().find_map(|secret_kind| {
        let owner = object_ref_of(owned_secret(*secret_kind, cache, cluster)?.owner()?)?;
        let it = cache.gitops_cluster(&owner)?;
        (!certainly_released_as(*secret_kind, cache, &owner, it, cluster, argocd)).then_some((owner, it))
    });
    if let Some((owner, other)) = registered {
        if owner == *object_ref {
            return true;
        }
        if takes(&owner, other) || keeps(&owner, other) || !keeps(object_ref, it) {
            return false;
        }
    }
    let first = |is: &dyn Fn(&ObjectRef, &GitOpsCluster) -> bool| {
        let mut all = cache.gitops_clusters();
        all.find(|(object_ref, it)| is(object_ref, it))
            .map(|(object_ref, _)| object_ref)
    };
    first(&keeps).or_else(|| first(&takes)) == Some(object_ref)
}

/// Returns the Secret of this kind of a managed cluster, if any GitOpsCluster owns it.
pub(super) fn owned_secret<'i>(secret_kind: SecretKind, cache: &'i Cache, cluster: &str) -> Option<&'i ClusterSecret> {
    let name = secret_kind.secret_name(cluster);
    let (_, secret) = cache.secrets_of(cluster).find(|(other, _)| *other == name)?;
    secret.owner().map(|_| secret)
}

/// Parses the owner annotation of a Secret into a reference to its GitOpsCluster.
pub(super) fn object_ref_of(owner: &str) -> Option<ObjectRef> {
    let (namespace, name) = owner.split_once('/')?;
    Some(ObjectRef::new(namespace, name))
}

/// The owner that the Secret of a managed cluster has or gets.
pub(super) enum SecretOwner<'i> {
    /// This GitOpsCluster owns it, after the given previous owner.
    GitOpsCluster(ObjectRef, &'i GitOpsCluster, Option<&'i str>),
    /// The previous owner has released it, and there is no new one.
    Released,
    /// The Secret stays unchanged.
    Unchanged,
}

/// Returns the owner that the Secret of this kind of a managed cluster gets; `owner` is the current one.
pub(super) fn secret_owner<'i>(
    secret_kind: SecretKind,
    cache: &'i Cache,
    cluster: &str,
    owner: Option<&'i str>,
    argocd: &str,
) -> SecretOwner<'i> {
    let manager = owner.and_then(object_ref_of);
    if let Some((object_ref, it)) = manager
        .as_ref()
        .and_then(|object_ref| Some((object_ref, cache.gitops_cluster(object_ref)?)))
        && maintains(secret_kind, cache, object_ref, it, cluster, argocd)
    {
        return SecretOwner::GitOpsCluster(object_ref.clone(), it, None);
    }
    let is_released = owner.is_some_and(|owner| is_released(secret_kind, cache, cluster, owner, argocd));
    let is_kept = manager.is_some_and(|object_ref| cache.gitops_cluster(&object_ref).is_some()) && !is_released;
    if is_kept {
        return SecretOwner::Unchanged;
    }
    match claimant(secret_kind, cache, cluster, argocd) {
        Some((object_ref, it)) => SecretOwner::GitOpsCluster(object_ref.clone(), it, owner),
        None if is_released => SecretOwner::Released,
        None => SecretOwner::Unchanged,
    }
}

/// Returns true if the owner of a Secret of this kind has certainly released the cluster.
pub(super) fn is_released(secret_kind: SecretKind, cache: &Cache, cluster: &str, owner: &str, argocd: &str) -> bool {
    let Some(object_ref) = object_ref_of(owner) else {
        return false;
    };
    match cache.gitops_cluster(&object_ref) {
        Some(it) => certainly_released_as(secret_kind, cache, &object_ref, it, cluster, argocd),
        None => cache.is_gitops_cluster_deleted(&object_ref),
    }
}

/// Returns the first GitOpsCluster that registers a managed cluster with a Secret of this kind.
pub(super) fn claimant<'i>(
    secret_kind: SecretKind,
    cache: &'i Cache,
    cluster: &str,
    argocd: &str,
) -> Option<(&'i ObjectRef, &'i GitOpsCluster)> {
    let mut all = cache.gitops_clusters();
    all.find(|(object_ref, it)| wants(secret_kind, cache, object_ref, it, cluster, argocd))
}
