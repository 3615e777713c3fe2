//! The values a manifest is made of, as Kubernetes sees them: what `apimachinery` keeps after decoding.

use std::borrow::Cow;

/// One value of a manifest. Text borrows from the file it was read from wherever it stands there verbatim.
///
/// Numbers are `i64` or `f64`, as in apimachinery's unstructured objects: an integer beyond `i64` is a float.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number; never NaN nor infinite.
    Float(f64),
    /// Text.
    String(Cow<'a, str>),
    /// A list.
    List(Vec<Value<'a>>),
    /// A mapping.
    Map(Map<'a>),
}

impl<'a> Value<'a> {
    /// A text of its own.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(Cow::Owned(text.into()))
    }

    /// A mapping of these fields.
    #[must_use]
    pub fn map(fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Map(Map::of(fields))
    }

    /// The text, where it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The mapping, where it is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether it is a list or a mapping with nothing in it.
    #[must_use]
    pub fn is_empty_collection(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
            _ => false,
        }
    }

    /// What kind of value it is, as one would say to a person.
    #[must_use]
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

/// A mapping with text keys: each key once, in byte order, which is the order Go's `encoding/json` prints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a> {
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Map<'a> {
    /// Makes a mapping of entries in the order they were written; of two entries with one key the later wins.
    #[must_use]
    pub fn from_entries(mut entries: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        let in_order = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !in_order {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            // `dedup_by` keeps the first of a run and hands us (later, kept): moving the later value into it makes the last win.
            entries.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Self { entries }
    }

    /// A mapping of these fields, in whatever order.
    #[must_use]
    pub fn of(fields: impl IntoIterator<Item = (&'static str, Value<'a>)>) -> Self {
        let entries = fields.into_iter().map(|(key, value)| (Cow::Borrowed(key), value));
        Self::from_entries(entries.collect())
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.position(key).ok().map(|at| &self.entries[at].1)
    }

    /// The value of `key`, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value<'a>> {
        let at = self.position(key).ok()?;
        Some(&mut self.entries[at].1)
    }

    /// Takes `key` out and returns what it held.
    pub fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.position(key).ok()?;
        Some(self.entries.remove(at).1)
    }

    /// Sets `key`, replacing what it held.
    pub fn insert(&mut self, key: impl Into<Cow<'a, str>>, value: Value<'a>) {
        let key = key.into();
        match self.position(&key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// Keeps only the entries that `keep` says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value<'a>) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// The entries in key order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.entries.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(held, _)| held.as_ref().cmp(key))
    }
}
