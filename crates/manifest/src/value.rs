//! The values of a manifest, as Kubernetes' `apimachinery` represents them after decoding.

use std::borrow::Cow;

/// A value of a manifest. Strings borrow from the file if it contains them verbatim.
///
/// Numbers are `i64` or `f64`, as in apimachinery's unstructured objects: an integer beyond `i64` is a float.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number; never NaN or infinite.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A list.
    List(Vec<Value<'a>>),
    /// A mapping.
    Map(Map<'a>),
}

impl<'a> Value<'a> {
    /// Creates an owned string.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::String(Cow::Owned(text.into()))
    }

    /// Creates a mapping of these fields.
    pub fn map(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Map(Map::from_fields(fields))
    }

    /// Returns the string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the mapping, if the value is one.
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the mutable mapping, if the value is one.
    pub fn as_map_mut(&mut self) -> Option<&mut Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the items of a list; none for any other value.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// Returns true for an empty list or mapping.
    pub fn is_empty_collection(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
            _ => false,
        }
    }

    /// Returns the type of the value, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::String(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// A mapping with string keys: each key once, in byte order, as Go's `encoding/json` prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a> {
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Map<'a> {
    /// Creates a mapping of entries in source order; of two entries with the same key the later wins.
    pub fn from_entries(mut entries: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        let in_order = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !in_order {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            // `dedup_by` keeps the first of a run and passes (later, kept): moving the later value into it makes the last win.
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Self { entries }
    }

    /// Creates a mapping of these fields, in any order.
    pub fn from_fields(fields: impl IntoIterator<Item = (&'static str, Value<'a>)>) -> Self {
        let entries = fields.into_iter().map(|(key, value)| (Cow::Borrowed(key), value));
        Self::from_entries(entries.collect())
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.position(key).ok().map(|at| &self.entries[at].1)
    }

    /// Returns the value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value<'a>> {
        let (last, parents) = path.split_last()?;
        let parent = parents.iter().try_fold(self, |map, key| map.get(key)?.as_map());
        parent?.get(last)
    }

    /// Returns the mutable value of `key`.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value<'a>> {
        let at = self.position(key).ok()?;
        Some(&mut self.entries[at].1)
    }

    /// Returns the mutable mapping at the end of a path of keys.
    pub fn map_at_mut(&mut self, path: &[&str]) -> Option<&mut Self> {
        path.iter().try_fold(self, |map, key| map.get_mut(key)?.as_map_mut())
    }

    /// Returns the items of the list at `key`; none for any other value.
    pub fn items(&self, key: &str) -> &[Value<'a>] {
        self.get(key).map_or(&[], Value::items)
    }

    /// Returns the mappings in the list at `key`.
    pub fn maps(&self, key: &str) -> impl Iterator<Item = &Map<'a>> + use<'_, 'a> {
        self.items(key).iter().filter_map(Value::as_map)
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.position(key).ok()?;
        Some(self.entries.remove(at).1)
    }

    /// Sets `key`, replacing its value.
    pub fn insert(&mut self, key: impl Into<Cow<'a, str>>, value: Value<'a>) {
        let key = key.into();
        match self.position(&key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// Sets keys, replacing their values, in the time that sorting needs.
    pub fn extend(&mut self, entries: Vec<(Cow<'a, str>, Value<'a>)>) {
        let mut all = std::mem::take(&mut self.entries);
        all.extend(entries);
        *self = Self::from_entries(all);
    }

    /// Keeps only the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value<'a>) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// Returns the entries in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.entries.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(entry, _)| entry.as_ref().cmp(key))
    }
}
