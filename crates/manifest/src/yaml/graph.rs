//! The nodes of a document with their relations: anchors and aliases, merge keys, and keys of any type.
//!
//! Most documents have none of these and are read without this module, see [`build`](super::build).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Fault;
use super::parse::{Properties, Sink, Stop};
use super::resolve::{self, Scalar, ScalarStyle, Tag};

#[derive(Debug)]
pub(super) enum GraphNode<'a> {
    Scalar {
        value: Scalar<'a>,
        is_merge: bool,
    },
    List(Vec<usize>),
    /// Alternating keys and values.
    Map(Vec<usize>),
    Alias(usize),
}

/// The nodes of a document; references are indexes.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    /// The nodes, with their positions in the text.
    pub(super) nodes: Vec<(usize, GraphNode<'a>)>,
    open: Vec<usize>,
    anchors: HashMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    fn add(&mut self, at: usize, node: GraphNode<'a>, anchor: Option<&'a str>) {
        let number = self.nodes.len();
        self.nodes.push((at, node));
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, number);
        }
        if let Some(&parent) = self.open.last()
            && let GraphNode::List(children) | GraphNode::Map(children) = &mut self.nodes[parent].1
        {
            children.push(number);
        }
    }

    fn open(&mut self, at: usize, node: GraphNode<'a>, anchor: Option<&'a str>) {
        let number = self.nodes.len();
        self.add(at, node, anchor);
        self.open.push(number);
    }
}

impl Graph<'_> {
    /// Returns the first repeated key of a mapping, by position in the text.
    pub(super) fn repeated_key(&self) -> Option<Fault> {
        let mut repeated: Option<(usize, &str)> = None;
        for (_, node) in &self.nodes {
            let GraphNode::Map(children) = node else { continue };
            let mut seen = HashSet::new();
            for pair in children.chunks_exact(2) {
                if let (
                    at,
                    GraphNode::Scalar {
                        value: Scalar::Text(key),
                        is_merge: false,
                    },
                ) = &self.nodes[pair[0]]
                    && !seen.insert(key)
                    && repeated.is_none_or(|(first, _)| *at < first)
                {
                    repeated = Some((*at, key));
                }
            }
        }
        repeated.map(|(at, key)| Fault::new(at, format!("duplicate key {key:?}: remove one")))
    }
}

impl<'a> Sink<'a> for Graph<'a> {
    fn scalar(
        &mut self,
        at: usize,
        text: Cow<'a, str>,
        style: ScalarStyle,
        properties: Properties<'a>,
    ) -> Result<(), Stop> {
        let is_merge = text == "<<"
            && match properties.tag {
                None => style == ScalarStyle::Plain,
                Some(tag) => matches!(tag, Tag::Merge | Tag::NonSpecific),
            };
        let value = resolve::scalar(text, style, properties.tag).map_err(|message| Fault::new(at, message))?;
        self.add(at, GraphNode::Scalar { value, is_merge }, properties.anchor);
        Ok(())
    }

    fn alias(&mut self, at: usize, name: &'a str) -> Result<(), Stop> {
        let Some(&number) = self.anchors.get(name) else {
            return Err(Fault::new(at, "this alias (\"*\") has no anchor (\"&\") before it").into());
        };
        self.add(at, GraphNode::Alias(number), None);
        Ok(())
    }

    fn open_list(&mut self, at: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(at, GraphNode::List(Vec::new()), anchor);
        Ok(())
    }

    fn open_map(&mut self, at: usize, anchor: Option<&'a str>) -> Result<(), Stop> {
        self.open(at, GraphNode::Map(Vec::new()), anchor);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.open.pop();
        Ok(())
    }
}
