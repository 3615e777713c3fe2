//! Which managed clusters a GitOpsCluster has. Whoever comes first keeps one, and gives it up only when it is certain that it no
//! longer selects it: what is missing, empty or contradicts itself is no reason to take anything away.

use super::{Standing, is_anothers, is_held};
use crate::agent::names;
use crate::cluster_secret::{ClusterSecret, Keeper, is_hub};
use crate::controller::index::{Index, Selection};
use crate::controller::promises::argocd_agent::clusters_of;
use crate::controller::seen::{GitOpsCluster, Place, Reach};
use std::collections::BTreeSet;

/// How a managed cluster is registered in Argo CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By a Secret without a credential.
    Blank,
    /// By the Secret of its argocd-agent.
    Agent,
}

impl Form {
    pub(super) const ALL: [Self; 2] = [Self::Blank, Self::Agent];

    /// How a GitOpsCluster asks for it. Where it asks for both, Secrets without a credential have been asked for in so many words.
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

    /// The name of the Secret of this cluster.
    pub(super) fn secret_name(self, cluster: &str) -> String {
        let (owner, before) = ("", None);
        match self {
            Self::Blank => Keeper::GitOps { owner, before }.name(cluster),
            Self::Agent => Keeper::Hub { owner, before }.name(cluster),
        }
    }
}

/// Whether any GitOpsCluster registers a managed cluster.
pub(in crate::controller::promises) fn is_wanted(index: &Index, cluster: &str, argocd: &str) -> bool {
    let mut all = index.gitops_clusters();
    all.any(|(place, it)| Form::of(it).is_some() && selects(index, place, it, cluster, argocd))
}

/// Whether a GitOpsCluster registers a managed cluster in this form.
pub(super) fn wants(form: Form, index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    let can_be = form == Form::Blank || names::check_agent(cluster, argocd).is_ok();
    Form::of(it) == Some(form) && can_be && selects(index, place, it, cluster, argocd)
}

/// Whether a GitOpsCluster that has registered a managed cluster in this form goes on to write its Secret. That of an agent has
/// a certificate that ends: it is written on doubt as well, as long as it is not certainly given up.
fn keeps_up(form: Form, index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    wants(form, index, place, it, cluster, argocd)
        || form == Form::Agent
            && Form::of(it) == Some(form)
            && is_held(place, it, argocd)
            && Standing::of(index, place, it, argocd) == Standing::Served
            && !leaves(index, place, it, cluster, argocd)
}

/// Whether a GitOpsCluster that has registered a managed cluster in this form certainly does so no longer: because it has nothing
/// to do with it any more, or because it registers it in the other form.
pub(super) fn releases(
    form: Form,
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    leaves(index, place, it, cluster, argocd) || wants(form.other(), index, place, it, cluster, argocd)
}

/// Whether a GitOpsCluster takes a managed cluster that nobody has.
fn selects(index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    !it.deleting
        && is_held(place, it, argocd)
        && !is_revoked(it, cluster)
        && Standing::of(index, place, it, argocd) == Standing::Served
        && index.is_decided(&it.placement(place), cluster)
}

/// Whether a GitOpsCluster certainly has nothing to do with a managed cluster any more.
fn leaves(index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    if it.deleting || is_revoked(it, cluster) {
        return true;
    }
    match Standing::of(index, place, it, argocd) {
        Standing::Elsewhere(_) => true,
        Standing::Unauthorised | Standing::WrongPlacement(_) => false,
        Standing::Served => {
            let placement = it.placement(place);
            let is_sure = matches!(index.selection(&placement), Selection::Sure(_));
            // A cluster that is not heard gets a taint of OCM's, because of which Placements drop it until it is.
            let is_heard = index.reach(cluster) == Reach::Heard;
            is_sure && is_heard && !index.is_decided(&placement, cluster)
        }
    }
}

fn is_revoked(it: &GitOpsCluster, cluster: &str) -> bool {
    it.spec
        .agent
        .as_ref()
        .is_some_and(|agent| agent.revoked.contains(cluster))
}

/// Returns true if a GitOpsCluster that has brought argocd-agent to a managed cluster certainly does so no longer. What is another
/// controller's to remove is never given up here: most of it is outside of Argo CD's namespace, where both controllers see it.
pub(in crate::controller::promises) fn gives_up(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    !is_anothers(place, it, argocd) && (!it.spec.may_have_agent() || leaves(index, place, it, cluster, argocd))
}

