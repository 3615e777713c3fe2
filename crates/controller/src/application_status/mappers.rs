//! The Applications to reconcile after a change.

use crate::cache::{Before, Cache, Changed, ReconcileRequest};

/// Maps a change of an Application to itself.
pub(super) fn application(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    vec![ReconcileRequest::application(changed.object_ref.clone())]
}

/// Maps a change of a work, or of Argo CD's resource tracking, to the Applications that owned works or own them now.
pub(super) fn owners(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    changed.owners()
}

/// Maps a changed reachability of a managed cluster to the Applications with works on it.
pub(super) fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    match changed.before {
        Some(Before::Cluster(before)) if before.has_availability_changed(cache.cluster(name)) => {
            let all = cache.applications_on(name).into_iter();
            all.map(ReconcileRequest::application).collect()
        }
        _ => Vec::new(),
    }
}
