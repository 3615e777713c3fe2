//! The model of a work: its health and its owner.

use super::{Kind, Labels};
use crate::json::{self, at, entry, items, labels};
use crate::pull::PullWork;
use crate::report::Resource;
use jiff::Timestamp;
use manifest::value::Value;
use ocm::health::{self, HealthStatus, ObjectStatus, WorkStatus};
use ocm::ownership::OF_REPLICA_SET;
use ocm::tracking::{INSTALLATION_ID, ObjectIdentity, TRACKING_ID, Tracking, TrackingMarks};
use ocm::work as works;
use primitives::object_ref::ObjectRef;
use runtime::text::{TEXT_MAX, bounded};
use std::sync::Arc;

/// The maximum length of the messages of all objects in a text, in bytes: leaves room for the names in a bounded text.
const MESSAGES_MAX: usize = TEXT_MAX / 4 * 3;

/// A work that may belong to an Application.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The tracking marks that identify the owner.
    pub(crate) marks: Marks,
    /// The ManifestWorkReplicaSet from which OCM generated the work, as `NAMESPACE.NAME`.
    pub set: Option<Box<str>>,
    /// The Application that it contains or claims to carry. A work of the plugin may contain one, too.
    pub pull_work: Option<Box<PullWork>>,
    pub state: WorkState,
    /// The later health of the work by time alone, in the order of time.
    pub health_changes: Vec<(Timestamp, WorkState)>,
    /// The names of its objects, sorted, to find those that another work delivers too: none while it is deleted. A Namespace is
    /// left out, because several Applications may create the one that they share.
    pub objects: Arc<[Box<str>]>,
    /// The resources of the work in the agent's status; not the resources of an Application that the work carries.
    pub resources: Arc<[Resource]>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Marks {
    tracking_id: Option<Box<str>>,
    installation_id: Option<Box<str>>,
    labels: Labels,
}

/// The health of a work, in the words of its health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkState {
    pub health: HealthStatus,
    /// True if the agent has applied the work completely in its present generation.
    pub applied: bool,
    /// The number of objects; zero for a ManifestWorkReplicaSet.
    pub objects: usize,
    /// The objects that the agent cannot apply, and the reasons.
    pub refused: Option<String>,
    /// Other problems.
    pub degraded: Option<String>,
    /// The objects that the agent cannot apply yet, and the reasons: it retries.
    pub retried: Option<String>,
    /// The step that has been outstanding for minutes.
    pub overdue: Option<String>,
    /// The message that Argo CD shows.
    pub message: String,
}

impl Work {
    /// Reads the JSON of a work and evaluates its health; none if no Application can own it.
    pub fn from_json(text: &str, now: Timestamp) -> Result<Option<Self>, String> {
        let work = json::parse(text)?;
        let pull_work = PullWork::from_json(&work)?.map(Box::new);
        let annotated = |name| entry(&work, "annotations", name).map(Into::into);
        let marks = Marks {
            tracking_id: annotated(TRACKING_ID),
            installation_id: annotated(INSTALLATION_ID),
            labels: Labels::from_sorted(labels(&work)),
        };
        if marks.tracking_id.is_none() && labels(&work).next().is_none() && pull_work.is_none() {
            return Ok(None);
        }
        let timeline = health::health_timeline(&work, now)?;
        let mut states = timeline
            .iter()
            .map(|(at, status)| (*at, WorkState::from_status(status)));
        let (_, state) = states.next().ok_or_else(|| "no state".to_owned())?;
        let carries_application = pull_work.as_ref().is_some_and(|pull_work| pull_work.claim.is_some());
        let is_deleting = at(&work, "/metadata/deletionTimestamp").is_some();
        let objects = if is_deleting || carries_application {
            Arc::default()
        } else {
            objects(&work)
        };
        Ok(Some(Self {
            set: entry(&work, "labels", OF_REPLICA_SET).map(Into::into),
            marks,
            state,
            health_changes: states.collect(),
            objects,
            resources: if carries_application {
                Arc::default()
            } else {
                let manifests = items(&work, "/status/resourceStatus/manifests").iter();
                Resource::sorted(manifests.filter_map(|manifest| at(manifest, "/resourceMeta")))
            },
            pull_work,
        }))
    }

