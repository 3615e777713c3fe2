//! The lines of the fields of a document, for messages.

use super::graph::{Graph, GraphNode};
use super::resolve::Scalar;
use super::split::Chunks;
use crate::text::LineCounter;

/// The positions of the fields of a document.
#[derive(Debug)]
pub struct Positions<'a> {
    /// The lines of the file: messages ask for the fields mostly in their order.
    lines: LineCounter<'a>,
    /// The offset of the document in the text.
    offset: usize,
    graph: Graph<'a>,
}

impl<'a> Positions<'a> {
    /// Parses a document of a file again; `number` counts from 1, see [`Document::number`](super::Document::number). Returns `None`
    /// if the document is not there, or if the file is a stream of several JSON values.
    pub fn locate_document(text: &'a str, number: usize) -> Option<Self> {
        let mut chunks = Chunks::new(text, 0);
        for _ in 1..number {
            chunks.next_chunk()?.ok()?;
        }
        let (graph, offset) = super::graph(&chunks.next_chunk()?.ok()?)?;
        let lines = LineCounter::new(text);
        Some(Self { lines, offset, graph })
    }

    /// Returns the line of a field, from 1, or that of the innermost field on the path which is in the text. The path has the form
    /// `spec.ports[0].port`; a key in it may contain dots, and may be in brackets.
    pub fn line_of(&mut self, path: &str) -> Option<usize> {
        let mut position = None;
        let (mut node, mut rest) = (0, path);
        while let Some((at, child, after)) = self.child(node, rest) {
            position = Some(at);
            (node, rest) = (child, after.strip_prefix('.').unwrap_or(after));
        }
        Some(self.lines.line_of(self.offset + position?))
    }

    /// Returns the position of the child that the path begins with, its node, and the rest of the path.
    fn child<'p>(&self, node: usize, path: &'p str) -> Option<(usize, usize, &'p str)> {
        match &self.graph.nodes.get(node)?.1 {
            GraphNode::Alias(node) => self.child(*node, path),
            GraphNode::Scalar { .. } => None,
            GraphNode::List(items) => {
                let (at, rest) = path.strip_prefix('[')?.split_once(']')?;
                let item = *items.get(at.parse::<usize>().ok()?)?;
                Some((self.graph.nodes[item].0, item, rest))
            }
            GraphNode::Map(children) => {
                let pairs = children.chunks_exact(2);
                let matching = pairs.filter_map(|pair| {
                    let (at, key) = &self.graph.nodes[pair[0]];
                    let GraphNode::Scalar {
                        value: Scalar::Text(key),
                        ..
                    } = key
                    else {
                        return None;
                    };
                    Some((*at, pair[1], after_key(path, key)?))
                });
                // With the keys `a` and `a.b`, the path `a.b` means the second. Of two equal keys, Kubernetes uses the last.
                matching.min_by_key(|&(at, _, rest)| (rest.len(), std::cmp::Reverse(at)))
            }
        }
    }
}

/// Returns the rest of a path that begins with a key.
fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    if let Some(rest) = path.strip_prefix('[').and_then(|path| path.strip_prefix(key)) {
        return rest.strip_prefix(']');
    }
    let rest = path.strip_prefix(key)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# a comment
kind: Service
---
kind: ConfigMap
data: &data
  a.b: x
  a:
    b: [1,
      {c: 2}]
metadata:
  labels: {app.kubernetes.io/name: 1,
           x: y}
copy: *data
";

    #[test]
    fn finds_the_lines_of_fields() {
        let mut positions = Positions::locate_document(TEXT, 2).expect("the document");
        for (path, line) in [
            ("kind", 4),
            ("data", 5),
            ("data.a.b", 6),
            ("data.a.b[0]", 6),
            ("data.a", 7),
            ("metadata.labels[x]", 12),
            ("metadata.labels.app.kubernetes.io/name", 11),
            ("copy.a", 7),
            ("data.missing", 5),
        ] {
            assert_eq!(positions.line_of(path), Some(line), "{path}");
        }
        assert_eq!(positions.line_of("missing"), None);
        assert_eq!(positions.line_of(""), None);
    }

    #[test]
    fn finds_items_of_lists() {
        let text = "items:\n- a: 1\n- b:\n  - c: 1\n    d: 2\n";
        let mut positions = Positions::locate_document(text, 1).expect("the document");
        assert_eq!(positions.line_of("items[1].b[0].d"), Some(5));
        assert_eq!(positions.line_of("items[7].b"), Some(1));
    }

    /// It takes many seconds if each line is counted from the start of the file.
    #[test]
    fn finds_all_items_of_a_long_list() {
        let count = 200_000;
        let text = format!("items:\n{}", "- {a: 1}\n".repeat(count));
        let mut positions = Positions::locate_document(&text, 1).expect("the document");
        let lines = (0..count).map(|at| positions.line_of(&format!("items[{at}].a")));
        assert!(lines.eq((0..count).map(|at| Some(at + 2))));
    }

    #[test]
    fn has_no_positions_of_what_is_not_there() {
        assert!(Positions::locate_document(TEXT, 3).is_none());
        assert!(Positions::locate_document("{\"a\": 1}\n{\"a\": 2}", 2).is_none());
        assert!(Positions::locate_document("a: [", 1).is_none());
    }
}
