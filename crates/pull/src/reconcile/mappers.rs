//! The Applications of the basic pull model to reconcile after a change.

use hub_state::pull::work_name;
use hub_state::{Application, Cache, Changed, Cluster, Kind, ReconcileRequest, owners};
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// Maps a change of an Application to itself, and to the Applications that its works claim to carry once it is no longer one of
/// the pull model: these claims count from now on.
pub(super) fn application(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut concerned = BTreeSet::from([changed.object_ref.clone()]);
    let after = cache.application(changed.object_ref);
    if after.is_none_or(|application| application.pull.is_none())
        && let Some(before) = changed.before::<Application>()
        && let Some(pull) = before.pull.as_deref()
    {
        let names = work_name::names(pull);
        let works = names.iter().flat_map(|name| cache.works_with_application(name));
        let claims = works.filter_map(|(_, pull_work)| pull_work.claim.as_ref());
        concerned.extend(claims.cloned());
    }
    concerned.into_iter().map(ReconcileRequest::application).collect()
}

/// Maps a change of a work to the Application that it carries or claims to carry, and to those whose works have its name.
pub(super) fn work(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = owners(cache, changed);
    if changed.kind == Kind::Works {
        let named = cache.pull_applications_by_work_name(&changed.object_ref.name);
        let new = named.filter(|object_ref| affected.iter().all(|known| known.object_ref != **object_ref));
        let new: Vec<_> = new.cloned().map(ReconcileRequest::application).collect();
        affected.extend(new);
    }
    affected
}

/// Maps a change of a managed cluster to the Applications that it is the destination of, if it affects their delivery, and to the
/// Applications in the cluster's namespace if it was accepted or deleted.
pub(super) fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    let (before, after) = (changed.before::<Cluster>(), cache.cluster(name));
    let is_marked = |cluster: &Cluster| cluster.has_hub_mark(name);
    let has_mark_changed = after.is_some_and(is_marked) != before.is_some_and(is_marked);
    let was_created_or_deleted = before.is_some() != after.is_some();
    let has_acceptance_changed = changed.has_acceptance_changed(cache);
    let mut concerned = BTreeSet::new();
    if changed.has_availability_changed(cache) || was_created_or_deleted || has_mark_changed || has_acceptance_changed {
        concerned.extend(cache.pull_applications_to(name));
    }
    if has_acceptance_changed {
        concerned.extend(cache.pull_applications_in(name));
    }
    let all = concerned.into_iter().cloned();
    all.map(ReconcileRequest::application).collect()
}

/// Maps a change of a managed cluster's hold to the Applications that it is the destination of, and those with works on it.
pub(super) fn hold(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    let mut concerned = cache.applications_on(name);
    concerned.extend(cache.pull_applications_to(name).cloned());
    concerned.into_iter().map(ReconcileRequest::application).collect()
}

/// Maps a change of a PlacementDecision to the Applications in its namespace for the managed clusters that it has begun to name or no
/// longer names: a namespace may have thousands of others.
pub(super) fn decision(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let moved = changed.moved_clusters(cache);
    let concerned = moved.iter().flat_map(|cluster| cache.pull_applications_to(cluster));
    let concerned = concerned.filter(|application| application.namespace == changed.object_ref.namespace);
    concerned.cloned().map(ReconcileRequest::application).collect()
}

pub(super) fn settings(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    cache
        .all_pull_applications()
        .cloned()
        .map(ReconcileRequest::application)
        .collect()
}

/// Maps a change of an AppProject to its Applications, and to all if it extends others.
pub(super) fn project(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    let is_global = cache.global_projects().contains(name);
    let is_of_it = |object_ref: &&ObjectRef| {
        let pull = cache.pull_application(object_ref);
        is_global || pull.is_some_and(|pull| *pull.project_name() == **name)
    };
    let concerned = cache.all_pull_applications().filter(is_of_it).cloned();
    concerned.map(ReconcileRequest::application).collect()
}
