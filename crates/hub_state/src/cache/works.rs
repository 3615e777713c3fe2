//! The cached works, the Applications that own them, and the times at which their health changes by time alone.

use super::shared_objects::SharedObjects;
use crate::model::{Work, WorkKind, WorkState};
use crate::pull::PullWork;
use crate::pull::work_name::{may_be_work_of, stem};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::names::WorkName;
use ocm::tracking::Tracking;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use runtime::store::{Index, Store, shared};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A work before a change.
#[derive(Debug)]
pub struct WorkBefore {
    /// True if the work existed.
    pub existed: bool,
    /// The Applications that owned the work or own it now; none if nothing changed that they show.
    pub owners: BTreeSet<ObjectRef>,
    /// The reaction of Argo CD to the change.
    pub refresh: Refresh,
}

/// The works on the hub.
#[derive(Debug)]
pub(super) struct Works {
    /// The namespace of Argo CD.
    argocd: Arc<str>,
    tracking: Tracking,
    /// The works of each kind.
    all: [Store<Work>; 2],
    /// The works that Argo CD applied for each Application.
    applied: Index<ObjectRef, (WorkKind, ObjectRef)>,
    /// The works that OCM generated from each ManifestWorkReplicaSet, by `NAMESPACE.NAME`.
    by_replica_set: Index<Box<str>, ObjectRef>,
    /// The works that contain or claim an Application, by the stem of their names.
    by_stem: Index<Arc<str>, ObjectRef>,
    /// The times at which the health of works changes by time alone.
    health_deadlines: BTreeSet<(Timestamp, WorkKind, ObjectRef)>,
    /// The objects that several works deliver; none if no controller reports them.
    shared_objects: Option<SharedObjects>,
    /// The number of works of Applications by health, in the order of [`HealthStatus::ALL`].
    counts_by_health: [usize; HealthStatus::ALL.len()],
}

impl Works {
    pub(super) fn new(argocd: &str) -> Self {
        Self {
            argocd: argocd.into(),
            tracking: Tracking::configured(|_| None),
            all: [Store::default(), Store::default()],
            applied: Index::default(),
            by_replica_set: Index::default(),
            by_stem: Index::default(),
            health_deadlines: BTreeSet::new(),
            shared_objects: None,
            counts_by_health: [0; HealthStatus::ALL.len()],
        }
    }

    /// Returns the works of an Application: those that Argo CD applied, and those that OCM generated from them.
    pub(super) fn of_application(
        &self,
        application: &ObjectRef,
    ) -> impl Iterator<Item = (WorkKind, &ObjectRef, &Work)> {
        let applied = self.applied.get(application);
        applied.flat_map(|(kind, object_ref)| {
            let by_replica_set =
                (*kind == WorkKind::Set).then(|| self.by_replica_set.get(set_name(object_ref).as_str()));
            let by_replica_set = by_replica_set
                .into_iter()
                .flatten()
                .map(|object_ref| (WorkKind::Work, object_ref));
            let all = std::iter::once((*kind, object_ref)).chain(by_replica_set);
            all.filter_map(|(kind, object_ref)| Some((kind, object_ref, self.get(kind, object_ref)?)))
        })
    }

    /// Finds objects that several works deliver.
    pub(super) fn find_shared_objects(&mut self) {
        self.shared_objects = Some(SharedObjects::default());
    }

    /// Returns the objects of a work that works of other Applications deliver to the same cluster, with the first two of these
    /// Applications.
    pub(super) fn shared_objects(
        &self,
        object_ref: &ObjectRef,
        work: &Work,
        application: &ObjectRef,
    ) -> BTreeMap<ObjectRef, Vec<Box<str>>> {
        let mut by_application: BTreeMap<ObjectRef, Vec<Box<str>>> = BTreeMap::new();
        let Some(shared) = &self.shared_objects else {
            return by_application;
        };
        let cluster = &object_ref.namespace;
        let objects = work.objects.iter().filter(|it| shared.is_shared(cluster, it));
        let objects: Vec<_> = objects.collect();
        if objects.is_empty() {
            return by_application;
        }
        for (other, of_other) in self.works_on(cluster) {
            if by_application.len() > 1 {
                break;
            }
            let common = objects.iter().filter(|it| of_other.objects.binary_search(it).is_ok());
            let mut common = common.map(|it| (*it).clone()).peekable();
            if other == object_ref || common.peek().is_none() {
                continue;
            }
            if let Some(owner) = self.owner_of_work(other, of_other).filter(|owner| owner != application) {
                by_application.entry(owner).or_default().extend(common);
            }
        }
        by_application
    }

    /// Returns the works that contain or claim an Application and whose names have this stem.
    pub(super) fn with_stem(&self, stem: &str) -> impl Iterator<Item = (&ObjectRef, &PullWork)> {
        let works = self.by_stem.get(stem);
        works.filter_map(|object_ref| Some((object_ref, self.get(WorkKind::Work, object_ref)?.pull_work.as_deref()?)))
    }

