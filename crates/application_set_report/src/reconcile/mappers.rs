//! The ApplicationSets to reconcile after a change.

use hub_state::{Application, Cache, Changed, Condition, Generated, Kind, ReconcileRequest, Work, WorkBefore, owners};
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;

/// Maps a change of an ApplicationSet or of its report, which has the same name.
pub(super) fn of_same_name(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    vec![ReconcileRequest::set(changed.object_ref.clone())]
}

/// Maps a change of an Application that its report shows to the ApplicationSets that generate it or generated it.
pub(super) fn application(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let before = changed.before::<Application>();
    let after = cache.application(changed.object_ref);
    if before.map(reported) == after.map(reported) {
        return Vec::new();
    }
    let both = before.into_iter().chain(after);
    let sets: BTreeSet<_> = both
        .filter_map(|application| application.set(changed.object_ref))
        .collect();
    sets.into_iter().map(ReconcileRequest::set).collect()
}

/// Returns the fields of an Application that the report of its ApplicationSet contains.
fn reported(application: &Application) -> (Option<&Generated>, Option<&str>, &[Condition]) {
    let cluster = application.cluster();
    (application.generated.as_deref(), cluster, &application.conditions)
}

/// Maps a change of a work to the ApplicationSets of the Applications that own it. The state of a work that carries an
/// Application is reported through the Application, whose own change follows.
pub(super) fn work(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let work = cache.work(Kind::Works, changed.object_ref);
    let carries_application = changed.kind == Kind::Works && work.is_some_and(Work::carries_application);
    match changed.before::<WorkBefore>() {
        Some(before) if before.existed && carries_application => Vec::new(),
        _ => of_owners(cache, changed),
    }
}

/// Maps a change of a managed cluster to the ApplicationSets with Applications on it, if it was accepted or deleted or its
/// reachability changed.
pub(super) fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    if !changed.has_availability_changed(cache) && !changed.has_acceptance_changed(cache) {
        return Vec::new();
    }
    let with_works = cache.applications_on(name);
    let generated = cache.generated_on(name).chain(cache.pull_applications_to(name));
    sets_of(cache, with_works.iter().chain(generated))
}

/// Maps a change of a work, or of Argo CD's resource tracking, to the ApplicationSets of the Applications that owned works or own
/// them now.
pub(super) fn of_owners(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    sets_of(cache, owners(cache, changed).iter().map(|owner| &owner.object_ref))
}

/// Returns the ApplicationSets that generate these Applications.
fn sets_of<'a>(cache: &Cache, applications: impl Iterator<Item = &'a ObjectRef>) -> Vec<ReconcileRequest> {
    let sets = applications.filter_map(|object_ref| cache.application(object_ref)?.set(object_ref));
    let sets: BTreeSet<_> = sets.collect();
    sets.into_iter().map(ReconcileRequest::set).collect()
}
