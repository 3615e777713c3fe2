//! Reconciles the basic pull model: an Application with the pull model's label becomes a ManifestWork for the managed cluster
//! that it names; that cluster's Argo CD runs it, and the controller copies its status back.
//!
//! Labels, annotations and names are those of argocd-pull-integration and Red Hat ACM's multicloud-integrations. The module
//! [`pull`](super) maps Applications to works and works to status; this module decides what to write.

mod mappers;

use crate::status::StatusInputs;
use crate::tenancy::Undeliverable;
use crate::work::{Desired, next_retention};
use crate::{payload, requests, status, tenancy};
use hub_state::annotations::SKIP_RECONCILE;
use hub_state::cache::{Cache, PullWorkRef};
use hub_state::condition_types::{APPLY_ERROR, ON_HOLD, OVERDUE, UNREACHABLE, unreachable};
use hub_state::model::{Application, Kind};
use hub_state::pull;
use hub_state::pull::forwarded::Forwarded;
use hub_state::pull::mirrored_status::{Condition, MirroredStatus};
use hub_state::pull::{mirrored_status, work_name};
use hub_state::reconcile::{Context, Controller, Watch};
use jiff::Timestamp;
use ocm::hold::Hold;
use ocm::resources::{APPLICATIONS, WORKS};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use runtime::action::{Action, Event, InvolvedObject, Write};
use serde_json::Value;
use std::time::Duration;

/// The controller of the pull model.
pub const CONTROLLER: Controller = Controller {
    name: "pull",
    about: "a work for each Application of the basic pull model, whose status it copies to the Application",
    kind: Kind::Applications,
    watches: &[
        Watch::new(Kind::Applications, mappers::application),
        Watch::new(Kind::Works, mappers::work),
        Watch::new(Kind::Clusters, mappers::cluster),
        Watch::new(Kind::Holds, mappers::hold),
        Watch::new(Kind::Decisions, mappers::decision).only_if(|settings| settings.pull.placement),
        Watch::new(Kind::Parameters, mappers::parameters),
        Watch::new(Kind::Projects, mappers::project),
    ],
    min_write_interval: Duration::from_secs(1),
    reconcile,
    requeue_after: end_of_hold,
};

/// No work can be built from the Application.
const ERROR: &str = "ManifestWorkError";
/// The API server rejects the work.
const WRITE_ERROR: &str = "ManifestWorkWriteError";
/// Argo CD on the hub reconciles the Application too.
const RUN_TWICE: &str = "ManifestWorkSkipReconcileWarning";

/// The condition types that are recorded as Events when they appear, with the Events' reasons.
const REASONS: [(&str, &str); 6] = [
    (ERROR, "ManifestWorkRefused"),
    (APPLY_ERROR, "ManifestWorkApplyFailed"),
    (UNREACHABLE, "ManagedClusterUnreachable"),
    (OVERDUE, "ManifestWorkOverdue"),
    (ON_HOLD, "ManagedClusterOnHold"),
    (RUN_TWICE, "ManifestWorkRunTwice"),
];

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let works = cache.pull_works(object_ref);
    let application = cache.application(object_ref);
    let mut writes = match application.map(|it| (it, it.pull.as_deref())) {
        // If the hub lists no Application at all, the hub itself may be broken.
        None if !cache.is_application_list_certain() => Vec::new(),
        None => removed(&works, Some(object_ref)),
        Some((_, None)) => removed(&works, None),
        // argocd-agent's principal copies the Applications of an autonomous agent there, with their labels.
        Some(_) if works.is_empty() && is_of_cluster(cache, object_ref, context) => return None,
        Some((application, Some(pull))) if pull.deleting => {
            deletion_writes(cache, object_ref, (application, pull), &works, context)
        }
        Some((_, Some(_))) if is_of_cluster(cache, object_ref, context) => return None,
        Some((application, Some(pull))) => {
            return desired_writes(cache, object_ref, (application, pull), &works, context);
        }
    };
    wait_for_holds(cache, &mut writes, context);
    if writes.is_empty() || context.settings.pull.read_only {
        return None;
    }
    Some(action(object_ref, application, writes))
}

