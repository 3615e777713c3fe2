//! Reconciles the basic pull model: an Application with the pull model's label becomes a ManifestWork for the managed cluster
//! that it names; that cluster's Argo CD runs it, and the controller copies its status back.

mod mappers;

use crate::payload::OfHub;
use crate::removal::removed;
use crate::status::StatusInputs;
use crate::work::{Desired, next_retention};
use crate::{payload, requests, status, tenancy};
use hub_state::annotations::SKIP_RECONCILE;
use hub_state::condition_types::{APPLY_ERROR, ON_HOLD, OVERDUE, UNREACHABLE, unreachable};
use hub_state::pull::forwarded::Forwarded;
use hub_state::pull::mirrored_status::{self, Condition, MirroredStatus};
use hub_state::pull::pull_work::PullWork;
use hub_state::pull::text::bounded_line;
use hub_state::pull::{self, work_name};
use hub_state::{Application, Cache, Context, Controller, Kind, PullWorkRef, Watch};
use jiff::Timestamp;
use ocm::resources::{APPLICATIONS, WORKS};
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, Event, InvolvedObject, Write};
use std::time::Duration;

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
        Watch::new(Kind::Config, mappers::settings),
        Watch::new(Kind::Parameters, mappers::settings),
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
    let reconciled = application.and_then(|application| {
        Some(PulledApplication {
            cache,
            context,
            object_ref,
            application,
            pull: application.pull.as_deref()?,
            works: &works,
        })
    });
    // argocd-agent's principal copies the Applications of an autonomous agent to the namespace of its cluster, with their labels. They
    // stay there when the ManagedCluster is deleted.
    let is_elsewhere = *object_ref.namespace != *context.settings.pull.argocd;
    let is_of_cluster = is_elsewhere && cache.accepted_cluster(&object_ref.namespace).is_some();
    let is_of_agent = |pull: &pull::Application| is_of_cluster || is_elsewhere && pull.is_of_agent;
    let (writes, event) = match reconciled {
        Some(PulledApplication { pull, .. })
            if is_of_cluster && works.is_empty() || is_of_agent(pull) && !pull.deleting =>
        {
            return None;
        }
        Some(pulled_application) if !pulled_application.pull.deleting => pulled_application.desired_writes(),
        _ if context.settings.pull.read_only => return None,
        Some(pulled_application) => (pulled_application.deletion_writes(), None),
        // If the hub lists no Application at all, the hub itself may be broken.
        None if application.is_none() && !cache.is_application_list_certain() => return None,
        None => {
            let unless_exists = application.is_none().then(|| (&APPLICATIONS, object_ref.clone()));
            // Red Hat ACM's users hand an Application to argocd-agent by removing the label, and keep the read-only work: its
            // deletion would delete the Application of the agent, and what it deployed.
            let is_handed_over =
                |work: &&PullWorkRef<'_>| application.is_some() && work.pull_work.is_frozen_by_another();
            let leaving = works.iter().filter(|work| !is_handed_over(work));
            let writes = removed(leaving, application, cache, context).into_iter();
            (
                writes.map(|write| write.unless_exists(unless_exists.clone())).collect(),
                None,
            )
        }
    };
    let uid = application.map_or_else(|| "".into(), |application| application.uid.clone());
    let involved_object = InvolvedObject::new(&APPLICATIONS, object_ref.clone(), uid);
    (!writes.is_empty()).then(|| Action::new(involved_object, writes, event))
}

/// Returns when a hold of the Application's clusters ends by itself.
fn end_of_hold(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let pull = cache.pull_application(object_ref);
    let works = cache.pull_works(object_ref);
    let works = works.iter().map(|work| &*work.object_ref.namespace);
    let clusters = works.chain(pull.and_then(|pull| pull.cluster.as_deref()));
    cache.end_of_hold(clusters, context.now)
}

/// An Application of the pull model, and the works that may carry it.
struct PulledApplication<'i> {
    cache: &'i Cache,
    context: &'i Context<'i>,
    object_ref: &'i ObjectRef,
    application: &'i Application,
    pull: &'i pull::Application,
    works: &'i [PullWorkRef<'i>],
}

