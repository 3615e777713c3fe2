//! The Applications to reconcile after a change.

use hub_state::{Cache, Changed, ReconcileRequest};
use runtime::queue::Refresh;

/// Maps a change of an Application to itself. If Argo CD has been asked for a refresh, by whichever replica, no other is needed.
pub(super) fn application(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let application = cache.application(changed.object_ref);
    let refresh = if application.is_some_and(|application| application.refreshing) {
        Refresh::Done
    } else {
        Refresh::Unchanged
    };
    vec![ReconcileRequest {
        refresh,
        ..ReconcileRequest::application(changed.object_ref.clone())
    }]
}

/// Maps a change of a managed cluster's hold to the Applications with works on it.
pub(super) fn hold(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let all = cache.applications_on(&changed.object_ref.name).into_iter();
    all.map(ReconcileRequest::application).collect()
}

/// Maps a changed reachability of a managed cluster to the Applications with works on it.
pub(super) fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    if changed.has_availability_changed(cache) {
        hold(cache, changed)
    } else {
        Vec::new()
    }
}
