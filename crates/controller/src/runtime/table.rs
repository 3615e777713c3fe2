//! The tables of a cache: objects by key, kept by the updates of a watch, and indices of their keys.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// An update of the objects of a kind.
#[derive(Debug)]
pub enum Update<K, V> {
    /// An object was created or changed.
    Set(K, V),
    /// An object was deleted.
    Deleted(K),
    /// The complete list of objects: others do not exist.
    Listed(HashSet<K>),
}

impl<K, V> Update<K, V> {
    /// Returns the update of one object: it was deleted if there is no value.
    #[must_use]
    pub fn of(key: K, value: Option<V>) -> Self {
        match value {
            Some(value) => Self::Set(key, value),
            None => Self::Deleted(key),
        }
    }

    /// Returns the key of the object, or none for a complete list.
    #[must_use]
    pub fn key(&self) -> Option<&K> {
        match self {
            Self::Set(key, _) | Self::Deleted(key) => Some(key),
            Self::Listed(_) => None,
        }
    }

    /// Replaces the keys.
    #[must_use]
    pub fn map_keys<J: Eq + Hash>(self, map: impl Fn(K) -> J) -> Update<J, V> {
        match self {
            Self::Set(key, value) => Update::Set(map(key), value),
            Self::Deleted(key) => Update::Deleted(map(key)),
            Self::Listed(all) => Update::Listed(all.into_iter().map(map).collect()),
        }
    }

    /// Replaces the value. Without a new value, the update becomes a deletion.
    ///
    /// # Errors
    ///
    /// Returns the error of `map`.
    pub fn try_filter_map<W, E>(self, map: impl FnOnce(&K, V) -> Result<Option<W>, E>) -> Result<Update<K, W>, E> {
        Ok(match self {
            Self::Set(key, value) => {
                let value = map(&key, value)?;
                Update::of(key, value)
            }
            Self::Deleted(key) => Update::Deleted(key),
            Self::Listed(all) => Update::Listed(all),
        })
    }

    /// Returns the state of a kind with at most one object: its value, or none if it does not exist. Returns nothing for a list
    /// that contains the object.
    #[must_use]
    pub fn single(self) -> Option<Option<V>> {
        match self {
            Self::Set(_, value) => Some(Some(value)),
            Self::Deleted(_) => Some(None),
            Self::Listed(all) => all.is_empty().then_some(None),
        }
    }
}

/// The objects of a kind, in the order of their keys. They are boxed because a B-tree that is filled in the order of its keys
/// stays half empty.
#[derive(Clone, Debug)]
pub struct Table<K, V>(BTreeMap<K, Box<V>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V> Table<K, V> {
    /// Returns an object.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(Box::as_ref)
    }

    /// Returns an object with its key in the table.
    pub fn entry<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        self.0.get_key_value(key).map(|(key, value)| (key, &**value))
    }

    /// Returns true if there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all objects.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, &**value))
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// Returns the objects from this key on.
    pub fn from(&self, first: K) -> impl Iterator<Item = (&K, &V)> + use<'_, K, V> {
        self.0.range(first..).map(|(key, value)| (key, &**value))
    }

    /// Stores an object, or deletes it without a value. Returns the previous value.
    pub fn put(&mut self, key: &K, value: Option<V>) -> Option<V>
    where
        K: Clone,
    {
        let before = match value {
            Some(value) => self.0.insert(key.clone(), Box::new(value)),
            None => self.0.remove(key),
        };
        before.map(|before| *before)
    }

    /// Divides an update into the changes of single objects, with their new values: a complete list deletes the objects that are
    /// not in it.
    pub fn changes(&self, update: Update<K, V>) -> impl Iterator<Item = (K, Option<V>)> + use<K, V>
    where
        K: Clone + Hash,
    {
        let (one, gone) = match update {
            Update::Set(key, value) => (Some((key, Some(value))), Vec::new()),
            Update::Deleted(key) => (Some((key, None)), Vec::new()),
            Update::Listed(all) => (None, self.keys().filter(|key| !all.contains(*key)).cloned().collect()),
        };
        one.into_iter().chain(gone.into_iter().map(|key| (key, None)))
    }

    /// Applies an update. Returns the changed keys with the previous values.
    pub fn apply(&mut self, update: Update<K, V>) -> Vec<(K, Option<V>)>
    where
        K: Clone + Hash,
    {
        let changes = self.changes(update).map(|(key, value)| {
            let before = self.put(&key, value);
            (key, before)
        });
        changes.collect()
    }
}

/// The keys of objects by a property that several objects can have, and that an object can have several times.
#[derive(Clone, Debug)]
pub struct Index<P, K>(HashMap<P, Keys<K>>);

/// Keys in order. Most properties have one object, for which a set would need ten times the memory.
#[derive(Clone, Debug)]
enum Keys<K> {
    None,
    One(K),
    Several(BTreeSet<K>),
}