impl<'i> PulledApplication<'i> {
    /// Returns the writes for an Application that is being deleted. With a finalizer of Argo CD, the Application stays until the
    /// managed cluster has deleted the deployed objects, as if Argo CD on the hub had deployed them. Without one, the controller
    /// waits for nothing.
    fn deletion_writes(&self) -> Vec<Write> {
        let Some(release) = self.pull.release() else {
            return Vec::new();
        };
        let mut writes = self.removed(self.works);
        let work = match self.unreadable() {
            Some(why) => {
                let cluster = self.pull.cluster.as_deref().unwrap_or_default();
                let (status, _) = self.write_status((cluster, None), Some(&why), Forwarded::default(), false);
                writes.extend(status);
                return writes;
            }
            None => self.trusted(),
        };
        let Some(work) = work else {
            if self.may_release() {
                writes.push(Write::patch(&APPLICATIONS, self.object_ref.clone(), release));
            }
            return writes;
        };
        // The agent's report during the deletion, such as an error that blocks it.
        if writes.is_empty() || self.refused().is_some() {
            let on = (&*work.object_ref.namespace, Some(work));
            let (status, _) = self.write_status(on, None, Forwarded::default(), false);
            writes.splice(0..0, status);
        }
        writes
    }

    /// Returns true if the controller removes Argo CD's finalizers, because Argo CD does not: it skips the Application, in a
    /// namespace that no other Argo CD serves.
    fn may_release(&self) -> bool {
        !self.application.reconciled && self.check_namespace().is_ok()
    }

    fn check_namespace(&self) -> Result<(), String> {
        tenancy::check_namespace(
            &self.object_ref.namespace,
            &self.context.settings.pull,
            self.cache.namespaces(),
        )
    }

