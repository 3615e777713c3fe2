//! The cached works, the Applications that own them, and the times at which their health changes by time alone.

use super::shared_objects::{SharedObjects, find_common};
use super::store::{Index, Store, shared};
use crate::model::{Kind, Marks, Work, WorkState};
use crate::pull::PullWork;
use crate::pull::work_name::{may_be_work_of, stem};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::names::WorkName;
use ocm::tracking::Tracking;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A work before a change.
#[derive(Debug)]
pub struct WorkBefore {
    pub existed: bool,
    /// The Applications that owned the work or own it now; none if nothing changed that they show.
    pub owners: BTreeSet<ObjectRef>,
    pub refresh: Refresh,
}

#[derive(Debug, Default)]
pub(super) struct Works {
    argocd: Arc<str>,
    pub(super) tracking: Tracking,
    /// The ManifestWorks, whose namespaces are those of their managed clusters.
    by_cluster: Store<Work>,
    sets: Store<Work>,
    /// The works that Argo CD applied for each Application.
    pub(super) applied: Index<ObjectRef, (Kind, ObjectRef)>,
    /// The works that OCM generated from each ManifestWorkReplicaSet, by `NAMESPACE.NAME`.
    pub(super) by_replica_set: Index<Box<str>, ObjectRef>,
    /// The works that contain or claim an Application, by the stem of their names.
    by_stem: Index<Arc<str>, ObjectRef>,
    health_deadlines: BTreeSet<(Timestamp, Kind, ObjectRef)>,
    /// The objects that several works deliver; none if no controller reports them.
    pub(super) shared_objects: Option<SharedObjects>,
    /// The number of works of Applications by health, in the order of [`HealthStatus::ALL`].
    pub(super) counts_by_health: [usize; HealthStatus::ALL.len()],
}

impl Works {
    pub(super) fn new(argocd: &str) -> Self {
        Self {
            argocd: argocd.into(),
            ..Self::default()
        }
    }

    /// Returns the works that contain or claim an Application and whose names have this stem.
    pub(super) fn with_stem(&self, stem: &str) -> impl Iterator<Item = (&ObjectRef, &PullWork)> {
        let works = self.by_stem.get(stem);
        works.filter_map(|object_ref| Some((object_ref, self.by_cluster.get(object_ref)?.pull_work.as_deref()?)))
    }