/// Removes the writes of works of managed clusters on hold, which the API server would refuse.
fn wait_for_holds(cache: &Cache, writes: &mut Vec<Write>, context: &Context<'_>) {
    writes.retain(|write| {
        let cluster = &write.object_ref.namespace;
        write.resource.plural != WORKS.plural || cache.hold(cluster, context.now).is_none()
    });
}

/// Returns when a hold of the Application's clusters ends by itself.
fn end_of_hold(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let pull = cache.application(object_ref).and_then(|it| it.pull.as_deref());
    let works = cache.pull_works(object_ref);
    let works = works.iter().map(|it| &*it.object_ref.namespace);
    let clusters = works.chain(pull.and_then(|pull| pull.cluster.as_deref()));
    cache.end_of_hold(clusters, context.now)
}

/// Returns true if the namespace of an Application is a managed cluster's, and not Argo CD's.
fn is_of_cluster(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> bool {
    *object_ref.namespace != *context.settings.pull.argocd && cache.cluster(&object_ref.namespace).is_some()
}

fn action(object_ref: &ObjectRef, application: Option<&Application>, writes: Vec<Write>) -> Action {
    Action::new(
        InvolvedObject::new(
            &APPLICATIONS,
            object_ref.clone(),
            application.map_or_else(|| "".into(), |application| application.uid.clone()),
        ),
        writes,
        None,
    )
}

/// Deletes works, unless the API server still has the Application.
fn removed(works: &[PullWorkRef<'_>], unless_exists: Option<&ObjectRef>) -> Vec<Write> {
    let staying = works.iter().filter(|it| !it.pull_work.deleting);
    let delete = |it: &PullWorkRef<'_>| {
        Write::delete(
            &WORKS,
            it.object_ref.clone(),
            (&it.pull_work.uid, &it.pull_work.version),
            unless_exists.map(|object_ref| (&APPLICATIONS, object_ref.clone())),
        )
    };
    staying.map(delete).collect()
}

/// Returns the writes for an Application that is being deleted. With a finalizer of Argo CD, the Application stays until the
/// managed cluster has deleted the deployed objects, as if Argo CD on the hub had deployed them. Without one, the controller
/// waits for nothing.
fn deletion_writes(
    cache: &Cache,
    object_ref: &ObjectRef,
    (application, pull): (&Application, &pull::Application),
    works: &[PullWorkRef<'_>],
    context: &Context<'_>,
) -> Vec<Write> {
    let Some(release) = pull.release() else {
        return Vec::new();
    };
    let mut writes = removed(works, None);
    wait_for_holds(cache, &mut writes, context);
    if let Some(why) = unreadable(cache, pull) {
        let cluster = pull.cluster.as_deref().unwrap_or_default();
        let desired = desired(cache, (application, pull), (cluster, None), Some(&why), context);
        let body = pull.patch(
            Forwarded::default(),
            mirrored_status::patch(&pull.current, &desired, false),
        );
        writes.extend(body.map(|body| patch(&APPLICATIONS, object_ref, body)));
        return writes;
    }
    let Some(kept) = trusted(works, pull.cluster.as_deref()) else {
        writes.push(patch(&APPLICATIONS, object_ref, release));
        return writes;
    };
    // The agent's report during the deletion, such as an error that blocks it.
    if writes.is_empty() || refused(cache, object_ref).is_some() {
        let desired = desired(
            cache,
            (application, pull),
            (&kept.object_ref.namespace, Some(kept)),
            None,
            context,
        );
        let body = pull.patch(
            Forwarded::default(),
            mirrored_status::patch(&pull.current, &desired, false),
        );
        writes.splice(0..0, body.map(|body| patch(&APPLICATIONS, object_ref, body)));
    }
    writes
}

/// Returns the API server's reason for rejecting the last write for an Application.
fn refused<'i>(cache: &'i Cache, object_ref: &ObjectRef) -> Option<&'i str> {
    cache.refusal(CONTROLLER.name, CONTROLLER.kind, object_ref)
}

