//! The state of an Application on its clusters.

use hub_state::{Availability, Cache, Kind, WorkState};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::hold::Hold;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeMap;

/// The prefix of the namespace and name of a ManifestWorkReplicaSet in a condition's message.
pub(super) const SET: &str = "ManifestWorkReplicaSet ";

#[derive(Debug, Default)]
pub(super) struct Fleet<'c> {
    pub(super) clusters: BTreeMap<String, ClusterStatus>,
    /// The state of its ManifestWorkReplicaSets, by `NAMESPACE/NAME`.
    pub(super) sets: BTreeMap<String, &'c WorkState>,
    pub(super) works: usize,
    pub(super) objects: usize,
    pub(super) deleting: bool,
}

#[derive(Debug)]
pub(super) struct ClusterStatus {
    pub(super) health: HealthStatus,
    pub(super) availability: Availability,
    /// The hold of the cluster, for people.
    pub(super) hold: Option<String>,
    pub(super) applied: bool,
    pub(super) refused: Vec<String>,
    pub(super) degraded: Vec<String>,
    pub(super) retried: Vec<String>,
    pub(super) overdue: Vec<String>,
    /// The objects that other Applications deliver too, with these.
    pub(super) shared: BTreeMap<ObjectRef, Vec<Box<str>>>,
}

impl ClusterStatus {
    /// Returns true if the final health is not known yet.
    pub(super) fn is_progressing(&self) -> bool {
        matches!(
            self.health,
            HealthStatus::Waiting | HealthStatus::Progressing | HealthStatus::Unknown
        )
    }
}

impl<'c> Fleet<'c> {
    pub(super) fn from_cache(cache: &'c Cache, application: &ObjectRef, deleting: bool, now: Timestamp) -> Self {
        let mut fleet = Self {
            deleting,
            ..Self::default()
        };
        for (kind, object_ref, work) in cache.works_of(application) {
            let state = &work.state;
            fleet.works = fleet.works.saturating_add(1);
            if kind == Kind::ReplicaSets {
                fleet.sets.insert(object_ref.to_string(), state);
                continue;
            }
            fleet.objects = fleet.objects.saturating_add(state.objects);
            let cluster = fleet.clusters.entry(object_ref.namespace.to_string());
            let cluster = cluster.or_insert_with(|| ClusterStatus {
                health: HealthStatus::Healthy,
                availability: cache.availability(&object_ref.namespace),
                hold: cache.hold(&object_ref.namespace, now).map(Hold::state),
                applied: true,
                refused: Vec::new(),
                degraded: Vec::new(),
                retried: Vec::new(),
                overdue: Vec::new(),
                shared: BTreeMap::new(),
            });
            cluster.health = cluster.health.min(state.health);
            cluster.applied &= state.applied;
            cluster.refused.extend(state.refused.clone());
            cluster.degraded.extend(state.degraded.clone());
            cluster.retried.extend(state.retried.clone());
            cluster
                .overdue
                .extend(cache.overdue(object_ref, work).map(str::to_owned));
            for (other, objects) in cache.shared_objects(object_ref, work, application) {
                cluster.shared.entry(other).or_default().extend(objects);
            }
        }
        fleet
    }

    pub(super) fn is_empty(&self) -> bool {
        self.works == 0
    }

    /// Returns true if the fleet contains the subject of a condition: a cluster or a ManifestWorkReplicaSet.
    pub(super) fn has(&self, subject: &str) -> bool {
        match subject.strip_prefix(SET) {
            Some(set) => self.sets.contains_key(set),
            None => self.clusters.contains_key(subject),
        }
    }
}
