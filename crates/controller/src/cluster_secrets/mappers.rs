//! The objects to reconcile after a change of a cluster Secret.

use super::ClusterSecret;
use crate::cache::{Before, Cache, Changed, ReconcileRequest};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maps a change of a cluster Secret to the managed clusters that it concerns.
pub(crate) fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    clusters_of(cache, changed)
        .iter()
        .map(ReconcileRequest::cluster)
        .collect()
}

/// Returns the managed clusters that a changed cluster Secret concerns or has concerned.
pub(crate) fn clusters_of(cache: &Cache, changed: &Changed<'_>) -> BTreeSet<Arc<str>> {
    let name = &changed.object_ref.name;
    let all = both(cache, changed).flat_map(|secret| secret.concerns(name));
    all.map(Into::into).collect()
}

/// Returns a changed cluster Secret before and after the change.
pub(crate) fn both<'c>(cache: &'c Cache, changed: &Changed<'c>) -> impl Iterator<Item = &'c ClusterSecret> {
    let before = match changed.before {
        Some(Before::Secret(secret)) => Some(secret),
        _ => None,
    };
    before.into_iter().chain(cache.secret(&changed.object_ref.name))
}