    /// Returns a work.
    pub(super) fn get(&self, kind: WorkKind, object_ref: &ObjectRef) -> Option<&Work> {
        self.all[kind as usize].get(object_ref)
    }

    /// Returns how Argo CD tracks resources.
    pub(super) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    /// Returns the number of works with this health.
    pub(super) fn count(&self, health: HealthStatus) -> usize {
        self.counts_by_health[health as usize]
    }

    /// Returns the next time at which the health of a work changes by time alone.
    pub(super) fn next_health_deadline(&self) -> Option<Timestamp> {
        self.health_deadlines.first().map(|(at, ..)| *at)
    }

    /// Returns the works of a kind.
    pub(super) fn store(&mut self, kind: WorkKind) -> &mut Store<Work> {
        &mut self.all[kind as usize]
    }

    /// Advances the time, and returns the works whose health changed by time alone.
    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<(WorkKind, ObjectRef, WorkBefore)> {
        let mut all = Vec::new();
        while self.next_health_deadline().is_some_and(|next| next <= now) {
            let Some((_, kind, object_ref)) = self.health_deadlines.pop_first() else {
                break;
            };
            let Some(mut work) = self.get(kind, &object_ref).cloned() else {
                continue;
            };
            while work.health_changes.first().is_some_and(|(at, _)| *at <= now) {
                work.state = work.health_changes.remove(0).1;
            }
            let message = work.state.message.clone();
            let was_message = self.get(kind, &object_ref).map(|before| before.state.message.clone());
            let before = self.put(kind, &object_ref, Some(work));
            // Time alone is no event that makes Argo CD refresh.
            let refresh = match before.refresh {
                Refresh::Unchanged if was_message == Some(message) => Refresh::Unchanged,
                _ => Refresh::Needed,
            };
            all.push((kind, object_ref, WorkBefore { refresh, ..before }));
        }
        all
    }

    /// Stores or removes a work, and returns its previous state.
    pub(super) fn put(&mut self, kind: WorkKind, object_ref: &ObjectRef, work: Option<Work>) -> WorkBefore {
        let (before, _) = self.all[kind as usize].put(object_ref, None);
        let mut was = None;
        if let Some(before) = &before {
            was = self.unlink(kind, object_ref, before);
            if is_of_application(object_ref, before, was.as_ref()) {
                let count = &mut self.counts_by_health[before.state.health as usize];
                *count = count.saturating_sub(1);
            }
        }
        let refresh = refresh(before.as_ref(), work.as_ref());
        let same = before.as_ref().zip(work.as_ref()).is_some_and(|(before, work)| {
            before.state == work.state && before.resources == work.resources && work.pull_work.is_none()
        });
        let mut is = None;
        if let Some(mut work) = work {
            if claimed_by(object_ref, &work).is_some() {
                work.forget_marks();
            }
            match &mut self.shared_objects {
                Some(shared) => shared.keep(&mut work.objects),
                None => work.objects = Arc::default(),
            }
            is = self.link(kind, object_ref, &work);
            if is_of_application(object_ref, &work, is.as_ref()) {
                let count = &mut self.counts_by_health[work.state.health as usize];
                *count = count.saturating_add(1);
            }
            self.all[kind as usize].put(object_ref, Some(work));
        }
        let mut owners: BTreeSet<ObjectRef> = if same && was == is {
            BTreeSet::new()
        } else {
            was.into_iter().chain(is).collect()
        };
        owners.extend(self.update_shared_objects(kind, object_ref, before.as_ref()));
        WorkBefore {
            existed: before.is_some(),
            owners,
            refresh,
        }
    }

    /// Returns what a mapper sees of a work as if it were new.
    pub(super) fn as_new(&self, kind: WorkKind, object_ref: &ObjectRef) -> WorkBefore {
        let work = self.get(kind, object_ref);
        let owner = work.and_then(|work| match kind {
            WorkKind::Work => self.owner_of_work(object_ref, work),
            WorkKind::Set => self.owner(kind, object_ref, work),
        });
        WorkBefore {
            existed: false,
            owners: owner.into_iter().collect(),
            refresh: Refresh::Unchanged,
        }
    }

    /// Counts the objects of a changed work, and returns the Applications that deliver some of them too.
    fn update_shared_objects(
        &mut self,
        kind: WorkKind,
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
        let works = self.works_on(cluster);
        let works = works.filter(|(_, work)| objects.iter().any(|it| work.objects.binary_search(it).is_ok()));
        works
            .filter_map(|(other, work)| self.owner_of_work(other, work))
            .collect()
    }