    pub(super) fn get(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Work> {
        let store = if kind == Kind::ReplicaSets {
            &self.sets
        } else {
            &self.by_cluster
        };
        store.get(object_ref)
    }

    pub(super) fn store(&mut self, kind: Kind) -> &mut Store<Work> {
        match kind {
            Kind::ReplicaSets => &mut self.sets,
            _ => &mut self.by_cluster,
        }
    }

    pub(super) fn next_health_deadline(&self) -> Option<Timestamp> {
        self.health_deadlines.first().map(|(at, ..)| *at)
    }

    /// Advances the time, and returns the works whose health changed by time alone.
    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<(Kind, ObjectRef, WorkBefore)> {
        let mut all = Vec::new();
        while self.next_health_deadline().is_some_and(|next| next <= now) {
            let Some((_, kind, object_ref)) = self.health_deadlines.pop_first() else {
                break;
            };
            let Some(mut work) = self.get(kind, &object_ref).cloned() else {
                continue;
            };
            let was_message = work.state.message.clone();
            while work.health_changes.first().is_some_and(|(at, _)| *at <= now) {
                work.state = work.health_changes.remove(0).1;
            }
            let is_same_message = was_message == work.state.message;
            let mut before = self.put(kind, &object_ref, Some(work));
            // Time alone is no event that makes Argo CD refresh.
            if before.refresh != Refresh::Unchanged || !is_same_message {
                before.refresh = Refresh::Needed;
            }
            all.push((kind, object_ref, before));
        }
        all
    }

    /// Stores or removes a work, and returns its previous state.
    pub(super) fn put(&mut self, kind: Kind, object_ref: &ObjectRef, work: Option<Work>) -> WorkBefore {
        let (before, _) = self.store(kind).put(object_ref, None);
        let was = before
            .as_ref()
            .and_then(|work| self.link(kind, object_ref, work, false));
        let refresh = refresh(before.as_ref(), work.as_ref());
        let same = before.as_ref().zip(work.as_ref()).is_some_and(|(before, work)| {
            before.state == work.state && before.resources == work.resources && !work.carries_application()
        });
        let mut owner = None;
        if let Some(mut work) = work {
            if claimed_by(object_ref, &work).is_some() {
                // The marks of Argo CD do not count on works of the basic pull model.
                work.marks = Marks::default();
            }
            match &mut self.shared_objects {
                Some(shared) => shared.keep(&mut work.objects),
                None => work.objects = Arc::default(),
            }
            owner = self.link(kind, object_ref, &work, true);
            self.store(kind).put(object_ref, Some(work));
        }
        let mut owners: BTreeSet<ObjectRef> = if same && was == owner {
            BTreeSet::new()
        } else {
            was.into_iter().chain(owner).collect()
        };
        owners.extend(self.update_shared_objects(kind, object_ref, before.as_ref()));
        WorkBefore {
            existed: before.is_some(),
            owners,
            refresh,
        }
    }

    /// Counts the objects of a changed work, and returns the Applications that deliver some of them too.
    fn update_shared_objects(
        &mut self,
        kind: Kind,
        object_ref: &ObjectRef,
        before: Option<&Work>,
    ) -> BTreeSet<ObjectRef> {
        let after = self.get(kind, object_ref).map(|work| Arc::clone(&work.objects));
        let after = after.as_deref().unwrap_or_default();
        let before = before.map_or(&[][..], |before| &*before.objects);
        let cluster = &object_ref.namespace;
        let Some(shared) = self.shared_objects.as_mut().filter(|_| !std::ptr::eq(before, after)) else {
            return BTreeSet::new();
        };
        let objects = shared.update(cluster, before, after);
        if objects.is_empty() {
            return BTreeSet::new();
        }
        let works = self.on(cluster);
        let works = works.filter(|(_, work)| find_common(&objects, &work.objects).next().is_some());
        works
            .filter_map(|(other, work)| self.owner(Kind::Works, other, work))
            .collect()
    }

    /// Adds a work to the indices and the counts, or removes it. Returns its owner.
    fn link(&mut self, kind: Kind, object_ref: &ObjectRef, work: &Work, is_added: bool) -> Option<ObjectRef> {
        let owner = self.owner(kind, object_ref, work);
        if let Some((at, _)) = work.health_changes.first() {
            let deadline = (*at, kind, object_ref.clone());
            if is_added {
                self.health_deadlines.insert(deadline);
            } else {
                self.health_deadlines.remove(&deadline);
            }
        }
        let is_generated = work.set.as_ref().is_some_and(|set| is_made_of(set, &object_ref.name));
        if let Some(set) = &work.set {
            if is_generated {
                self.by_replica_set.set(set.clone(), object_ref.clone(), is_added);
            }
        } else {
            if let Some(pull_work) = &work.pull_work {
                let stem = shared(stem(&object_ref.name), &pull_work.name);
                self.by_stem.set(stem, object_ref.clone(), is_added);
            }
            if let Some(owner) = owner.as_ref().filter(|_| claimed_by(object_ref, work).is_none()) {
                self.applied.set(owner.clone(), (kind, object_ref.clone()), is_added);
            }
        }
        // An Application has caused the work, and not an add-on. The set of a generated work may not be in the cache.
        if is_generated || work.set.is_none() && owner.is_some() {
            let count = &mut self.counts_by_health[work.state.health as usize];
            *count = count.saturating_add_signed(if is_added { 1 } else { -1 });
        }
        owner
    }

    pub(super) fn owner(&self, kind: Kind, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        match &work.set {
            Some(set) if is_made_of(set, &object_ref.name) => {
                let (namespace, name) = set.split_once('.')?;
                let set = ObjectRef::new(namespace, name);
                self.applied_by(Kind::ReplicaSets, &set, self.sets.get(&set)?)
            }
            Some(_) => None,
            None => claimed_by(object_ref, work)
                .cloned()
                .or_else(|| self.applied_by(kind, object_ref, work)),
        }
    }

    /// Returns the Application that owns a work because Argo CD applied it. Tracking marks count only on a work with a name that
    /// this Application's works have: a cluster's agent may write the marks of its works, but can neither create nor rename
    /// works.
    fn applied_by(&self, kind: Kind, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        let instance = work.application(&self.tracking, kind, object_ref)?;
        let name: WorkName = instance.parse().ok()?;
        let is_its = match kind {
            Kind::ReplicaSets => {
                name.is_of_set(&object_ref.name, &object_ref.namespace) || name.may_be_set_of_source(&object_ref.name)
            }
            _ => name.is_of(&object_ref.name),
        };
        if !is_its {
            return None;
        }
        Some(match instance.split_once('_') {
            Some((namespace, name)) => ObjectRef::new(namespace, name),
            None => ObjectRef {
                namespace: Arc::clone(&self.argocd),
                name: instance.into(),
            },
        })
    }

    pub(super) fn on(&self, cluster: &Arc<str>) -> impl Iterator<Item = (&ObjectRef, &Work)> {
        self.by_cluster.in_namespace(cluster)
    }

    /// Sets how Argo CD tracks resources, which can change the owner of each work. Returns the previous and new owners.
    pub(super) fn set_tracking(&mut self, tracking: Tracking) -> BTreeSet<ObjectRef> {
        let mut concerned: BTreeSet<ObjectRef> = self.applied.properties().cloned().collect();
        self.applied = Index::default();
        self.tracking = tracking;
        self.by_replica_set = Index::default();
        self.by_stem = Index::default();
        self.health_deadlines.clear();
        self.counts_by_health = Default::default();
        for kind in [Kind::Works, Kind::ReplicaSets] {
            let object_refs: Vec<_> = self.store(kind).keys().cloned().collect();
            for object_ref in object_refs {
                let work = self.get(kind, &object_ref).cloned();
                concerned.extend(work.and_then(|work| self.link(kind, &object_ref, &work, true)));
            }
        }
        concerned
    }
}

/// Returns the Application that a work of the basic pull model claims to carry, if it has a name that such works have.
pub(super) fn claimed<'w>(object_ref: &ObjectRef, pull_work: &'w PullWork) -> Option<&'w ObjectRef> {
    let claim = pull_work.claim.as_ref()?;
    may_be_work_of(&object_ref.name, &claim.name).then_some(claim)
}

