//! The Secret of each managed cluster that a GitOpsCluster selects. Whoever comes first keeps it, and gives it up only when it is
//! certain that it no longer selects the cluster: what is missing, empty or contradicts itself is no reason to take anything away.

use super::{ABOUT, NAME, NEEDS, Standing, has_finalizer};
use crate::cluster_secret::{self, Cluster, ClusterSecret, Decision, Keeper};
use crate::controller::action::{Action, Involved, Write};
use crate::controller::index::{Index, Selection, Sort};
use crate::controller::promises::{Moment, Promise, never};
use crate::controller::resources::{CLUSTERS, GITOPS_CLUSTERS, SECRETS};
use crate::controller::seen::{GitOpsCluster, Place};
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::Cluster,
    needs: NEEDS,
    pause: Duration::from_secs(1),
    desired,
    again: never,
};

/// Whether any GitOpsCluster registers a managed cluster.
pub(in crate::controller::promises) fn is_wanted(index: &Index, cluster: &str, argocd: &str) -> bool {
    index
        .gitops_clusters()
        .any(|(place, it)| wants(index, place, it, cluster, argocd))
}

/// Whether a GitOpsCluster registers a managed cluster.
fn wants(index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str, argocd: &str) -> bool {
    !it.deleting
        && it.spec.registers
        && has_finalizer(it)
        && Standing::of(index, place, it, argocd) == Standing::Served
        && index.is_decided(&it.placement(place), cluster)
}

/// Whether a GitOpsCluster that has registered a managed cluster certainly does so no longer.
pub(in crate::controller::promises) fn gives_up(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    if it.deleting {
        return true;
    }
    match Standing::of(index, place, it, argocd) {
        Standing::Elsewhere(_) => true,
        Standing::Unauthorised | Standing::WrongPlacement(_) => false,
        Standing::Served => {
            let placement = it.placement(place);
            let is_sure = matches!(index.selection(&placement), Selection::Sure(_));
            is_sure && !index.is_decided(&placement, cluster)
        }
    }
}

/// Whose the Secret of a managed cluster is, or shall be.
enum Whose<'i> {
    /// This GitOpsCluster's, after this one.
    Of(Place, &'i GitOpsCluster, Option<&'i str>),
    /// Nobody's, who had one.
    Released,
    /// It stays as it is.
    Kept,
}

/// Where a GitOpsCluster is that a Secret says to be of.
fn place_of(owner: &str) -> Option<Place> {
    let (namespace, name) = owner.split_once('/')?;
    Some(Place::new(namespace, name))
}

fn whose<'i>(index: &'i Index, cluster: &str, owner: Option<&'i str>, argocd: &str) -> Whose<'i> {
    let keeper = owner.and_then(place_of);
    let is_released = match keeper.as_ref().map(|place| (place, index.gitops_cluster(place))) {
        Some((place, Some(it))) if wants(index, place, it, cluster, argocd) => {
            return Whose::Of(place.clone(), it, None);
        }
        Some((place, Some(it))) if !gives_up(index, place, it, cluster, argocd) => return Whose::Kept,
        Some((_, Some(_))) => true,
        Some((place, None)) => index.has_gitops_cluster_gone(place),
        None => false,
    };
    let mut all = index.gitops_clusters();
    match all.find(|(place, it)| wants(index, place, it, cluster, argocd)) {
        Some((place, it)) => Whose::Of(place.clone(), it, owner),
        None if is_released => Whose::Released,
        None => Whose::Kept,
    }
}

/// What is to be done for a managed cluster that this GitOpsCluster selects.
pub(super) fn decide(index: &Index, cluster: &str, keeper: Keeper<'_>, argocd: &str) -> Option<Decision> {
    let seen = index.cluster(cluster).filter(|seen| !seen.deleting)?;
    let cluster = Cluster {
        name: cluster,
        labels: &seen.labels,
        argocd,
        tracking_label: index.tracking().label(),
        keeper,
    };
    Some(cluster_secret::decide(&cluster, index.secrets_of(cluster.name)))
}

/// The Secret that a GitOpsCluster has for a managed cluster, whichever it is.
pub(super) fn own<'i>(index: &'i Index, cluster: &str) -> Option<&'i ClusterSecret> {
    let keeper = Keeper::GitOps {
        owner: "",
        before: None,
    };
    let name = keeper.name(cluster);
    let (_, secret) = index.secrets_of(cluster).find(|(other, _)| *other == name)?;
    secret.owner().map(|_| secret)
}

fn desired(index: &Index, cluster: &Place, moment: &Moment<'_>) -> Option<Action> {
    let argocd = &moment.settings.argocd;
    let secret = own(index, &cluster.name);
    let owner = secret.and_then(ClusterSecret::owner);
    let keeper = |owner, before| Keeper::GitOps { owner, before };
    let secret_place = Place::new(argocd, &keeper("", None).name(&cluster.name));
    let delete = |unless_there| {
        let secret = secret.filter(|secret| !secret.deleting)?;
        let write = Write::Delete {
            resource: &SECRETS,
            place: secret_place.clone(),
            uid: secret.uid.clone(),
            version: secret.version.clone(),
            unless_there,
        };
        Some((place_of(owner?)?, Box::default(), write))
    };
    let seen = index.cluster(&cluster.name);
    let is_there = seen.is_some_and(|seen| !seen.deleting);
    let (place, uid, write) = if !is_there && (seen.is_some() || index.has_gone(&cluster.name)) {
        delete(seen.is_none().then(|| (&CLUSTERS, cluster.clone())))?
    } else {
        match whose(index, &cluster.name, owner, argocd) {
            Whose::Kept => return None,
            Whose::Released => delete(None)?,
            Whose::Of(place, it, before) => {
                let owner = place.to_string();
                let write = match decide(index, &cluster.name, keeper(&owner, before), argocd)?.write? {
                    cluster_secret::Write::Create(object) => Write::Create {
                        resource: &SECRETS,
                        place: secret_place,
                        object,
                    },
                    cluster_secret::Write::Patch(body) => Write::Patch {
                        resource: &SECRETS,
                        place: secret_place,
                        body,
                    },
                };
                (place, it.uid.clone(), write)
            }
        }
    };
    Some(Action {
        of: Involved {
            resource: &GITOPS_CLUSTERS,
            place,
            uid,
        },
        writes: vec![write],
        refresh: false,
        events: Vec::new(),
    })
}

/// stub
pub(in crate::controller::promises) fn has_agent(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    cluster: &str,
    argocd: &str,
) -> bool {
    !gives_up(index, place, it, cluster, argocd) && index.is_decided(&it.placement(place), cluster)
}
/// stub
pub(in crate::controller::promises) fn agents_of<'i>(
    index: &'i Index,
    place: &Place,
    it: &GitOpsCluster,
    argocd: &str,
) -> std::collections::BTreeSet<&'i str> {
    index
        .decided(&it.placement(place))
        .map(|it| &**it)
        .filter(|c| has_agent(index, place, it, c, argocd))
        .collect()
}
