//! The managed clusters whose cluster Secrets to reconcile after a change.

use hub_state::cache::{Cache, Changed, ReconcileRequest, TrackingBefore};
use hub_state::cluster_secret::ClusterSecret;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maps a change of a managed cluster to itself.
pub fn cluster(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    vec![ReconcileRequest::cluster(&changed.object_ref.name)]
}

/// Maps a change of Argo CD's resource tracking to all managed clusters, if its label changed, which no Secret may have.
pub fn tracking(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    match changed.before::<TrackingBefore>() {
        Some(before) if before.label != cache.tracking().label() => {
            cache.clusters().map(ReconcileRequest::cluster).collect()
        }
        _ => Vec::new(),
    }
}

/// Maps a change of a cluster Secret to the managed clusters that it concerns.
pub fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    clusters_of(cache, changed)
        .iter()
        .map(ReconcileRequest::cluster)
        .collect()
}

/// Returns the managed clusters that a changed cluster Secret concerns or has concerned.
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