fn claimed_by<'w>(object_ref: &ObjectRef, work: &'w Work) -> Option<&'w ObjectRef> {
    claimed(object_ref, work.pull_work.as_deref()?)
}

/// Returns true if OCM gives this name to works of the ManifestWorkReplicaSet called `NAMESPACE.NAME`: the name of the set, and
/// from OCM 1.3 on the name, cut to 58 characters by the API server, with five random characters.
fn is_made_of(set: &str, work: &str) -> bool {
    const RANDOM: usize = 5;
    const BASE_MAX: usize = 58;
    let Some((_, name)) = set.split_once('.') else {
        return false;
    };
    let generated = || {
        let base = work.get(..work.len().checked_sub(RANDOM)?)?;
        Some(base == name || base.len() == BASE_MAX && name.starts_with(base))
    };
    work == name || generated().unwrap_or_default()
}

/// Returns how Argo CD reacts to the change: it refreshes an Application when the health status of one of its objects changes, but
/// not when only the health message changes (`skipResourceUpdate` in its `controller/cache`). The works that OCM generates
/// from a set are no objects of Argo CD, and works that appear or disappear were written by Argo CD itself.
fn refresh(before: Option<&Work>, after: Option<&Work>) -> Refresh {
    let (Some(before), Some(after)) = (before, after.filter(|after| after.set.is_none())) else {
        return Refresh::Unchanged;
    };
    let [before, after]: [&WorkState; 2] = [&before.state, &after.state];
    if !before.is_same_in_argo_cd(after) {
        Refresh::Done
    } else if before.message != after.message {
        Refresh::Needed
    } else {
        Refresh::Unchanged
    }
}
