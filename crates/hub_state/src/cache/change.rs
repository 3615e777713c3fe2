//! The changes of the cache, and what a mapper sees of them.

use super::store::{Indexed, Store, Update};
use super::{Cache, ReconcileRequest, WorkBefore};
use crate::model::{Availability, Cluster, Kind, PlacementDecision};
use jiff::Timestamp;
use primitives::object_ref::ObjectRef;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub trait Cached: Indexed<Key: ObjectKey> + 'static {
    /// Reads the JSON of an object; none if the cache does not need it.
    fn parse(kind: Kind, key: &Self::Key, text: &str, now: Timestamp) -> Result<Option<Self>, String>;

    fn store(cache: &mut Cache, kind: Kind) -> &mut Store<Self>;

    /// Records what an update says about the kind as a whole. Returns the objects to reconcile.
    fn before_update(_: &mut Cache, _: Kind, _: &Update<Self::Key, Self>) -> Vec<ReconcileRequest> {
        Vec::new()
    }

    fn put(cache: &mut Cache, kind: Kind, key: &Self::Key, value: Option<Self>) -> Vec<ReconcileRequest> {
        cache.put(kind, key, value)
    }

    fn affected_by(cache: &Cache, kind: Kind, key: &Self::Key) -> Vec<ReconcileRequest> {
        cache.map(kind, &key.to_object_ref(&cache.argocd), None)
    }

    /// Forgets the values that were computed from a changed object.
    fn forget_computed(_: &mut Cache, _: Kind, _: &Self::Key, _before: Option<&Self>) {}
}

/// A key of cached objects: a namespace and name, or a name alone.
pub trait ObjectKey: 'static {
    fn from_object_ref(object_ref: ObjectRef) -> Self;

    /// Returns the reference to an object, whose namespace is this one if the key has none.
    fn to_object_ref(&self, namespace: &Arc<str>) -> ObjectRef;
}

impl ObjectKey for ObjectRef {
    fn from_object_ref(object_ref: ObjectRef) -> Self {
        object_ref
    }

    fn to_object_ref(&self, _: &Arc<str>) -> ObjectRef {
        self.clone()
    }
}

impl ObjectKey for Arc<str> {
    fn from_object_ref(object_ref: ObjectRef) -> Self {
        object_ref.name
    }

    fn to_object_ref(&self, namespace: &Arc<str>) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(namespace),
            name: Arc::clone(self),
        }
    }
}

/// A setting, which is the only object of its kind.
pub trait Setting: Sized + 'static {
    fn parse(text: &str) -> Result<Self, String>;

    /// Stores the setting, or the default without a value. Returns the objects to reconcile.
    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest>;
}

type Apply = dyn FnOnce(&mut Cache) -> Vec<ReconcileRequest>;

/// A change of the cache that a watch event causes.
pub struct Change(pub(super) Box<Apply>);

impl Change {
    fn new(apply: impl FnOnce(&mut Cache) -> Vec<ReconcileRequest> + 'static) -> Self {
        Self(Box::new(apply))
    }

    pub fn objects<V: Cached>(kind: Kind, update: Update<V::Key, V>) -> Self {
        Self::new(move |cache| {
            let mut affected = V::before_update(cache, kind, &update);
            for (key, value) in V::store(cache, kind).changes(update) {
                affected.extend(V::put(cache, kind, &key, value));
            }
            affected
        })
    }

    /// Returns the change of a setting, to the default without a value.
    pub fn setting<S: Setting>(value: Option<S>) -> Self {
        Self::new(|cache| S::put(cache, value))
    }

    pub fn read_objects<V: Cached>(
        kind: Kind,
        update: Update<ObjectRef, &str>,
        now: Timestamp,
    ) -> Result<Self, String> {
        let update = match update {
            Update::Set(object_ref, text) => {
                let key = V::Key::from_object_ref(object_ref);
                let value = V::parse(kind, &key, text, now)?;
                Update::from_option(key, value)
            }
            Update::Deleted(object_ref) => Update::Deleted(V::Key::from_object_ref(object_ref)),
            Update::Listed(all) => Update::Listed(all.into_iter().map(V::Key::from_object_ref).collect()),
        };
        let change = Self::objects(kind, update);
        Ok(Self::new(move |cache| {
            cache.time = now;
            cache.apply(change)
        }))
    }

    pub fn read_setting<S: Setting>(_: Kind, update: Update<ObjectRef, &str>, _: Timestamp) -> Result<Self, String> {
        Ok(match update {
            Update::Set(_, text) => Self::setting(Some(S::parse(text)?)),
            Update::Listed(all) if !all.is_empty() => Self::new(|_| Vec::new()),
            Update::Deleted(_) | Update::Listed(_) => Self::setting::<S>(None),
        })
    }

    /// Returns the change that a work exists and cannot be read, for this reason.
    pub fn unreadable_work(object_ref: ObjectRef, why: Box<str>) -> Self {
        Self::new(|cache| {
            let affected = cache.carried_by(&object_ref);
            cache.unreadable_works.insert(object_ref, why);
            affected
        })
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn panicking() -> Self {
        Self::new(|_| panic!("as asked for"))
    }
}

/// A change of one object that the cache has applied.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'c> {
    pub kind: Kind,
    pub object_ref: &'c ObjectRef,
    pub(super) previous: Option<&'c dyn Any>,
}

impl<'c> Changed<'c> {
    /// Returns the previous state of the object, if there was one and it is of this type.
    pub fn before<V: 'static>(&self) -> Option<&'c V> {
        self.previous?.downcast_ref()
    }

    pub fn has_availability_changed(&self, cache: &Cache) -> bool {
        Availability::from_cluster(self.before()) != cache.availability(&self.object_ref.name)
    }

    /// Returns true if a managed cluster was accepted, or an accepted one was deleted.
    pub fn has_acceptance_changed(&self, cache: &Cache) -> bool {
        let was_accepted = self.before::<Cluster>().is_some_and(|cluster| cluster.is_accepted);
        was_accepted != cache.accepted_cluster(&self.object_ref.name).is_some()
    }

    /// Returns the managed clusters that a PlacementDecision has begun to name, or no longer names.
    pub fn moved_clusters(&self, cache: &Cache) -> BTreeSet<Arc<str>> {
        let clusters = |decision: Option<&PlacementDecision>| {
            decision.map_or_else(BTreeSet::new, |decision| decision.clusters.clone())
        };
        &clusters(self.before()) ^ &clusters(cache.decision(self.object_ref))
    }
}

/// Maps a change of a work, or of Argo CD's resource tracking, to the Applications that owned works or own them now.
pub fn owners(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let before = changed.before::<WorkBefore>().into_iter();
    let requests = before.flat_map(|before| {
        before.owners.iter().map(|application| ReconcileRequest {
            refresh: before.refresh,
            ..ReconcileRequest::application(application.clone())
        })
    });
    requests.collect()
}

pub type Mapper = fn(&Cache, &Changed<'_>) -> Vec<ReconcileRequest>;

pub type Mappers = BTreeMap<Kind, Vec<Mapper>>;
