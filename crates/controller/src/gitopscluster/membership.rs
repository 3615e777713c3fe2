//! The assignment of managed clusters to GitOpsClusters. The first GitOpsCluster that selects a cluster keeps it, and releases it
//! only when it certainly no longer selects it: missing, empty or contradictory input never removes anything.

use super::ownership::{Ownership, is_anothers, is_held};
use crate::cache::{Cache, Selection};
use crate::cluster_secrets::{ClusterSecret, Keeper, is_hub};
use crate::model::{AgentResource, GitOpsCluster, Object, Reach};
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// The way a managed cluster is registered in Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A Secret without a credential.
    Blank,
    /// The Secret of the cluster's argocd-agent.
    Agent,
}

impl Form {
    pub(super) const ALL: [Self; 2] = [Self::Blank, Self::Agent];

    /// Returns the form that a GitOpsCluster requests. If it requests both, Secrets without a credential win, because they were
    /// requested explicitly.
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
            Self::Blank => Keeper::GitOps { owner, before }.name(cluster),
            Self::Agent => Keeper::Hub { owner, before }.name(cluster),
        }
    }
}

/// Returns true if any GitOpsCluster registers a managed cluster.
pub(crate) fn is_wanted(cache: &Cache, cluster: &str, argocd: &str) -> bool {
    let mut all = cache.gitops_clusters();
    all.any(|(place, it)| Form::of(it).is_some() && selects(cache, place, it, cluster, argocd))
}

/// Returns true if a GitOpsCluster registers a managed cluster in this form.
pub(super) fn wants(
    form: Form,
    cache: &Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    let can_be = form == Form::Blank || names::check_agent(cluster, argocd).is_ok();
    Form::of(it) == Some(form) && can_be && selects(cache, place, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster that registered a managed cluster in this form still maintains its Secret. The Secret of an
/// agent has a certificate that expires, so the controller also maintains it while the selection is in doubt, until the cluster
/// is certainly released.
fn keeps_up(form: Form, cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    wants(form, cache, place, it, cluster, argocd)
        || form == Form::Agent
            && Form::of(it) == Some(form)
            && is_held(place, it, argocd)
            && Ownership::of(cache, place, it, argocd) == Ownership::Served
            && !leaves(cache, place, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster certainly no longer registers a managed cluster in this form: it released the cluster, or
/// registers it in the other form.
pub(super) fn releases(
    form: Form,
    cache: &Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    leaves(cache, place, it, cluster, argocd) || wants(form.other(), cache, place, it, cluster, argocd)
}

/// Returns true if a GitOpsCluster selects a managed cluster that has no owner.
fn selects(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    !it.deleting
        && is_held(place, it, argocd)
        && !is_revoked(it, cluster)
        && Ownership::of(cache, place, it, argocd) == Ownership::Served
        && cache.is_decided(&it.placement(place), cluster)
}

/// Returns true if a GitOpsCluster has certainly released a managed cluster.
fn leaves(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    if it.deleting || is_revoked(it, cluster) {
        return true;
    }
    match Ownership::of(cache, place, it, argocd) {
        Ownership::Elsewhere(_) => true,
        Ownership::Unauthorised | Ownership::WrongPlacement(_) => false,
        Ownership::Served => {
            let placement = it.placement(place);
            let is_sure = matches!(cache.selection(&placement), Selection::Sure(_));
            // OCM taints an unreachable cluster, and Placements do not select it until it is reachable again.
            let is_heard = cache.reach(cluster) == Reach::Heard;
            is_sure && is_heard && !cache.is_decided(&placement, cluster)
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
pub(crate) fn gives_up(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    !is_anothers(place, it, argocd) && (!it.spec.may_have_agent() || leaves(cache, place, it, cluster, argocd))
}

/// Returns the managed clusters on which a GitOpsCluster runs argocd-agent: the clusters that it selects, and those listed in its
/// PlacementDecisions that it has not certainly released, without the clusters of other GitOpsClusters. Never includes the hub
/// itself.
pub(crate) fn agents_of<'i>(
    cache: &'i Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    argocd: &str,
) -> BTreeSet<&'i str> {
    let selected = cache.decided(&it.placement(place)).map(|cluster| &**cluster);
    let mut all: BTreeSet<_> = selected.collect();
    all.extend(clusters_of(cache, place));
    all.retain(|cluster| has_agent(cache, place, it, cluster, argocd));
    all
}

/// Returns the PlacementDecisions, written for a GitOpsCluster, that name all clusters with the add-on.
pub(crate) fn decisions_of<'i>(
    cache: &'i Cache,
    place: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = cache.objects(AgentResource::Decisions);
    let all = all.filter(move |(_, it)| it.owner().as_ref() == Some(place));
    all.filter(|(at, _)| names::next_decision_number(&place.name, &at.name).is_none())
}

/// Returns the clusters in these PlacementDecisions.
pub(crate) fn clusters_of<'i>(cache: &'i Cache, place: &ObjectRef) -> BTreeSet<&'i str> {
    decisions_of(cache, place).flat_map(|(_, it)| it.decided()).collect()
}

/// Returns true if this GitOpsCluster runs argocd-agent on a managed cluster, by the rules of [`agents_of`].
pub(crate) fn has_agent(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    let keeps = |place: &ObjectRef, it: &GitOpsCluster| {
        !gives_up(cache, place, it, cluster, argocd) && cache.is_listed(place, cluster)
    };
    let takes =
        |place: &ObjectRef, it: &GitOpsCluster| it.spec.agent.is_some() && selects(cache, place, it, cluster, argocd);
    let is_out = match cache.cluster(cluster) {
        Some(seen) => seen.deleting || is_hub(cluster, &seen.labels),
        None => cache.has_gone(cluster),
    } || names::check_agent(cluster, argocd).is_err();
    if is_out || !(takes(place, it) || keeps(place, it)) {
        return false;
    }
    // Precedence: the GitOpsCluster that registered the cluster, then the one that already has its agent, then the first by name.
    let registered = Form::ALL.iter().find_map(|form| {
        let owner = place_of(own(*form, cache, cluster)?.owner()?)?;
        let it = cache.gitops_cluster(&owner)?;
        (!releases(*form, cache, &owner, it, cluster, argocd)).then_some((owner, it))
    });
    if let Some((owner, other)) = registered {
        if owner == *place {
            return true;
        }
        if takes(&owner, other) || keeps(&owner, other) || !keeps(place, it) {
            return false;
        }
    }
    let first = |is: &dyn Fn(&ObjectRef, &GitOpsCluster) -> bool| {
        let mut all = cache.gitops_clusters();
        all.find(|(place, it)| is(place, it)).map(|(place, _)| place)
    };
    first(&keeps).or_else(|| first(&takes)) == Some(place)
}

/// Returns the Secret of a managed cluster in this form, if any GitOpsCluster owns it.
pub(super) fn own<'i>(form: Form, cache: &'i Cache, cluster: &str) -> Option<&'i ClusterSecret> {
    let name = form.secret_name(cluster);
    let (_, secret) = cache.secrets_of(cluster).find(|(other, _)| *other == name)?;
    secret.owner().map(|_| secret)
}