    /// Returns true if the work claims to carry an Application of the basic pull model.
    pub fn carries_application(&self) -> bool {
        self.pull_work
            .as_ref()
            .is_some_and(|pull_work| pull_work.claim.is_some())
    }

    /// Returns the name of the Application that owns the work, in the format of Argo CD.
    pub fn application(&self, tracking: &Tracking, kind: Kind, object_ref: &ObjectRef) -> Option<&str> {
        // Works that OCM generates from a set have the labels of the set's template, and belong to the set.
        if self.set.is_some() {
            return None;
        }
        let claim = TrackingMarks {
            tracking_id: self.marks.tracking_id.as_deref(),
            installation_id: self.marks.installation_id.as_deref(),
            label: self.marks.labels.get(tracking.label()),
        };
        let identity = ObjectIdentity {
            group: works::GROUP,
            kind: kind.resource().kind,
            namespace: &object_ref.namespace,
            name: &object_ref.name,
        };
        tracking.application(&claim, &identity)
    }
}

/// Returns the names of the objects of a work, sorted. Ignores the agent's status, which could name objects of other Applications.
fn objects(work: &Value<'_>) -> Arc<[Box<str>]> {
    let objects = items(work, "/spec/workload/manifests").iter().map(works::key);
    let identified = objects.filter(|key| !key.kind.kind.is_empty() && !key.name.is_empty());
    let identified = identified.filter(|key| !key.kind.is("", "Namespace"));
    let mut names: Vec<Box<str>> = identified.map(|key| key.to_string().into()).collect();
    names.sort_unstable();
    names.dedup();
    names.into()
}

impl WorkState {
    fn from_status(status: &WorkStatus) -> Self {
        let is_ill = |object: &&ObjectStatus| is_bad(object.health);
        let is_refused = |object: &&ObjectStatus| is_ill(object) && object.applied == Some(false);
        // A message about a work whose objects are healthy: the agent cannot apply it.
        let whole = Some(&status.message)
            .filter(|message| is_bad(status.health) && !message.is_empty())
            .cloned();
        let (refused, degraded) = match whole {
            Some(message) if status.as_a_whole => (None, Some(message)),
            Some(message) => (Some(message), None),
            None => (
                status.listed(ObjectStatus::full_name, MESSAGES_MAX, is_refused),
                status.listed(ObjectStatus::short_name, MESSAGES_MAX, |object| {
                    is_ill(object) && !is_refused(object)
                }),
            ),
        };
        let is_retried = |object: &&ObjectStatus| !is_ill(object) && object.applied == Some(false);
        let retried = status.listed(ObjectStatus::full_name, MESSAGES_MAX, is_retried);
        let has_applied = |object: &ObjectStatus| object.applied == Some(true);
        Self {
            health: status.health,
            applied: status.health != HealthStatus::Waiting
                && !(status.as_a_whole && status.health == HealthStatus::Unknown)
                && refused.is_none()
                && status
                    .objects
                    .iter()
                    .all(|object| status.as_a_whole || has_applied(object)),
            objects: status.objects.len(),
            refused: refused.map(bounded),
            degraded: degraded.map(bounded),
            retried: retried.map(bounded),
            overdue: status.overdue.clone().map(bounded),
            message: bounded(status.summary()),
        }
    }

    pub fn is_same_in_argo_cd(&self, other: &Self) -> bool {
        self.health.in_argo_cd() == other.health.in_argo_cd()
    }
}

/// Returns true if the health counts as degraded in Argo CD.
fn is_bad(health: HealthStatus) -> bool {
    health.in_argo_cd() == HealthStatus::Degraded.in_argo_cd()
}