/// Returns the work whose status is trusted and whose deletion must complete first: one on the Application's cluster, or else one
/// with a name that only its works have. Another cluster's agent may claim that one of its works carries any Application.
fn trusted<'w, 'i>(works: &'w [PullWorkRef<'i>], cluster: Option<&str>) -> Option<&'w PullWorkRef<'i>> {
    let is_on_cluster = |it: &&PullWorkRef<'_>| Some(&*it.object_ref.namespace) == cluster;
    let named = || works.iter().find(|it| it.is_named);
    works
        .iter()
        .filter(is_on_cluster)
        .min_by_key(|it| (it.pull_work.deleting, !it.is_named))
        .or_else(named)
}

fn patch(resource: &'static Resource, object_ref: &ObjectRef, body: Value) -> Write {
    Write::patch(resource, object_ref.clone(), body)
}

/// Returns the writes for an Application that is not being deleted.
fn desired_writes(
    cache: &Cache,
    object_ref: &ObjectRef,
    (application, pull): (&Application, &pull::Application),
    works: &[PullWorkRef<'_>],
    context: &Context<'_>,
) -> Option<Action> {
    let settings = &context.settings.pull;
    let target = match unreadable(cache, pull) {
        Some(why) => Err(why),
        None => target(cache, object_ref, (pull, works), settings),
    };
    let mut writes = Vec::new();
    let mut forwarded = Forwarded::default();
    let kept = match target {
        Ok(cluster) => {
            let name = name(cache, object_ref, pull, (cluster, works), &settings.argocd);
            let here = works.iter().filter(|it| *it.object_ref.namespace == *cluster);
            let kept = here.min_by_key(|it| (it.pull_work.deleting, !it.is_named, *it.object_ref.name != *name));
            let (requests, removable) = requests::requests(pull, kept.map(|it| it.pull_work));
            let project = cache.project(pull.project_name());
            let retention = next_retention(settings, kept.map(|it| it.pull_work));
            let desired = Desired::build(pull, (cluster, &name), settings, &requests, project, retention);
            writes.extend(delivered(&desired, &ObjectRef::new(cluster, &name), kept));
            forwarded = removable;
            if !settings.read_only {
                let others = works
                    .iter()
                    .filter(|it| kept.is_none_or(|kept| it.object_ref != kept.object_ref));
                writes.extend(removed(&others.copied().collect::<Vec<_>>(), None));
            }
            wait_for_holds(cache, &mut writes, context);
            let is_on_hold = cache.hold(cluster, context.now).is_some();
            // The status of a new work is written after its creation: by then the agent may have reported.
            if kept.is_none() && !is_on_hold && refused(cache, object_ref).is_none() {
                return Some(action(object_ref, Some(application), writes));
            }
            kept
        }
        // The existing work keeps running.
        Err(_) => trusted(works, pull.cluster.as_deref()),
    };
    let cluster = kept.map_or(target.as_deref().unwrap_or_default(), |it| &it.object_ref.namespace);
    let pull_work = kept.map(|it| it.pull_work);
    let desired = desired(
        cache,
        (application, pull),
        (cluster, kept),
        target.as_ref().err(),
        context,
    );
    let comparison_requested = status::is_comparison_requested(pull_work);
    let body = pull.patch(
        forwarded,
        mirrored_status::patch(&pull.current, &desired, comparison_requested),
    );
    let event = new_conditions(&pull.current, &desired);
    let body = body.map(|body| patch(&APPLICATIONS, object_ref, body));
    if comparison_requested || refused(cache, object_ref).is_some() {
        // The work keeps a refresh until its result is on the hub. If the API server rejects the work again, it skips the writes
        // after it.
        writes.splice(0..0, body);
    } else {
        writes.extend(body);
    }
    if writes.is_empty() {
        return None;
    }
    Some(Action {
        events: event.into_iter().collect(),
        ..action(object_ref, Some(application), writes)
    })
}

/// Returns the reason why nothing can be decided about the work of an Application: it exists and cannot be read.
fn unreadable(cache: &Cache, pull: &pull::Application) -> Option<Undeliverable> {
    let (object_ref, why) = cache.unreadable_work(pull)?;
    Some(Undeliverable::new(format!(
        "ManifestWork {object_ref} cannot be read: {why}: correct the Application, and delete the ManifestWork"
    )))
}

/// Returns the managed cluster of an Application.
///
/// # Errors
/// Returns the reason why there is none.
fn target<'p>(
    cache: &Cache,
    object_ref: &ObjectRef,
    (pull, works): (&'p pull::Application, &[PullWorkRef<'_>]),
    settings: &pull::Settings,
) -> Result<&'p str, Undeliverable> {
    tenancy::check_namespace(&object_ref.namespace, settings, cache.namespaces())?;
    let cluster = pull.cluster.as_deref().ok_or_else(|| {
        let annotation = ocm::pull_model::CLUSTER;
        Undeliverable::new(format!("the annotation {annotation} names no managed cluster"))
    })?;
    let undeliverable = |reason| Err(Undeliverable::new(reason));
    match cache.cluster(cluster) {
        None => undeliverable(format!("ManagedCluster {cluster} does not exist")),
        Some(known) if known.deleting => undeliverable(format!("ManagedCluster {cluster} is being deleted")),
        Some(_) if settings.placement && !cache.is_selected(&object_ref.namespace, cluster) => undeliverable(format!(
            "no Placement in Namespace {} selects ManagedCluster {cluster}",
            object_ref.namespace
        )),
        Some(_) if settings.project && cache.project(pull.project_name()).is_none() => undeliverable(format!(
            "AppProject {}/{} does not exist",
            settings.argocd,
            pull.project_name()
        )),
        Some(_) if cache.is_hub(cluster) && is_itself(pull, settings) => undeliverable(format!(
            "ManagedCluster {cluster} is the hub itself, whose agent would apply the Application onto itself: remove the label {}, \
             or name another cluster",
            ocm::pull_model::PULL
        )),
        // The cluster's agent can write the mark of the hub, so it stops no Application that the cluster has.
        Some(_) if cache.may_be_hub(cluster) && works.is_empty() && is_itself(pull, settings) => {
            undeliverable(format!(
                "ManagedCluster {cluster} may be the hub itself, whose agent would apply the Application onto itself: name \
             another cluster, or set ARGOCD_OCM_CMP_HUB_CLUSTER to the name of the hub, or to none",
            ))
        }
        Some(_) => {
            tenancy::check_project(pull, cluster, settings, cache.project(pull.project_name())).map(|()| cluster)
        }
    }
}

