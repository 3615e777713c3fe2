//! Decodes the nodes of a document to its value, as go-yaml v2 decodes them and sigs.k8s.io/yaml converts them to JSON.

use std::cmp::Ordering;

use super::Fault;
use super::graph::{Graph, GraphNode};
use super::json::DEPTH;
use super::number::Number;
use super::resolve::Scalar;
use super::scan::TOO_DEEP;
use crate::value::{Map, Value};

/// A value with its pending error. A later duplicate of its key may still discard both.
#[derive(Debug)]
struct Decoded<'a> {
    value: Value<'a>,
    flaw: Option<Fault>,
}

/// A key before its conversion to a string, because equal keys have equal types; its position, and its value.
type DecodedEntry<'a> = (Scalar<'a>, usize, Decoded<'a>);

pub(super) fn decode<'a>(graph: &Graph<'a>) -> Result<Value<'a>, Fault> {
    let mut decoder = Decoder {
        graph,
        active: vec![false; graph.nodes.len()],
        decodes: 1,
        alias_decodes: 0,
        alias_depth: 0,
    };
    let root = decoder.node(0, Depth::default())?;
    match root.flaw {
        None => Ok(root.value),
        Some(flaw) => Err(flaw),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    /// The depth in lists and mappings of the result.
    depth: usize,
    /// The depth in calls: merging a mapping does not make the result deeper.
    calls: usize,
}

struct Decoder<'g, 'a> {
    graph: &'g Graph<'a>,
    /// True for each alias that is being decoded.
    active: Vec<bool>,
    decodes: u32,
    alias_decodes: u32,
    alias_depth: u32,
}

impl<'a> Decoder<'_, 'a> {
    /// Counts the decoding of a node, and refuses documents that decode too much by aliases.
    fn count(&mut self, at: usize) -> Result<(), Fault> {
        self.decodes += 1;
        if self.alias_depth > 0 {
            self.alias_decodes += 1;
        }
        if self.alias_decodes > 100 && self.decodes > 1000 {
            let share = f64::from(self.alias_decodes) / f64::from(self.decodes);
            if share > allowed_share(self.decodes) {
                return Err(Fault::new(
                    at,
                    "aliases (\"*\") make this document much larger than it is written",
                ));
            }
        }
        Ok(())
    }

    fn node(&mut self, number: usize, level: Depth) -> Result<Decoded<'a>, Fault> {
        let (at, node) = &self.graph.nodes[number];
        self.count(*at)?;
        match node {
            GraphNode::Scalar { value, .. } => Ok(scalar(value, *at)),
            GraphNode::Alias(target) => self.alias(number, |decoder| decoder.node(*target, level)),
            GraphNode::List(children) => {
                let level = deeper(level, *at)?;
                let mut flaw = None;
                let mut items = Vec::with_capacity(children.len());
                for &child in children {
                    let decoded = self.node(child, level)?;
                    flaw = flaw.or(decoded.flaw);
                    items.push(decoded.value);
                }
                Ok(Decoded {
                    value: Value::List(items),
                    flaw,
                })
            }
            GraphNode::Map(children) => {
                let mut entries = Vec::with_capacity(children.len() / 2);
                self.entries(children, deeper(level, *at)?, &mut entries)?;
                Ok(finish(entries))
            }
        }
    }

    fn alias<T>(&mut self, number: usize, decode: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.active[number] {
            return Err(Fault::new(
                self.graph.nodes[number].0,
                "this alias (\"*\") is inside the node that it refers to",
            ));
        }
        self.active[number] = true;
        self.alias_depth += 1;
        let result = decode(self);
        self.alias_depth -= 1;
        self.active[number] = false;
        result
    }

    /// Adds the entries of a mapping, with merged ones at the position of their `<<`.
    fn entries(&mut self, children: &[usize], level: Depth, entries: &mut Vec<DecodedEntry<'a>>) -> Result<(), Fault> {
        for pair in children.chunks_exact(2) {
            let (key_at, key_node) = &self.graph.nodes[pair[0]];
            if matches!(key_node, GraphNode::Scalar { is_merge: true, .. }) {
                self.merge(pair[1], level, entries)?;
                continue;
            }
            let key = self.node(pair[0], level)?;
            let key = match (key.value, self.target(pair[0])) {
                (Value::List(_) | Value::Map(_), _) => {
                    return Err(Fault::new(
                        *key_at,
                        "a list or mapping cannot be a key (an unquoted template \"{{ }}\" reads as one)",
                    ));
                }
                (_, GraphNode::Scalar { value, .. }) => value.clone(),
                _ => Scalar::Null,
            };
            let value = self.node(pair[1], level)?;
            entries.push((key, *key_at, value));
        }
        Ok(())
    }

    /// Returns the node itself, or the target of an alias.
    fn target(&self, number: usize) -> &GraphNode<'a> {
        match &self.graph.nodes[number].1 {
            GraphNode::Alias(target) => &self.graph.nodes[*target].1,
            node => node,
        }
    }

    fn merge(&mut self, number: usize, level: Depth, entries: &mut Vec<DecodedEntry<'a>>) -> Result<(), Fault> {
        if let (_, GraphNode::List(children)) = &self.graph.nodes[number] {
            // In a list, earlier mappings win.
            for &child in children.iter().rev() {
                self.merge_one(child, level, entries)?;
            }
            return Ok(());
        }
        self.merge_one(number, level, entries)
    }

    fn merge_one(&mut self, number: usize, level: Depth, entries: &mut Vec<DecodedEntry<'a>>) -> Result<(), Fault> {
        let (at, node) = &self.graph.nodes[number];
        let level = called(level, *at)?;
        match (node, self.target(number)) {
            (GraphNode::Map(children), _) => {
                self.count(*at)?;
                self.entries(children, level, entries)
            }
            (GraphNode::Alias(target), GraphNode::Map(_)) => {
                self.count(*at)?;
                let target = *target;
                self.alias(number, |decoder| decoder.merge_one(target, level, entries))
            }
            _ => Err(Fault::new(*at, "\"<<\" needs a mapping or a list of mappings")),
        }
    }
}

