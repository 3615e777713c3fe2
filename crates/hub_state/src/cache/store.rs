//! The stores of a cache: objects by key, kept by the updates of a watch, with indices of their keys.

use primitives::object_ref::ObjectRef;
use std::borrow::Borrow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

#[derive(Debug)]
pub enum Update<K, V> {
    Set(K, V),
    Deleted(K),
    /// The complete list of objects: others do not exist.
    Listed(HashSet<K>),
}

impl<K, V> Update<K, V> {
    /// Returns the update of one object: it was deleted if there is no value.
    pub fn from_option(key: K, value: Option<V>) -> Self {
        match value {
            Some(value) => Self::Set(key, value),
            None => Self::Deleted(key),
        }
    }
}

/// An object that a [`Store`] keeps. No reader sees a difference between two equal states of an object.
pub trait Indexed: PartialEq + Sized {
    type Key: Clone + Hash + Ord;
    type Indices: Debug + Default;

    fn index(_: &mut Self::Indices, _key: &Self::Key, _before: Option<&Self>, _after: Option<&Self>) {}
}

/// The objects of a kind, in the order of their keys. They are boxed because a B-tree that is filled in the order of its keys
/// stays half empty.
#[derive(Debug)]
pub struct Store<V: Indexed> {
    objects: BTreeMap<V::Key, Box<V>>,
    indices: V::Indices,
}

impl<V: Indexed> Default for Store<V> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            indices: V::Indices::default(),
        }
    }
}