impl<K: Ord> Keys<K> {
    fn iter(&self) -> impl Iterator<Item = &K> {
        let (one, several) = match self {
            Self::None => (None, None),
            Self::One(key) => (Some(key), None),
            Self::Several(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    fn insert(&mut self, key: K) {
        *self = match std::mem::replace(self, Self::None) {
            Self::None => Self::One(key),
            Self::One(known) if known == key => Self::One(known),
            Self::One(known) => Self::Several([known, key].into()),
            Self::Several(mut keys) => {
                keys.insert(key);
                Self::Several(keys)
            }
        };
    }

    fn remove(&mut self, key: &K) {
        match self {
            Self::One(known) if known == key => *self = Self::None,
            Self::Several(keys) => {
                keys.remove(key);
            }
            Self::None | Self::One(_) => {}
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(_) => false,
            Self::Several(keys) => keys.is_empty(),
        }
    }
}

impl<P, K> Default for Index<P, K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<P: Eq + Hash, K: Ord> Index<P, K> {
    /// Returns the objects with a property.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, property: &Q) -> impl Iterator<Item = &K> + use<'_, P, K, Q>
    where
        P: Borrow<Q>,
    {
        self.0.get(property).into_iter().flat_map(Keys::iter)
    }

    /// Returns all properties that objects have.
    pub fn properties(&self) -> impl Iterator<Item = &P> {
        self.0.keys()
    }

    /// Returns true if no object has a property.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an object with a property.
    pub fn insert(&mut self, property: P, key: K) {
        self.0.entry(property).or_insert(Keys::None).insert(key);
    }

    /// Removes an object with a property.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, property: &Q, key: &K)
    where
        P: Borrow<Q>,
    {
        if let Some(keys) = self.0.get_mut(property) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(property);
            }
        }
    }

    /// Returns all properties that objects have.
    pub fn into_properties(self) -> impl Iterator<Item = P> {
        self.0.into_keys()
    }
}

/// Returns a property as the key of an index: the object's name, without a copy, if it equals the property; otherwise a copy of
/// the property.
#[must_use]
pub fn shared(property: &str, name: &Arc<str>) -> Arc<str> {
    if *property == **name {
        Arc::clone(name)
    } else {
        property.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(keys: &[&'static str]) -> Update<&'static str, u8> {
        Update::Listed(keys.iter().copied().collect())
    }

    #[test]
    fn an_update_returns_the_previous_values() {
        let mut table = Table::default();
        assert_eq!(table.apply(Update::Set("a", 1)), [("a", None)]);
        assert_eq!(table.apply(Update::Set("a", 2)), [("a", Some(1))]);
        assert_eq!(table.apply(Update::Deleted("a")), [("a", Some(2))]);
        assert_eq!(table.apply(Update::Deleted("a")), [("a", None)]);
        assert!(table.is_empty());
    }

    #[test]
    fn a_complete_list_deletes_the_other_objects() {
        let mut table = Table::default();
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            table.apply(Update::Set(key, value));
        }
        assert_eq!(table.apply(listed(&["a", "b", "c", "d"])), []);
        assert_eq!(table.apply(listed(&["b"])), [("a", Some(1)), ("c", Some(3))]);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&"b", &2)]);
        assert_eq!(table.from("c").count(), 0);
        assert_eq!(table.apply(listed(&[])), [("b", Some(2))]);
    }

    #[test]
    fn an_update_without_a_new_value_is_a_deletion() {
        let even = |update: Update<&'static str, u8>| {
            let halved = update.try_filter_map(|_, value| match value {
                0 => Err("zero"),
                value => Ok(value.is_multiple_of(2).then_some(value / 2)),
            });
            halved.map(|update| update.map_keys(str::len).single())
        };
        assert_eq!(even(Update::Set("a", 4)), Ok(Some(Some(2))));
        assert_eq!(even(Update::Set("a", 3)), Ok(Some(None)));
        assert_eq!(even(Update::Set("a", 0)), Err("zero"));
        assert_eq!(even(Update::Deleted("a")), Ok(Some(None)));
        assert_eq!(even(listed(&[])), Ok(Some(None)));
        assert_eq!(even(listed(&["a"])), Ok(None));
    }

    #[test]
    fn an_index_forgets_properties_without_objects() {
        let mut index = Index::default();
        for (property, key) in [("x", 2), ("x", 2), ("x", 1), ("y", 1)] {
            index.insert(property, key);
        }
        assert_eq!(index.get("x").collect::<Vec<_>>(), [&1, &2]);
        index.remove("y", &2);
        index.remove("y", &1);
        assert_eq!(index.properties().collect::<Vec<_>>(), [&"x"]);
        assert_eq!(index.clone().into_properties().collect::<Vec<_>>(), ["x"]);
        index.remove("x", &1);
        index.remove("x", &2);
        assert!(index.is_empty());
    }
}
