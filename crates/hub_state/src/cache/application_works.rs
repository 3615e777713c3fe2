//! The works of Applications in the cache.

use super::shared_objects::{SharedObjects, find_common};
use super::store::{Indexed, Store, Update};
use super::{Cache, Cached, ReconcileRequest, WorkBefore};
use crate::model::{Kind, Work};
use jiff::Timestamp;
use ocm::health::HealthStatus;
use ocm::tracking::Tracking;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Indexed for Work {
    type Key = ObjectRef;
    /// The indices of works also need the resource tracking: see `Works`.
    type Indices = ();
}

impl Cached for Work {
    fn parse(_: Kind, _: &ObjectRef, text: &str, now: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(text, now)
    }

    fn store(cache: &mut Cache, kind: Kind) -> &mut Store<Self> {
        cache.works.store(kind)
    }

    /// Forgets the unreadable works that can be read now, or no longer exist. Returns the Applications to reconcile.
    fn before_update(cache: &mut Cache, kind: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        if kind != Kind::Works {
            return Vec::new();
        }
        let is_over = |object_ref: &ObjectRef| match update {
            Update::Set(changed, _) | Update::Deleted(changed) => changed == object_ref,
            Update::Listed(all) => !all.contains(object_ref),
        };
        let unreadable = cache.unreadable_works.keys();
        let over: Vec<_> = unreadable.filter(|object_ref| is_over(object_ref)).cloned().collect();
        for object_ref in &over {
            cache.unreadable_works.remove(object_ref);
        }
        over.iter()
            .flat_map(|object_ref| cache.carried_by(object_ref))
            .collect()
    }

    fn put(cache: &mut Cache, kind: Kind, key: &ObjectRef, mut value: Option<Self>) -> Vec<ReconcileRequest> {
        if let Some(work) = &mut value {
            cache.keep(&mut work.resources);
        }
        let before = cache.works.put(kind, key, value);
        cache.map(kind, key, Some(&before))
    }

    fn affected_by(cache: &Cache, kind: Kind, key: &ObjectRef) -> Vec<ReconcileRequest> {
        let work = cache.work(kind, key);
        let owner = work.and_then(|work| cache.works.owner(kind, key, work));
        let before = WorkBefore {
            existed: false,
            owners: owner.into_iter().collect(),
            refresh: Refresh::Unchanged,
        };
        cache.map(kind, key, Some(&before))
    }
}

impl Cache {
    /// Finds the objects that several works deliver to one managed cluster.
    pub fn with_shared_objects(mut self) -> Self {
        self.works.shared_objects = Some(SharedObjects::default());
        self
    }

    pub fn tracking(&self) -> &Tracking {
        &self.works.tracking
    }

    /// Returns a work or a ManifestWorkReplicaSet, if it may belong to an Application.
    pub fn work(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Work> {
        self.works.get(kind, object_ref)
    }

    /// Returns the works of an Application: those that Argo CD applied, and those that OCM generated from them.
    pub fn works_of(&self, application: &ObjectRef) -> impl Iterator<Item = (Kind, &ObjectRef, &Work)> {
        let works = &self.works;
        works.applied.get(application).flat_map(|(kind, object_ref)| {
            let set = (*kind == Kind::ReplicaSets).then(|| format!("{}.{}", object_ref.namespace, object_ref.name));
            let generated = set.map(|set| works.by_replica_set.get(set.as_str()));
            let generated = generated
                .into_iter()
                .flatten()
                .map(|object_ref| (Kind::Works, object_ref));
            let all = std::iter::once((*kind, object_ref)).chain(generated);
            all.filter_map(|(kind, object_ref)| Some((kind, object_ref, works.get(kind, object_ref)?)))
        })
    }

    pub fn applications_on(&self, cluster: &Arc<str>) -> BTreeSet<ObjectRef> {
        let works = self.works.on(cluster);
        let owners = works.filter_map(|(object_ref, work)| self.works.owner(Kind::Works, object_ref, work));
        owners.collect()
    }

    /// Returns the objects of a work that works of other Applications deliver to the same cluster, with the first two of these
    /// Applications.
    pub fn shared_objects(
        &self,
        object_ref: &ObjectRef,
        work: &Work,
        application: &ObjectRef,
    ) -> BTreeMap<ObjectRef, Vec<Box<str>>> {
        let mut by_application: BTreeMap<ObjectRef, Vec<Box<str>>> = BTreeMap::new();
        let Some(shared) = &self.works.shared_objects else {
            return by_application;
        };
        let cluster = &object_ref.namespace;
        let objects = work.objects.iter().filter(|object| shared.is_shared(cluster, object));
        let objects: Vec<Box<str>> = objects.cloned().collect();
        if objects.is_empty() {
            return by_application;
        }
        for (other, of_other) in self.works.on(cluster) {
            if by_application.len() > 1 {
                break;
            }
            let mut common = find_common(&objects, &of_other.objects).cloned().peekable();
            if other == object_ref || common.peek().is_none() {
                continue;
            }
            let owner = self.works.owner(Kind::Works, other, of_other);
            if let Some(owner) = owner.filter(|owner| owner != application) {
                by_application.entry(owner).or_default().extend(common);
            }
        }
        by_application
    }

    pub fn count(&self, health: HealthStatus) -> usize {
        self.works.counts_by_health[health as usize]
    }
}