    /// Records the owner of a work.
    fn link(&mut self, kind: WorkKind, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        if let Some((at, _)) = work.health_changes.first() {
            self.health_deadlines.insert((*at, kind, object_ref.clone()));
        }
        if let Some(set) = &work.set {
            if !is_made_of(set, &object_ref.name) {
                return None;
            }
            self.by_replica_set.insert(set.clone(), object_ref.clone());
            return self.owner_of_set(set);
        }
        if let Some(pull_work) = &work.pull_work {
            self.by_stem
                .insert(shared(stem(&object_ref.name), &pull_work.name), object_ref.clone());
        }
        if let Some(application) = claimed_by(object_ref, work) {
            return Some(application.clone());
        }
        let application = self.owner(kind, object_ref, work)?;
        self.applied.insert(application.clone(), (kind, object_ref.clone()));
        Some(application)
    }

    fn unlink(&mut self, kind: WorkKind, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        if let Some((at, _)) = work.health_changes.first() {
            self.health_deadlines.remove(&(*at, kind, object_ref.clone()));
        }
        if let Some(set) = &work.set {
            let owner = self.owner_of_set(set);
            self.by_replica_set.remove(set, object_ref);
            return owner.filter(|_| is_made_of(set, &object_ref.name));
        }
        if work.pull_work.is_some() {
            self.by_stem.remove(stem(&object_ref.name), object_ref);
        }
        if let Some(application) = claimed_by(object_ref, work) {
            return Some(application.clone());
        }
        let application = self.owner(kind, object_ref, work)?;
        self.applied.remove(&application, &(kind, object_ref.clone()));
        Some(application)
    }

    /// Returns the Application that owns a work because Argo CD applied it. Tracking marks count only on a work with a name that
    /// this Application's works have: a cluster's agent may write the marks of its works, but can neither create nor rename
    /// works.
    fn owner(&self, kind: WorkKind, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        let instance = work.application(&self.tracking, kind, object_ref)?;
        let name: WorkName = instance.parse().ok()?;
        let is_its = match kind {
            WorkKind::Work => name.is_of(&object_ref.name),
            WorkKind::Set => name.is_of_set(&object_ref.name, &object_ref.namespace),
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

    fn owner_of_set(&self, set: &str) -> Option<ObjectRef> {
        let (namespace, name) = set.split_once('.')?;
        let object_ref = ObjectRef::new(namespace, name);
        let work = self.get(WorkKind::Set, &object_ref)?;
        self.owner(WorkKind::Set, &object_ref, work)
    }

    /// Returns the Applications that own the works for a managed cluster.
    pub(super) fn on(&self, cluster: &Arc<str>) -> BTreeSet<ObjectRef> {
        let works = self.works_on(cluster);
        works
            .filter_map(|(object_ref, work)| self.owner_of_work(object_ref, work))
            .collect()
    }

    /// Returns the works for a managed cluster.
    fn works_on(&self, cluster: &Arc<str>) -> impl Iterator<Item = (&ObjectRef, &Work)> {
        let works = self.all[WorkKind::Work as usize].from(ObjectRef::first_of(cluster));
        works.take_while(move |(object_ref, _)| object_ref.namespace == *cluster)
    }

    /// Returns the Application that owns a work for a managed cluster.
    fn owner_of_work(&self, object_ref: &ObjectRef, work: &Work) -> Option<ObjectRef> {
        match &work.set {
            Some(set) => self.owner_of_set(set).filter(|_| is_made_of(set, &object_ref.name)),
            None => claimed_by(object_ref, work)
                .cloned()
                .or_else(|| self.owner(WorkKind::Work, object_ref, work)),
        }
    }

    /// Sets how Argo CD tracks resources, which can change the owner of each work. Returns the previous and new owners.
    pub(super) fn set_tracking(&mut self, tracking: Tracking) -> BTreeSet<ObjectRef> {
        if self.tracking == tracking {
            return BTreeSet::new();
        }
        let mut concerned: BTreeSet<ObjectRef> = std::mem::take(&mut self.applied).into_properties().collect();
        self.tracking = tracking;
        self.by_replica_set = Index::default();
        self.by_stem = Index::default();
        self.health_deadlines.clear();
        self.counts_by_health = Default::default();
        for kind in [WorkKind::Work, WorkKind::Set] {
            let object_refs: Vec<_> = self.all[kind as usize].keys().cloned().collect();
            for object_ref in object_refs {
                let Some(work) = self.get(kind, &object_ref).cloned() else {
                    continue;
                };
                let owner = self.link(kind, &object_ref, &work);
                if is_of_application(&object_ref, &work, owner.as_ref()) {
                    let count = &mut self.counts_by_health[work.state.health as usize];
                    *count = count.saturating_add(1);
                }
                concerned.extend(owner);
            }
        }
        concerned
    }
}

/// Returns true if an Application has caused a work, and not an add-on. The set of a generated work may not be in the cache.
fn is_of_application(object_ref: &ObjectRef, work: &Work, owner: Option<&ObjectRef>) -> bool {
    match &work.set {
        Some(set) => is_made_of(set, &object_ref.name),
        None => owner.is_some(),
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

fn set_name(object_ref: &ObjectRef) -> String {
    format!("{}.{}", object_ref.namespace, object_ref.name)
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
