//! The objects to reconcile after a change that concerns GitOpsClusters. The requests for managed clusters are for their cluster
//! Secrets and the ManifestWorks of their agents.

use crate::cache::{Before, Cache, Changed, ReconcileRequest};
use crate::cluster_secrets::mappers as cluster_secrets;
use crate::cluster_secrets::mappers::{both, clusters_of};
use crate::model::{Cluster, GitOpsCluster, PlacementDecision};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// Maps a change of a GitOpsCluster.
pub(crate) fn gitops_cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let object_ref = changed.object_ref;
    let before = match changed.before {
        Some(Before::GitOpsCluster(it)) => Some(it),
        _ => None,
    };
    let after = cache.gitops_cluster(object_ref);
    let mut affected = vec![ReconcileRequest::gitops(object_ref.clone())];
    if before.map(GitOpsCluster::inputs) != after.map(GitOpsCluster::inputs) {
        let both = before.into_iter().chain(after);
        let selected: BTreeSet<_> = both
            .flat_map(|it| cache.selected_by(&it.placement(object_ref)))
            .collect();
        affected.extend(selected.into_iter().map(ReconcileRequest::cluster));
        affected.extend(owned(cache, object_ref));
    }
    affected.push(ReconcileRequest::argocd(cache.argocd()));
    affected
}

/// Maps a change of a managed cluster to itself, and to the GitOpsClusters that it concerns. A cluster that is reachable again may
/// have left a Placement meanwhile.
pub(crate) fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let Some(Before::Cluster(before)) = changed.before else {
        return Vec::new();
    };
    let name = &changed.object_ref.name;
    let mut affected = cluster_secrets::cluster(cache, changed);
    let mut gitops = BTreeSet::new();
    let is_active = |cluster: &Cluster| !cluster.deleting;
    let after = cache.cluster(name);
    if after.is_some_and(is_active) != before.cluster.as_ref().is_some_and(is_active) {
        gitops.extend(cache.gitops_selecting([name]).into_iter().cloned());
    }
    if before.has_availability_changed(after) {
        gitops.extend(cache.gitops_of(name));
    }
    affected.extend(ReconcileRequest::gitops_all(&gitops));
    affected
}

/// Maps a change of a Placement.
pub(crate) fn placement(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    of_placement(cache, changed.object_ref)
}

/// Maps a change of a PlacementDecision.
pub(crate) fn decision(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let object_ref = changed.object_ref;
    let before = match changed.before {
        Some(Before::PlacementDecision(it)) => Some(it),
        _ => None,
    };
    let after = cache.decision(object_ref);
    let none = BTreeSet::new();
    let clusters = |it: Option<&PlacementDecision>| it.map_or(&none, |it| &it.clusters).clone();
    let moved = &clusters(before) ^ &clusters(after);
    let placements: BTreeSet<_> = before
        .into_iter()
        .chain(after)
        .map(|it| it.placement(object_ref))
        .collect();
    let mut affected: Vec<_> = placements.iter().flat_map(|it| of_placement(cache, it)).collect();
    if !affected.is_empty() {
        affected.extend(moved.iter().map(ReconcileRequest::cluster));
    }
    affected
}

/// Maps a change of Argo CD's namespace, which can allow GitOpsClusters of other namespaces.
pub(crate) fn namespace(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    let all = cache.gitops_clusters().flat_map(|(object_ref, it)| {
        let clusters = cache
            .selected_by(&it.placement(object_ref))
            .map(ReconcileRequest::cluster);
        clusters.chain([ReconcileRequest::gitops(object_ref.clone())])
    });
    all.collect()
}

/// Maps a change of a cluster Secret.
pub(crate) fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let clusters = clusters_of(cache, changed);
    if clusters.is_empty() {
        return Vec::new();
    }
    let owners = both(cache, changed).filter_map(|secret| ObjectRef::parse(secret.owner()?));
    let mut gitops: BTreeSet<_> = owners
        .filter(|object_ref| cache.gitops_cluster(object_ref).is_some())
        .collect();
    gitops.extend(cache.gitops_selecting(&clusters).into_iter().cloned());
    let mut affected: Vec<_> = clusters.iter().map(ReconcileRequest::cluster).collect();
    affected.extend(ReconcileRequest::gitops_all(&gitops));
    affected
}

/// Returns the GitOpsClusters of a Placement, and the clusters whose Secrets they may have to delete.
fn of_placement(cache: &Cache, placement: &ObjectRef) -> Vec<ReconcileRequest> {
    let all = cache.gitops_clusters();
    let of_it = all.filter(|(object_ref, it)| it.placement(object_ref) == *placement);
    let affected = of_it.flat_map(|(object_ref, _)| {
        let mut affected = vec![ReconcileRequest::gitops(object_ref.clone())];
        affected.extend(owned(cache, object_ref));
        affected
    });
    affected.collect()
}

/// Returns the clusters with a Secret of a GitOpsCluster.
fn owned(cache: &Cache, object_ref: &ObjectRef) -> Vec<ReconcileRequest> {
    let owned = cache.secrets_owned_by(&object_ref.to_string());
    owned
        .map(|secret| ReconcileRequest::cluster(&secret.cluster().into()))
        .collect()
}
