//! Builds values directly from nodes, for documents that need no graph: without anchors, without merge keys, and without keys
//! whose type matters.

use std::borrow::Cow;

use super::Fault;
use super::parse::{Properties, Sink, Stop};
use super::resolve::{self, Scalar, ScalarStyle};
use crate::value::{Map, Value};

/// An incomplete list or mapping.
#[derive(Debug)]
enum Open<'a> {
    /// A list, with the index of its first item.
    List(usize),
    Map {
        /// The index of its first entry.
        start: usize,
        /// The key of the next value.
        key: Option<Cow<'a, str>>,
        /// True if all keys are strings.
        text_only: bool,
    },
}

#[derive(Debug)]
pub(super) struct Builder<'a> {
    open: Vec<Open<'a>>,
    items: Vec<Value<'a>>,
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
    root: Option<Value<'a>>,
}

impl<'a> Builder<'a> {
    /// Creates a builder with capacity for the nesting of typical objects.
    pub(super) fn new() -> Self {
        Self {
            open: Vec::with_capacity(16),
            items: Vec::with_capacity(8),
            entries: Vec::with_capacity(32),
            root: None,
        }
    }

    pub(super) fn finish(self) -> Option<Value<'a>> {
        self.root
    }

    fn add(&mut self, value: Value<'a>) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(_)) => self.items.push(value),
            Some(Open::Map { key, .. }) => {
                if let Some(key) = key.take() {
                    self.entries.push((key, value));
                }
            }
        }
    }

    /// Returns true if the next node is a key.
    fn at_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn open(&mut self, anchor: Option<&'a str>, open: Open<'a>) -> Result<(), Stop> {
        if anchor.is_some() || self.at_key() {
            return Err(Stop::NeedsGraph);
        }
        self.open.push(open);
        Ok(())
    }
}

impl<'a> Sink<'a> for Builder<'a> {
    fn scalar(
        &mut self,
        at: usize,
        text: Cow<'a, str>,
        style: ScalarStyle,
        properties: Properties<'a>,
    ) -> Result<(), Stop> {
        if properties.anchor.is_some() {
            return Err(Stop::NeedsGraph);
        }
        let at_key = self.at_key();
        if at_key && text == "<<" && (style == ScalarStyle::Plain || properties.tag.is_some()) {
            return Err(Stop::NeedsGraph);
        }
        let scalar = resolve::scalar(text, style, properties.tag).map_err(|message| Fault::new(at, message))?;
        if at_key {
            let is_text = matches!(scalar, Scalar::Text(_));
            let text = scalar.into_key().ok_or(Stop::NeedsGraph)?;
            if let Some(Open::Map { key, text_only, .. }) = self.open.last_mut() {
                *key = Some(text);
                *text_only &= is_text;
            }
            return Ok(());
        }
        self.add(scalar.into_value().ok_or(Stop::NeedsGraph)?);
        Ok(())
    }

    fn alias(&mut self, _: usize, _: &'a str) -> Result<(), Stop> {
        Err(Stop::NeedsGraph)
    }

    fn open_list(&mut self, _: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(anchor, Open::List(self.items.len()))
    }

    fn open_map(&mut self, _: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(
            anchor,
            Open::Map {
                start: self.entries.len(),
                key: None,
                text_only: true,
            },
        )
    }

    fn close(&mut self) -> Result<(), Stop> {
        let value = match self.open.pop() {
            None => return Ok(()),
            Some(Open::List(start)) => Value::List(take_from(&mut self.items, start)),
            Some(Open::Map { start, text_only, .. }) => {
                let count = self.entries.len() - start;
                let map = Map::from_entries(take_from(&mut self.entries, start));
                // The equality of two keys depends on their types too.
                if map.len() < count && !text_only {
                    return Err(Stop::NeedsGraph);
                }
                Value::Map(map)
            }
        };
        self.add(value);
        Ok(())
    }
}

/// Removes the items from `start` on. For a large collection, the items before it move instead, to avoid two copies of it.
fn take_from<T>(all: &mut Vec<T>, start: usize) -> Vec<T> {
    const LARGE: usize = 10_000;
    if all.len() - start < LARGE {
        return all.split_off(start);
    }
    let before = all.drain(..start).collect();
    let mut taken = std::mem::replace(all, before);
    taken.shrink_to_fit();
    taken
}