fn called(level: Depth, at: usize) -> Result<Depth, Fault> {
    let calls = level.calls + 1;
    if calls > DEPTH {
        Err(Fault::new(at, TOO_DEEP))
    } else {
        Ok(Depth { calls, ..level })
    }
}

fn deeper(level: Depth, at: usize) -> Result<Depth, Fault> {
    let depth = level.depth + 1;
    if depth > DEPTH {
        Err(Fault::new(at, TOO_DEEP))
    } else {
        called(Depth { depth, ..level }, at)
    }
}

/// Returns the share of decoding that may come from aliases; it decreases as the document grows.
fn allowed_share(decodes: u32) -> f64 {
    const SMALL: u32 = 400_000;
    const LARGE: u32 = 4_000_000;
    match decodes {
        0..=SMALL => 0.99,
        LARGE.. => 0.10,
        _ => 0.99 - 0.89 * (f64::from(decodes - SMALL) / f64::from(LARGE - SMALL)),
    }
}

fn scalar<'a>(scalar: &Scalar<'a>, at: usize) -> Decoded<'a> {
    let value = scalar.clone().into_value();
    let flaw = value.is_none().then(|| {
        let message = "infinity and \"not a number\" are not allowed in a manifest";
        Fault::new(at, message)
    });
    Decoded {
        value: value.unwrap_or(Value::Null),
        flaw,
    }
}

/// Creates a mapping: keeps the last of duplicates, and converts keys to strings.
fn finish(mut entries: Vec<DecodedEntry<'_>>) -> Decoded<'_> {
    entries.sort_by(|a, b| compare(&a.0, &b.0));
    entries.dedup_by(|later, earlier| {
        let same = is_same(&later.0, &earlier.0);
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
    let mut flaw: Option<Fault> = None;
    let mut texts = Vec::with_capacity(entries.len());
    let mut positions = Vec::with_capacity(entries.len());
    for (key, at, decoded) in entries {
        let is_null = key == Scalar::Null;
        let Some(text) = key.into_key() else {
            let message = if is_null {
                "null cannot be a key"
            } else {
                "this key is too large a number"
            };
            flaw.get_or_insert(Fault::new(at, message));
            continue;
        };
        flaw = flaw.or(decoded.flaw);
        positions.push((text.clone(), at));
        texts.push((text, decoded.value));
    }
    positions.sort_unstable();
    if let Some(pair) = positions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        // Go would choose one of the two at random.
        let message = format!("duplicate key \"{}\", once as text and once as another type", pair[0].0);
        flaw = Some(Fault::new(pair[1].1, message.replace(['\n', '\r'], " ")));
    }
    Decoded {
        value: Value::Map(Map::from_entries(texts)),
        flaw,
    }
}

fn compare(a: &Scalar<'_>, b: &Scalar<'_>) -> Ordering {
    use Number::{Float, Int, Large};
    fn rank(key: &Scalar<'_>) -> u8 {
        match key {
            Scalar::Null => 0,
            Scalar::Bool(_) => 1,
            Scalar::Number(Int(_)) => 2,
            Scalar::Number(Large(_)) => 3,
            Scalar::Number(Float(_)) => 4,
            Scalar::Text(_) => 5,
        }
    }
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
        (Scalar::Number(Int(a)), Scalar::Number(Int(b))) => a.cmp(b),
        (Scalar::Number(Large(a)), Scalar::Number(Large(b))) => a.cmp(b),
        // Adding zero makes negative and positive zero equal.
        (Scalar::Number(Float(a)), Scalar::Number(Float(b))) => (a + 0.0).total_cmp(&(b + 0.0)),
        (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn is_same(a: &Scalar<'_>, b: &Scalar<'_>) -> bool {
    match (a, b) {
        // For Go, NaN is not equal even to itself as a key.
        (Scalar::Number(Number::Float(a)), Scalar::Number(Number::Float(b))) => {
            a.partial_cmp(b) == Some(Ordering::Equal)
        }
        _ => compare(a, b) == Ordering::Equal,
    }
}