impl<V: Indexed> Store<V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        V::Key: Borrow<Q>,
    {
        self.objects.get(key).map(Box::as_ref)
    }

    pub fn entry<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&V::Key, &V)>
    where
        V::Key: Borrow<Q>,
    {
        self.objects.get_key_value(key).map(|(key, value)| (key, &**value))
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&V::Key, &V)> {
        self.objects.iter().map(|(key, value)| (key, &**value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &V::Key> {
        self.objects.keys()
    }

    pub fn indices(&self) -> &V::Indices {
        &self.indices
    }

    /// Stores an object, or deletes it without a value. Returns the previous value, and true if anything changed.
    pub fn put(&mut self, key: &V::Key, value: Option<V>) -> (Option<V>, bool) {
        let before = match value {
            Some(value) => self.objects.insert(key.clone(), Box::new(value)),
            None => self.objects.remove(key),
        };
        let before = before.map(|before| *before);
        let after = self.objects.get(key).map(Box::as_ref);
        let has_changed = before.as_ref() != after;
        if has_changed {
            V::index(&mut self.indices, key, before.as_ref(), after);
        }
        (before, has_changed)
    }

    /// Divides an update into the changes of single objects, with their new values: a complete list deletes the objects that are
    /// not in it.
    pub fn changes(&self, update: Update<V::Key, V>) -> Vec<(V::Key, Option<V>)> {
        match update {
            Update::Set(key, value) => vec![(key, Some(value))],
            Update::Deleted(key) => vec![(key, None)],
            Update::Listed(all) => {
                let gone = self.keys().filter(|key| !all.contains(*key));
                gone.map(|key| (key.clone(), None)).collect()
            }
        }
    }
}

impl<V: Indexed<Key = ObjectRef>> Store<V> {
    pub fn in_namespace(&self, namespace: &Arc<str>) -> impl Iterator<Item = (&ObjectRef, &V)> + use<'_, V> {
        let namespace = Arc::clone(namespace);
        let first = ObjectRef {
            namespace: Arc::clone(&namespace),
            name: "".into(),
        };
        let objects = self.objects.range(first..);
        let objects = objects.take_while(move |(object_ref, _)| object_ref.namespace == namespace);
        objects.map(|(object_ref, value)| (object_ref, &**value))
    }
}

/// The keys of objects by a property that several objects can have, and that an object can have several times.
#[derive(Debug)]
pub struct Index<P, K>(HashMap<P, Keys<K>>);

/// Keys in order. Most properties have one object, for which a set would need ten times the memory.
#[derive(Debug)]
enum Keys<K> {
    One(K),
    Several(BTreeSet<K>),
}

impl<K: Clone + Ord> Keys<K> {
    fn iter(&self) -> impl Iterator<Item = &K> {
        let (one, several) = match self {
            Self::One(key) => (Some(key), None),
            Self::Several(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    fn insert(&mut self, key: K) {
        match self {
            Self::One(known) => *self = Self::Several([known.clone(), key].into()),
            Self::Several(keys) => drop(keys.insert(key)),
        }
    }

    /// Removes a key. Returns true if none is left.
    fn remove(&mut self, key: &K) -> bool {
        match self {
            Self::One(known) => known == key,
            Self::Several(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }
}

impl<P, K> Default for Index<P, K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<P: Eq + Hash, K: Clone + Ord> Index<P, K> {
    pub fn get<Q: Eq + Hash + ?Sized>(&self, property: &Q) -> impl Iterator<Item = &K> + use<'_, P, K, Q>
    where
        P: Borrow<Q>,
    {
        self.0.get(property).into_iter().flat_map(Keys::iter)
    }

    pub fn properties(&self) -> impl Iterator<Item = &P> {
        self.0.keys()
    }

    /// Adds an object with a property, or removes it.
    pub fn set(&mut self, property: P, key: K, is_added: bool) {
        match self.0.entry(property) {
            Entry::Vacant(entry) if is_added => drop(entry.insert(Keys::One(key))),
            Entry::Vacant(_) => {}
            Entry::Occupied(mut entry) if is_added => entry.get_mut().insert(key),
            Entry::Occupied(mut entry) => {
                if entry.get_mut().remove(&key) {
                    entry.remove();
                }
            }
        }
    }

    /// Replaces the property of an object that has at most one.
    pub fn replace(&mut self, key: &K, before: Option<P>, after: Option<P>) {
        if before == after {
            return;
        }
        for (property, is_added) in [(before, false), (after, true)] {
            if let Some(property) = property {
                self.set(property, key.clone(), is_added);
            }
        }
    }
}

/// Returns a property as the key of an index: the object's name, without a copy, if it equals the property; otherwise a copy of
/// the property.
pub(super) fn shared(property: &str, name: &Arc<str>) -> Arc<str> {
    if *property == **name {
        Arc::clone(name)
    } else {
        property.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Indexed for u8 {
        type Key = &'static str;
        type Indices = Index<u8, &'static str>;

        fn index(indices: &mut Self::Indices, key: &Self::Key, before: Option<&Self>, after: Option<&Self>) {
            indices.replace(key, before.copied(), after.copied());
        }
    }

    fn listed(keys: &[&'static str]) -> Update<&'static str, u8> {
        Update::Listed(keys.iter().copied().collect())
    }

    #[test]
    fn a_change_returns_the_previous_value_and_updates_the_index() {
        let mut store = Store::default();
        assert_eq!(store.put(&"a", Some(1_u8)), (None, true));
        assert_eq!(store.put(&"a", Some(2)), (Some(1), true));
        assert_eq!(store.put(&"a", Some(2)), (Some(2), false));
        assert_eq!(
            (store.indices().get(&1).count(), store.indices().get(&2).count()),
            (0, 1)
        );
        assert_eq!(store.put(&"a", None), (Some(2), true));
        assert_eq!(store.put(&"a", None), (None, false));
        assert!(store.is_empty() && store.indices().properties().next().is_none());
    }

    #[test]
    fn a_complete_list_deletes_the_other_objects() {
        let mut store = Store::default();
        for (key, value) in [("a", 1_u8), ("b", 2), ("c", 3)] {
            store.put(&key, Some(value));
        }
        assert_eq!(store.changes(listed(&["a", "b", "c", "d"])), []);
        assert_eq!(store.changes(listed(&["b"])), [("a", None), ("c", None)]);
        assert_eq!(store.changes(listed(&[])).len(), 3);
    }

    #[test]
    fn an_index_forgets_properties_without_objects() {
        let mut index = Index::default();
        for (property, key) in [("x", 2), ("x", 2), ("x", 1), ("y", 1)] {
            index.set(property, key, true);
        }
        assert_eq!(index.get("x").collect::<Vec<_>>(), [&1, &2]);
        index.set("y", 2, false);
        index.set("y", 1, false);
        assert_eq!(index.properties().collect::<Vec<_>>(), [&"x"]);
        index.set("x", 1, false);
        index.set("x", 2, false);
        assert_eq!(index.properties().next(), None);
    }
}