/// Returns true if the Application in the work has the same namespace and name as the one on the hub.
fn is_itself(pull: &pull::Application, settings: &pull::Settings) -> bool {
    *pull.namespace == *payload::namespace(pull, settings)
}

/// Returns the name of a new work of an Application on a cluster, which no other work has. If several Applications have the same
/// short name, the one in Argo CD's namespace gets it.
fn name(
    cache: &Cache,
    object_ref: &ObjectRef,
    pull: &pull::Application,
    (cluster, works): (&str, &[PullWorkRef<'_>]),
    argocd: &str,
) -> String {
    let name = work_name::name(pull);
    let at = ObjectRef::new(cluster, &name);
    let is_own = works.iter().any(|it| *it.object_ref == at);
    let is_taken = !is_own && cache.work(Kind::Works, &at).is_some();
    if is_taken || cache.is_others_name(&name, object_ref) && *object_ref.namespace != *argocd {
        return work_name::other_name(pull);
    }
    name
}

/// Returns the write that creates or updates a work. A work that is being deleted is not written, because the agent is deleting
/// the applied objects.
fn delivered(desired: &Desired, object_ref: &ObjectRef, kept: Option<&PullWorkRef<'_>>) -> Option<Write> {
    match kept {
        None => Some(Write::create(&WORKS, object_ref.clone(), desired.object())),
        Some(it) if it.pull_work.deleting || desired.is_stored(it.pull_work) => None,
        Some(it) => Some(patch(&WORKS, it.object_ref, desired.patch(&it.pull_work.version))),
    }
}

/// Returns the desired status of an Application.
fn desired(
    cache: &Cache,
    (application, pull): (&Application, &pull::Application),
    (cluster, kept): (&str, Option<&PullWorkRef<'_>>),
    undeliverable: Option<&Undeliverable>,
    context: &Context<'_>,
) -> MirroredStatus {
    let overdue = kept.and_then(|kept| {
        let work = cache.work(Kind::Works, kept.object_ref)?;
        cache.overdue(kept.object_ref, work)
    });
    let inputs = StatusInputs {
        application: Some(pull),
        cluster,
        pull_work: kept.map(|kept| kept.pull_work),
        overdue,
        notes: &notes(
            cache,
            application,
            &ObjectRef::new(&pull.namespace, &pull.name),
            (cluster, cache.hold(cluster, context.now)),
            (undeliverable, overdue),
        ),
        read_only: context.settings.pull.read_only,
        is_ours: !application.reconciled,
        now: context.now,
    };
    status::desired(&pull.current, &inputs)
}

/// Returns the conditions that the controller adds to those of the cluster.
fn notes(
    cache: &Cache,
    application: &Application,
    object_ref: &ObjectRef,
    (cluster, hold): (&str, Option<&Hold>),
    (undeliverable, overdue): (Option<&Undeliverable>, Option<&str>),
) -> Vec<Condition> {
    let mut notes = Vec::new();
    let mut note = |kind: &str, message: String| {
        notes.push(Condition {
            kind: kind.into(),
            message: message.into(),
            since: None,
        });
    };
    if let Some(why) = undeliverable {
        note(ERROR, why.to_string());
    }
    if let Some(why) = refused(cache, object_ref) {
        note(WRITE_ERROR, why.to_owned());
    }
    if let Some(why) = unreachable(cache.availability(cluster)) {
        note(UNREACHABLE, format!("{cluster}: {why}"));
    }
    if let Some(why) = overdue {
        note(OVERDUE, format!("{cluster}: {why}"));
    }
    if let Some(hold) = hold {
        note(ON_HOLD, format!("{cluster}: {}", hold.state()));
    }
    if application.reconciled {
        note(
            RUN_TWICE,
            format!(
                "the annotation {SKIP_RECONCILE}: \"true\" is missing, so Argo CD on the hub runs the Application \
                 too: add the annotation"
            ),
        );
    }
    notes
}

/// Returns the Event for new conditions.
fn new_conditions(before: &MirroredStatus, after: &MirroredStatus) -> Option<Event> {
    let is_known = |condition: &Condition| {
        let mut before = before.conditions.iter();
        before.any(|it| it.kind == condition.kind && it.message == condition.message)
    };
    let new = after.conditions.iter().filter(|condition| !is_known(condition));
    let event = |condition: &Condition| {
        let (_, reason) = REASONS.iter().find(|(kind, _)| **kind == *condition.kind)?;
        Some(Event::warning(reason, condition.message.to_string()))
    };
    Event::of_all(new.filter_map(event).collect())
}

#[cfg(test)]
mod tests;
