//! The objects to reconcile after a change that concerns GitOpsClusters. The requests for managed clusters are for their cluster
//! Secrets.

use super::membership::place_of;
use crate::cache::{Before, Cache, Changed, ReconcileRequest};
use crate::cluster_secrets::routes::{both, clusters_of};
use crate::model::{Decision, GitOpsCluster, Spec};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// Maps a change of a GitOpsCluster.
pub(crate) fn gitops_cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    fn wishes(it: &GitOpsCluster) -> (&Spec, bool, &[String]) {
        (&it.spec, it.deleting, &it.finalizers)
    }
    let place = changed.place;
    let before = match changed.before {
        Some(Before::GitOpsCluster(it)) => Some(it),
        _ => None,
    };
    let after = cache.gitops_cluster(place);
    let mut affected = vec![ReconcileRequest::gitops(place.clone())];
    if before.map(wishes) != after.map(wishes) {
        let both = before.into_iter().chain(after);
        let selected: BTreeSet<_> = both.flat_map(|it| cache.decided(&it.placement(place))).collect();
        affected.extend(selected.into_iter().map(ReconcileRequest::cluster));
        affected.extend(owned(cache, place));
    }
    affected.push(ReconcileRequest::argocd(cache.argocd()));
    affected
}

/// Maps a change of a Placement.
pub(crate) fn placement(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    of_placement(cache, changed.place)
}

/// Maps a change of a PlacementDecision.
pub(crate) fn decision(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let place = changed.place;
    let before = match changed.before {
        Some(Before::Decision(it)) => Some(it),
        _ => None,
    };
    let after = cache.decision(place);
    let none = BTreeSet::new();
    let clusters = |it: Option<&Decision>| it.map_or(&none, |it| &it.clusters).clone();
    let moved = &clusters(before) ^ &clusters(after);
    let placements: BTreeSet<_> = before.into_iter().chain(after).map(|it| it.placement(place)).collect();
    let mut affected: Vec<_> = placements.iter().flat_map(|it| of_placement(cache, it)).collect();
    if !affected.is_empty() {
        affected.extend(moved.iter().map(ReconcileRequest::cluster));
    }
    affected
}

/// Maps a change of Argo CD's namespace, which can allow GitOpsClusters of other namespaces.
pub(crate) fn namespace(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    let all = cache.gitops_clusters().flat_map(|(place, it)| {
        let clusters = cache.decided(&it.placement(place)).map(ReconcileRequest::cluster);
        clusters.chain([ReconcileRequest::gitops(place.clone())])
    });
    all.collect()
}

/// Maps a change of a cluster Secret.
pub(crate) fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let clusters = clusters_of(cache, changed);
    if clusters.is_empty() {
        return Vec::new();
    }
    let owners = both(cache, changed).filter_map(|secret| place_of(secret.owner()?));
    let mut gitops: BTreeSet<_> = owners.filter(|place| cache.gitops_cluster(place).is_some()).collect();
    gitops.extend(cache.selecting(&clusters).into_iter().cloned());
    let mut affected: Vec<_> = clusters.iter().map(ReconcileRequest::cluster).collect();
    affected.extend(ReconcileRequest::gitops_all(&gitops));
    affected
}

/// Returns the GitOpsClusters of a Placement, and the clusters whose Secrets they may have to delete.
fn of_placement(cache: &Cache, placement: &ObjectRef) -> Vec<ReconcileRequest> {
    let all = cache.gitops_clusters();
    let of_it = all.filter(|(place, it)| it.placement(place) == *placement);
    let affected = of_it.flat_map(|(place, _)| {
        let mut affected = vec![ReconcileRequest::gitops(place.clone())];
        affected.extend(owned(cache, place));
        affected
    });
    affected.collect()
}

/// Returns the clusters with a Secret of a GitOpsCluster.
fn owned(cache: &Cache, place: &ObjectRef) -> Vec<ReconcileRequest> {
    let owned = cache.secrets_owned_by(&place.to_string());
    owned
        .map(|secret| ReconcileRequest::cluster(&secret.cluster().into()))
        .collect()
}