/// Parses the owner annotation of a Secret into a reference to its GitOpsCluster.
pub(super) fn place_of(owner: &str) -> Option<ObjectRef> {
    let (namespace, name) = owner.split_once('/')?;
    Some(ObjectRef::new(namespace, name))
}

/// The owner that the Secret of a managed cluster has or gets.
pub(super) enum Whose<'i> {
    /// This GitOpsCluster owns it, after the given previous owner.
    Of(ObjectRef, &'i GitOpsCluster, Option<&'i str>),
    /// The previous owner has released it, and there is no new one.
    Released,
    /// The Secret stays unchanged.
    Unchanged,
}

/// Returns the owner that the Secret of a managed cluster in this form gets; `owner` is the current one.
pub(super) fn whose<'i>(
    form: Form,
    cache: &'i Cache,
    cluster: &str,
    owner: Option<&'i str>,
    argocd: &str,
) -> Whose<'i> {
    let keeper = owner.and_then(place_of);
    if let Some((place, it)) = keeper
        .as_ref()
        .and_then(|place| Some((place, cache.gitops_cluster(place)?)))
        && keeps_up(form, cache, place, it, cluster, argocd)
    {
        return Whose::Of(place.clone(), it, None);
    }
    let is_released = owner.is_some_and(|owner| is_released(form, cache, cluster, owner, argocd));
    let is_kept = keeper.is_some_and(|place| cache.gitops_cluster(&place).is_some()) && !is_released;
    if is_kept {
        return Whose::Unchanged;
    }
    match taker(form, cache, cluster, argocd) {
        Some((place, it)) => Whose::Of(place.clone(), it, owner),
        None if is_released => Whose::Released,
        None => Whose::Unchanged,
    }
}

/// Returns true if the owner of a Secret of this form has certainly released the cluster.
pub(super) fn is_released(form: Form, cache: &Cache, cluster: &str, owner: &str, argocd: &str) -> bool {
    let Some(place) = place_of(owner) else { return false };
    match cache.gitops_cluster(&place) {
        Some(it) => releases(form, cache, &place, it, cluster, argocd),
        None => cache.has_gitops_cluster_gone(&place),
    }
}

/// Returns the first GitOpsCluster that registers a managed cluster in this form.
pub(super) fn taker<'i>(
    form: Form,
    cache: &'i Cache,
    cluster: &str,
    argocd: &str,
) -> Option<(&'i ObjectRef, &'i GitOpsCluster)> {
    let mut all = cache.gitops_clusters();
    all.find(|(place, it)| wants(form, cache, place, it, cluster, argocd))
}
