//! From nodes straight to values, for the documents that need no more: without anchors, merge keys, and keys that
//! are anything but text.

use std::borrow::Cow;

use super::fault::Fault;
use super::number;
use super::parse::{Properties, Sink, Stop};
use super::resolve::{self, Scalar, Style};
use crate::value::{Map, Value};

/// A list or mapping that is not complete, and where its children start.
#[derive(Debug)]
enum Open<'a> {
    List(usize),
    Map(usize, Option<Cow<'a, str>>),
}

#[derive(Debug, Default)]
pub(super) struct Builder<'a> {
    open: Vec<Open<'a>>,
    items: Vec<Value<'a>>,
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
    root: Option<Value<'a>>,
}

impl<'a> Builder<'a> {
    pub(super) fn finish(self) -> Option<Value<'a>> {
        self.root
    }

    fn add(&mut self, value: Value<'a>) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(_)) => self.items.push(value),
            Some(Open::Map(_, key)) => {
                if let Some(key) = key.take() {
                    self.entries.push((key, value));
                }
            }
        }
    }

    /// Whether the next node is a key.
    fn at_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map(_, None)))
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
    fn scalar(&mut self, at: usize, text: Cow<'a, str>, style: Style, properties: Properties<'a>) -> Result<(), Stop> {
        if properties.anchor.is_some() {
            return Err(Stop::NeedsGraph);
        }
        let at_key = self.at_key();
        if at_key && text == "<<" && (style == Style::Plain || properties.tag.is_some()) {
            return Err(Stop::NeedsGraph);
        }
        let scalar = resolve::scalar(text, style, properties.tag).map_err(|message| Fault::new(at, message))?;
        if at_key {
            let Scalar::Text(text) = scalar else {
                return Err(Stop::NeedsGraph);
            };
            if let Some(Open::Map(_, key)) = self.open.last_mut() {
                *key = Some(text);
            }
            return Ok(());
        }
        let value = match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(number) => number::through_json(number).ok_or(Stop::NeedsGraph)?,
            Scalar::Text(text) => Value::String(text),
        };
        self.add(value);
        Ok(())
    }

    fn alias(&mut self, _: usize, _: &'a str) -> Result<(), Stop> {
        Err(Stop::NeedsGraph)
    }

    fn open_list(&mut self, _: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(anchor, Open::List(self.items.len()))
    }

    fn open_map(&mut self, _: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(anchor, Open::Map(self.entries.len(), None))
    }

    fn close(&mut self) {
        let value = match self.open.pop() {
            None => return,
            Some(Open::List(start)) => Value::List(self.items.drain(start..).collect()),
            Some(Open::Map(start, _)) => Value::Map(Map::from_entries(self.entries.drain(start..).collect())),
        };
        self.add(value);
    }
}