/// The managed clusters on which a GitOpsCluster has argocd-agent run: those that it selects, and those that it has by the
/// decisions that were written for it and does not certainly give up, without those that another one has. The hub itself is none
/// of them.
pub(in crate::controller::promises) fn agents_of<'i>(
    index: &'i Index,
    place: &Place,
    it: &GitOpsCluster,
    argocd: &str,
) -> BTreeSet<&'i str> {
    let selected = index.decided(&it.placement(place)).map(|cluster| &**cluster);
    let mut all: BTreeSet<_> = selected.collect();
    all.extend(clusters_of(index, place));
    all.retain(|cluster| has_agent(index, place, it, cluster, argocd));
    all
}

/// Whether it is this GitOpsCluster that has argocd-agent run on a managed cluster, as [`agents_of`] says.
pub(in crate::controller::promises) fn has_agent(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    let keeps = |place: &Place, it: &GitOpsCluster| {
        !gives_up(index, place, it, cluster, argocd) && index.is_listed(place, cluster)
    };
    let takes =
        |place: &Place, it: &GitOpsCluster| it.spec.agent.is_some() && selects(index, place, it, cluster, argocd);
    let is_out = match index.cluster(cluster) {
        Some(seen) => seen.deleting || is_hub(cluster, &seen.labels),
        None => index.has_gone(cluster),
    } || names::check_agent(cluster, argocd).is_err();
    if is_out || !(takes(place, it) || keeps(place, it)) {
        return false;
    }
    // Who has registered it comes first, then who has had it, then who comes first by its name.
    let registered = Form::ALL.iter().find_map(|form| {
        let owner = place_of(own(*form, index, cluster)?.owner()?)?;
        let it = index.gitops_cluster(&owner)?;
        (!releases(*form, index, &owner, it, cluster, argocd)).then_some((owner, it))
    });
    if let Some((owner, other)) = registered {
        if owner == *place {
            return true;
        }
        if takes(&owner, other) || keeps(&owner, other) || !keeps(place, it) {
            return false;
        }
    }
    let first = |is: &dyn Fn(&Place, &GitOpsCluster) -> bool| {
        let mut all = index.gitops_clusters();
        all.find(|(place, it)| is(place, it)).map(|(place, _)| place)
    };
    first(&keeps).or_else(|| first(&takes)) == Some(place)
}

/// The Secret that a GitOpsCluster has for a managed cluster, whichever it is.
pub(super) fn own<'i>(form: Form, index: &'i Index, cluster: &str) -> Option<&'i ClusterSecret> {
    let name = form.secret_name(cluster);
    let (_, secret) = index.secrets_of(cluster).find(|(other, _)| *other == name)?;
    secret.owner().map(|_| secret)
}

/// Where a GitOpsCluster is that a Secret says to be of.
pub(super) fn place_of(owner: &str) -> Option<Place> {
    let (namespace, name) = owner.split_once('/')?;
    Some(Place::new(namespace, name))
}

/// Whose the Secret of a managed cluster is, or shall be.
pub(super) enum Whose<'i> {
    /// This GitOpsCluster's, after this one.
    Of(Place, &'i GitOpsCluster, Option<&'i str>),
    /// Nobody's, who had one.
    Released,
    /// It stays as it is.
    Kept,
}

/// Whose the Secret of this form is of a managed cluster; `owner` is who has it.
pub(super) fn whose<'i>(
    form: Form,
    index: &'i Index,
    cluster: &str,
    owner: Option<&'i str>,
    argocd: &str,
) -> Whose<'i> {
    let keeper = owner.and_then(place_of);
    if let Some((place, it)) = keeper
        .as_ref()
        .and_then(|place| Some((place, index.gitops_cluster(place)?)))
        && keeps_up(form, index, place, it, cluster, argocd)
    {
        return Whose::Of(place.clone(), it, None);
    }
    let is_released = owner.is_some_and(|owner| is_released(form, index, cluster, owner, argocd));
    let is_kept = keeper.is_some_and(|place| index.gitops_cluster(&place).is_some()) && !is_released;
    if is_kept {
        return Whose::Kept;
    }
    match taker(form, index, cluster, argocd) {
        Some((place, it)) => Whose::Of(place.clone(), it, owner),
        None if is_released => Whose::Released,
        None => Whose::Kept,
    }
}

/// Whether who has a Secret of this form certainly does so no longer.
pub(super) fn is_released(form: Form, index: &Index, cluster: &str, owner: &str, argocd: &str) -> bool {
    let Some(place) = place_of(owner) else { return false };
    match index.gitops_cluster(&place) {
        Some(it) => releases(form, index, &place, it, cluster, argocd),
        None => index.has_gitops_cluster_gone(&place),
    }
}

/// The first GitOpsCluster that registers a managed cluster in this form.
pub(super) fn taker<'i>(
    form: Form,
    index: &'i Index,
    cluster: &str,
    argocd: &str,
) -> Option<(&'i Place, &'i GitOpsCluster)> {
    let mut all = index.gitops_clusters();
    all.find(|(place, it)| wants(form, index, place, it, cluster, argocd))
}