    fn removed<'w>(&self, works: impl IntoIterator<Item = &'w PullWorkRef<'w>>) -> Vec<Write> {
        removed(works, Some(self.application), self.cache, self.context)
    }

    /// Returns the API server's reason for rejecting the last write for the Application.
    fn refused(&self) -> Option<&'i str> {
        let object = (CONTROLLER.name, CONTROLLER.kind, self.object_ref.clone());
        self.cache.refusals().get(&object)
    }

    /// Returns the work whose status is trusted and whose deletion must complete first: one on the Application's cluster, or else
    /// one with a name that only its works have. Another cluster's agent may claim that one of its works carries any Application.
    fn trusted(&self) -> Option<&'i PullWorkRef<'i>> {
        let cluster = self.pull.cluster.as_deref();
        let on_cluster = self
            .works
            .iter()
            .filter(|work| Some(&*work.object_ref.namespace) == cluster);
        on_cluster
            .min_by_key(|work| (work.pull_work.deleting, !work.is_named))
            .or_else(|| self.works.iter().find(|work| work.is_named))
    }

    /// Returns the writes for an Application that is not being deleted, and the Event for its new conditions.
    fn desired_writes(&self) -> (Vec<Write>, Option<Event>) {
        let Self { cache, pull, works, .. } = *self;
        let settings = &self.context.settings.pull;
        let target = self.target();
        let mut writes = Vec::new();
        let mut forwarded = Forwarded::default();
        let work = match target {
            Ok(cluster) => {
                let name = self.name(cluster);
                let candidates = works.iter().filter(|work| *work.object_ref.namespace == *cluster);
                let work = candidates
                    .min_by_key(|work| (work.pull_work.deleting, !work.is_named, *work.object_ref.name != *name));
                let (requests, removable) = requests::requests(pull, work.map(|work| work.pull_work));
                forwarded = removable;
                // `argocd app get --refresh` takes the removed annotation for the end of the comparison.
                let may_compare = !settings.read_only && unreachable(cache.availability(cluster)).is_none();
                let compares = |pull_work: &PullWork| pull_work.refused().is_none() && !pull_work.has_compared();
                forwarded.refresh &= !(may_compare && work.is_some_and(|work| compares(work.pull_work)));
                // The hub has the project already: its agent would undo changes of it. Without it in the work, the object stays.
                let is_of_hub = cache.is_hub(cluster) || cache.may_be_hub(cluster);
                let project = cache.project(pull.project_name()).filter(|_| !is_of_hub);
                let hub = OfHub {
                    project: project.as_deref(),
                    tracking_label: cache.tracking().only_label(),
                };
                let retention = next_retention(settings, work.map(|work| work.pull_work));
                let desired = Desired::build(pull, (cluster, &name), settings, &requests, hub, retention);
                let is_on_hold = cache.hold(cluster, self.context.now).is_some();
                if !is_on_hold {
                    writes.extend(delivered(&desired, ObjectRef::new(cluster, &name), work));
                }
                // What runs elsewhere stays until the work that takes its place can be there.
                let is_delivered = work.map_or(!is_on_hold, |work| !work.pull_work.deleting);
                if is_delivered && !settings.read_only {
                    let is_other =
                        |other: &&PullWorkRef<'_>| work.is_none_or(|work| other.object_ref != work.object_ref);
                    writes.extend(self.removed(works.iter().filter(is_other)));
                }
                // The status of a new work is written after its creation: by then the agent may have reported.
                if work.is_none() && !is_on_hold && self.refused().is_none() {
                    return (writes, None);
                }
                work
            }
            // The existing work keeps running.
            Err(_) => self.trusted(),
        };
        let cluster = work.map_or(target.as_deref().unwrap_or_default(), |work| &work.object_ref.namespace);
        let compares = status::is_comparison_requested(work.map(|work| work.pull_work));
        let (status, event) = self.write_status((cluster, work), target.as_ref().err(), forwarded, compares);
        if compares || self.refused().is_some() {
            // The work keeps a refresh until its result is on the hub. If the API server rejects the work again, it skips the
            // writes after it.
            writes.splice(0..0, status);
        } else {
            writes.extend(status);
        }
        (writes, event)
    }

    /// Returns the reason why nothing can be decided about the work of the Application: it exists and cannot be read.
    fn unreadable(&self) -> Option<String> {
        let (object_ref, why) = self.cache.unreadable_work(self.pull)?;
        Some(format!(
            "ManifestWork {object_ref} cannot be read: {why}: correct the Application, and delete the ManifestWork"
        ))
    }

    /// Returns the managed cluster of the Application.
    fn target(&self) -> Result<&'i str, String> {
        let Self { cache, pull, .. } = *self;
        let (namespace, settings) = (&self.object_ref.namespace, &self.context.settings.pull);
        self.unreadable().map_or(Ok(()), Err)?;
        self.check_namespace()?;
        let cluster = pull.cluster.as_deref().ok_or_else(|| {
            let annotation = ocm::pull_model::CLUSTER;
            format!("the annotation {annotation} names no managed cluster")
        })?;
        let project = cache.project(pull.project_name());
        // The Application in the work has the same namespace and name as the one on the hub.
        let is_itself = || *pull.namespace == *payload::namespace(pull, settings);
        Err(match cache.cluster(cluster) {
            None => format!("ManagedCluster {cluster} does not exist"),
            Some(known) if known.deleting => format!("ManagedCluster {cluster} is being deleted"),
            Some(known) if !known.is_accepted => {
                format!("ManagedCluster {cluster} is not accepted: set its `hubAcceptsClient` to true")
            }
            Some(_) if settings.placement && !cache.is_selected(namespace, cluster) => {
                format!("no Placement in Namespace {namespace} selects ManagedCluster {cluster}")
            }
            Some(_) if settings.project && project.is_none() => {
                format!("AppProject {}/{} does not exist", settings.argocd, pull.project_name())
            }
            Some(_) if cache.is_hub(cluster) && is_itself() => format!(
                "ManagedCluster {cluster} is the hub itself, whose agent would apply the Application onto itself: remove the \
                 label {}, or name another cluster",
                ocm::pull_model::PULL
            ),
            // The cluster's agent can write the mark of the hub, so it stops no Application that the cluster has.
            Some(_) if cache.may_be_hub(cluster) && !self.is_on(cluster) && is_itself() => format!(
                "ManagedCluster {cluster} may be the hub itself, whose agent would apply the Application onto itself: name \
                 another cluster, or set ARGOCD_OCM_CMP_HUB_CLUSTER to the name of the hub, or to none",
            ),
            Some(_) => return tenancy::check_project(pull, cluster, settings, project.as_deref()).map(|()| cluster),
        })
    }

    fn is_on(&self, cluster: &str) -> bool {
        self.works.iter().any(|work| *work.object_ref.namespace == *cluster)
    }

    /// Returns the name of a new work of the Application on a cluster, which no other work has. If several Applications have the
    /// same short name, the one in Argo CD's namespace gets it.
    fn name(&self, cluster: &str) -> String {
        let name = work_name::name(self.pull);
        let at = ObjectRef::new(cluster, &name);
        let is_own = self.works.iter().any(|work| *work.object_ref == at);
        let is_taken = !is_own && self.cache.work(Kind::Works, &at).is_some();
        let is_elsewhere = *self.object_ref.namespace != *self.context.settings.pull.argocd;
        if is_taken || is_elsewhere && self.cache.is_others_name(&name, self.object_ref) {
            return work_name::other_name(self.pull);
        }
        name
    }

    /// Returns the write of what differs in the status and of forwarded requests, and the Event for new conditions.
    fn write_status(
        &self,
        (cluster, work): (&str, Option<&PullWorkRef<'_>>),
        undeliverable: Option<&String>,
        forwarded: Forwarded,
        compares: bool,
    ) -> (Option<Write>, Option<Event>) {
        let Self { cache, pull, .. } = *self;
        let overdue = work.and_then(|pull_work| {
            let work = cache.work(Kind::Works, pull_work.object_ref)?;
            cache.overdue(pull_work.object_ref, work)
        });
        let inputs = StatusInputs {
            application: Some(pull),
            cluster,
            pull_work: work.map(|work| work.pull_work),
            overdue,
            notes: &self.notes(cluster, undeliverable, overdue),
            read_only: self.context.settings.pull.read_only,
            is_ours: !self.application.reconciled,
            now: self.context.now,
        };
        let desired = status::desired(&pull.current, &inputs);
        // Argo CD removes the requests of Applications that it reconciles, when it has done them.
        let forwarded = if self.application.reconciled {
            Forwarded::default()
        } else {
            forwarded
        };
        let compares = compares || is_first_comparison(pull, &desired);
        let body = pull.patch(forwarded, mirrored_status::patch(&pull.current, &desired, compares));
        let write = body.map(|body| Write::patch(&APPLICATIONS, self.object_ref.clone(), body));
        (write, new_conditions(&pull.current, &desired))
    }

    /// Returns the conditions that the controller adds to those of the cluster.
    fn notes(&self, cluster: &str, undeliverable: Option<&String>, overdue: Option<&str>) -> Vec<Condition> {
        let of_cluster = |why: &str| format!("{cluster}: {why}");
        let hold = self.cache.hold(cluster, self.context.now);
        let notes = [
            (ERROR, undeliverable.cloned()),
            (WRITE_ERROR, self.refused().map(str::to_owned)),
            (UNREACHABLE, unreachable(self.cache.availability(cluster)).map(of_cluster)),
            (OVERDUE, overdue.map(of_cluster)),
            (ON_HOLD, hold.map(|hold| of_cluster(&hold.state()))),
            (
                RUN_TWICE,
                self.application.reconciled.then(|| {
                    format!(
                        "the annotation {SKIP_RECONCILE}: \"true\" is missing, so Argo CD on the hub runs the Application too: \
                         add the annotation"
                    )
                }),
            ),
        ];
        let condition = |(kind, message): (&str, Option<String>)| {
            Some(Condition {
                kind: kind.into(),
                // As it is read back: users write parts of it, and a difference would be written for ever.
                message: bounded_line(&message?),
                since: None,
            })
        };
        notes.into_iter().filter_map(condition).collect()
    }
}

