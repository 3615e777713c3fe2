//! The managed clusters whose cluster Secrets to reconcile after a change.

use hub_state::cache::{Cache, Changed, ClusterBefore, ReconcileRequest, TrackingBefore};
use hub_state::cluster_secret::ClusterSecret;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maps a change of a managed cluster to itself. The first one after an empty list proves the deletion of all others, whose
/// Secrets are then obsolete.
#[must_use]
pub fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let Some(before) = changed.before::<ClusterBefore>() else {
        return Vec::new();
    };
    let name = &changed.object_ref.name;
    let has_changed = before.cluster.as_ref() != cache.cluster(name);
    let itself = has_changed.then_some(name);
    let others = before.was_list_empty.then(|| cache.clusters_with_secrets());
    let all = others.into_iter().flatten().chain(itself);
    let all: BTreeSet<_> = all.collect();
    all.into_iter().map(ReconcileRequest::cluster).collect()
}

/// Maps a change of Argo CD's resource tracking to all managed clusters, if its label changed, which no Secret may have.
#[must_use]
pub fn tracking(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    match changed.before::<TrackingBefore>() {
        Some(before) if before.label != cache.tracking().label() => {
            cache.clusters().map(ReconcileRequest::cluster).collect()
        }
        _ => Vec::new(),
    }
}

/// Maps a change of a cluster Secret to the managed clusters that it concerns.
#[must_use]
pub fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    clusters_of(cache, changed)
        .iter()
        .map(ReconcileRequest::cluster)
        .collect()
}

/// Returns the managed clusters that a changed cluster Secret concerns or has concerned.
#[must_use]
pub fn clusters_of(cache: &Cache, changed: &Changed<'_>) -> BTreeSet<Arc<str>> {
    let name = &changed.object_ref.name;
    let all = both(cache, changed).flat_map(|secret| {
        let hub = cache.hub_cluster().filter(|_| secret.is_in_cluster());
        secret.concerns(name).into_iter().chain(hub)
    });
    all.map(Into::into).collect()
}

/// Returns a changed cluster Secret before and after the change.
pub fn both<'c>(cache: &'c Cache, changed: &Changed<'c>) -> impl Iterator<Item = &'c ClusterSecret> {
    let before = changed.before::<ClusterSecret>();
    before.into_iter().chain(cache.secret(&changed.object_ref.name))
}