/// Returns the write that creates or updates a work. A work that is being deleted is not written, because the agent is deleting
/// the applied objects.
fn delivered(desired: &Desired, object_ref: ObjectRef, work: Option<&PullWorkRef<'_>>) -> Option<Write> {
    match work {
        None => Some(Write::create(&WORKS, object_ref, desired.object().clone())),
        Some(work) if work.pull_work.deleting || desired.is_stored(work.pull_work) => None,
        Some(work) => Some(Write::patch(
            &WORKS,
            work.object_ref.clone(),
            desired.patch(&work.pull_work.version),
        )),
    }
}

/// Returns true if the cluster compared the Application for the first time since its `spec` was written. Terraform's provider waits
/// for the time of that comparison.
fn is_first_comparison(pull: &pull::Application, desired: &MirroredStatus) -> bool {
    let times = pull.current.reconciled_at.zip(desired.reconciled_at);
    let written = pull.spec_written.zip(times);
    written.is_some_and(|(written, (before, after))| before <= written && written <= after)
}

fn new_conditions(before: &MirroredStatus, after: &MirroredStatus) -> Option<Event> {
    let is_known = |condition: &Condition| {
        let mut before = before.conditions.iter();
        before.any(|previous| previous.kind == condition.kind && previous.message == condition.message)
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
