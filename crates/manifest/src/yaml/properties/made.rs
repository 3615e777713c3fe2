//! Generators of texts: of random tokens, or of a value in many styles.

use crate::json::write_text;
use crate::value::{Map, Value};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use std::borrow::Cow;
use std::fmt::Write;
use testing::hostile_text;

/// Generates texts of YAML syntax in any order.
pub(super) fn tokens() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    const TOKENS: &[&str] = &[
        "a", "b: ", "a: 1", "- ", "-", "? ", ": ", ":", ",", "[", "]", "{", "}", "&a ", "&b ", "*a", "*b", "!!str ",
        "!!int ", "!!map ", "!!binary ", "!!float ", "! ", "!a!b ", "<<: ", "<<: *a", "<<: [*a, *b]", "|", ">", "|-",
        ">+", "|2", ">-1", "'", "''", "\"", "\\", "\\x41", "\\uD800", "\\\n", "# c", " #", "---", "---\n", "\n---\n",
        "...", "\n...\n", "%YAML 1.1\n", "%TAG ! a:\n", "\t", " ", "  ", "    ", "\n", "\n", "\n ", "\n  ", "\n    ",
        "\n- ", "\n  - ", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{feff}", "é", "~", "null", "yes", "0x1F", "0o7",
        "1_0", "1e3", ".inf", ".nan", "-.5", "12:30", "2020-01-01", "18446744073709551615", "1e999", "@", "`", "=",
        "\0", "\u{7f}",
    ];
    vec(select(TOKENS), 0..25).prop_map(|tokens| tokens.concat())
}

/// A document and its value.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) text: String,
    pub(super) value: Value<'static>,
}

/// The notation of a value. Aliases refer to an earlier anchor.
#[derive(Clone, Debug)]
enum Node {
    /// A plain scalar, and its value.
    Plain(String, Value<'static>),
    Text(String, Quotes),
    List(Vec<Node>, NodeStyle),
    Map(Vec<(String, Node)>, NodeStyle),
    /// A mapping that merges the fields of an earlier one, in this notation.
    Merge(Index, Vec<(String, Node)>, NodeStyle),
    Alias(Index),
}

#[derive(Clone, Copy, Debug)]
enum Quotes {
    Single,
    Double,
    Literal,
    /// Plain, with a string tag.
    Tagged,
}

#[derive(Clone, Copy, Debug)]
struct NodeStyle {
    is_flow: bool,
    has_anchor: bool,
    /// The content between two entries: nothing, a comment, blank lines.
    filler: u8,
}

pub(super) fn known_documents() -> impl Strategy<Value = Known> {
    let start = select(&["", "---\n", "# c: [\n", "\n\n---\n", "\u{feff}", "--- # c\n"][..]);
    (start, nodes(), node_styles()).prop_map(|(start, node, node_style)| {
        // A mapping at the root allows every style below it.
        let mut writer = Writer::default();
        writer.out.push_str(start);
        let root = Node::Map(
            vec![("root".to_owned(), node)],
            NodeStyle {
                is_flow: false,
                ..node_style
            },
        );
        let value = writer.block_entries(&root, 0);
        let text = writer.out;
        Known { text, value }
    })
}

fn node_styles() -> impl Strategy<Value = NodeStyle> + Clone {
    (any::<bool>(), any::<bool>(), 0..6_u8).prop_map(|(is_flow, has_anchor, filler)| NodeStyle {
        is_flow,
        has_anchor,
        filler,
    })
}

fn nodes() -> impl Strategy<Value = Node> {
    let plain = |texts: &'static [&'static str], value: Value<'static>| {
        select(texts).prop_map(move |text| Node::Plain(text.to_owned(), value.clone()))
    };
    let int = (any::<i64>(), 0..5_u8).prop_map(|(int, style)| {
        let text = match style {
            0 if int >= 0 => format!("{int:#x}"),
            1 if int >= 0 => format!("{int:#b}"),
            2 if int >= 0 => format!("0{int:o}"),
            3 if int >= 0 => format!("+{int}"),
            _ => int.to_string(),
        };
        Node::Plain(text, Value::Int(int))
    });
    let leaves = prop_oneof![
        plain(&["null", "~", "Null", "NULL"], Value::Null),
        plain(&["true", "True", "yes", "on", "Y", "ON"], Value::Bool(true)),
        plain(&["false", "no", "Off", "n", "FALSE"], Value::Bool(false)),
        plain(&["1.5", "+1.5", "15e-1", "1.50", "1_5e-1"], Value::Float(1.5)),
        plain(
            &["18446744073709551616", "1.8446744073709552e19"],
            Value::Float(18_446_744_073_709_551_616.0)
        ),
        plain(&["-1000", "-1_000", "-0x3e8"], Value::Int(-1000)),
        plain(&["word", "!!str word", "word # c"], Value::from_text("word")),
        plain(
            &["a b:c -d", "\"a\\x20b:c -d\"", "'a b:c -d'"],
            Value::from_text("a b:c -d")
        ),
        plain(&["2020-01-01"], Value::from_text("2020-01-01")),
        int,
        (
            hostile_text(),
            select(&[Quotes::Single, Quotes::Double, Quotes::Literal, Quotes::Tagged][..])
        )
            .prop_map(|(text, quotes)| Node::Text(text, quotes)),
        any::<Index>().prop_map(Node::Alias),
    ];
    leaves.prop_recursive(4, 24, 5, |inner| {
        let fields = || vec((keys(), inner.clone()), 0..5);
        prop_oneof![
            (vec(inner.clone(), 0..5), node_styles()).prop_map(|(items, node_style)| Node::List(items, node_style)),
            (fields(), node_styles()).prop_map(|(fields, node_style)| Node::Map(fields, node_style)),
            (any::<Index>(), fields(), node_styles())
                .prop_map(|(base, fields, node_style)| Node::Merge(base, fields, node_style)),
        ]
    })
}

fn keys() -> impl Strategy<Value = String> {
    let short = |text: String| text.chars().take(60).collect::<String>();
    prop_oneof![4 => select(&["a", "b", "c", "key", "é"][..]).prop_map(str::to_owned), 1 => hostile_text().prop_map(short)]
}

/// A writer of nodes; each method returns the written value.
#[derive(Default)]
struct Writer {
    out: String,
    anchors: Vec<Value<'static>>,
}

impl Writer {
    fn anchor(&mut self, node_style: NodeStyle) -> Option<usize> {
        node_style.has_anchor.then(|| {
            // The index is reserved first, the value follows when complete; a name may be reused.
            let number = self.anchors.len();
            self.anchors.push(Value::Null);
            write!(self.out, " &n{number}").expect("writing to a String never fails");
            number
        })
    }

    fn anchored(&mut self, number: Option<usize>, value: Value<'static>) -> Value<'static> {
        if let Some(number) = number {
            self.anchors[number] = value.clone();
        }
        value
    }

    /// Returns an anchor of a complete value; of a mapping if `is_map`.
    fn earlier(&self, index: Index, is_map: bool) -> Option<usize> {
        let fits = |value: &Value<'_>| {
            if is_map {
                value.as_map().is_some()
            } else {
                *value != Value::Null
            }
        };
        let all: Vec<usize> = (0..self.anchors.len())
            .filter(|&number| fits(&self.anchors[number]))
            .collect();
        (!all.is_empty()).then(|| all[index.index(all.len())])
    }

    fn filler(&mut self, node_style: NodeStyle, indent: usize) {
        match node_style.filler {
            0 => self.out.push('\n'),
            1 => self.out.push_str("# c: - [\"\n"),
            2 => writeln!(self.out, "{:indent$}# é", "").expect("writing to a String never fails"),
            _ => {}
        }
    }

    /// Writes the content after a key or a dash, up to the end of its last line.
    fn block(&mut self, node: &Node, indent: usize) -> Value<'static> {
        match node {
            Node::List(items, node_style) if !node_style.is_flow && !items.is_empty() => {
                let anchor = self.anchor(*node_style);
                self.out.push('\n');
                let value = self.block_items(items, *node_style, indent);
                self.anchored(anchor, value)
            }
            Node::Map(fields, node_style) | Node::Merge(_, fields, node_style)
                if !node_style.is_flow && !fields.is_empty() =>
            {
                let anchor = self.anchor(*node_style);
                self.out.push('\n');
                let value = self.block_entries(node, indent);
                self.anchored(anchor, value)
            }
            Node::Text(text, Quotes::Literal) if is_literal(text) => {
                let (body, chomping) = match text.strip_suffix('\n') {
                    None => (&**text, "-"),
                    Some(body) if body.ends_with('\n') => (body, "+"),
                    Some(body) => (body, ""),
                };
                writeln!(self.out, " |{chomping}").expect("writing to a String never fails");
                for line in body.split('\n') {
                    if line.is_empty() {
                        self.out.push('\n');
                    } else {
                        writeln!(self.out, "{:indent$} {line}", "").expect("writing to a String never fails");
                    }
                }
                Value::from_text(text)
            }
            other => {
                let value = self.flow(other, true);
                self.out.push('\n');
                value
            }
        }
    }

    fn block_items(&mut self, items: &[Node], node_style: NodeStyle, indent: usize) -> Value<'static> {
        let mut values = Vec::new();
        for item in items {
            self.filler(node_style, indent);
            write!(self.out, "{:indent$}-", "").expect("writing to a String never fails");
            values.push(self.block(item, indent + 1 + usize::from(node_style.filler)));
        }
        Value::List(values)
    }

    fn block_entries(&mut self, node: &Node, indent: usize) -> Value<'static> {
        let (base, fields, node_style) = match node {
            Node::Map(fields, node_style) => (None, fields, *node_style),
            Node::Merge(base, fields, node_style) => (self.earlier(*base, true), fields, *node_style),
            _ => unreachable!("it is a mapping"),
        };
        if let Some(base) = base {
            writeln!(self.out, "{:indent$}<<: *n{base}", "").expect("writing to a String never fails");
        }
        let mut entries = self.base(base);
        for (key, value) in fields {
            self.filler(node_style, indent);
            write!(self.out, "{:indent$}", "").expect("writing to a String never fails");
            let explicit = node_style.filler == 4;
            if explicit {
                self.out.push_str("? ");
            }
            self.key(key);
            if explicit {
                write!(self.out, "\n{:indent$}", "").expect("writing to a String never fails");
            }
            self.out.push(':');
            let value = self.block(value, indent + 1 + usize::from(node_style.filler));
            entries.push((Cow::Owned(key.clone()), value));
        }
        Value::Map(Map::from_entries(entries))
    }

    fn base(&self, base: Option<usize>) -> Vec<(Cow<'static, str>, Value<'static>)> {
        let fields = base.and_then(|base| self.anchors[base].as_map()).map(Map::iter);
        let fields = fields.into_iter().flatten();
        fields
            .map(|(key, value)| (Cow::Owned(key.to_owned()), value.clone()))
            .collect()
    }

    fn key(&mut self, key: &str) {
        if key == "key" || key == "é" {
            self.out.push_str(key);
        } else {
            write_text(key, &mut self.out);
        }
    }

    /// Writes a value in one line, after a blank if needed.
    fn flow(&mut self, node: &Node, after_indicator: bool) -> Value<'static> {
        let blank = if after_indicator { " " } else { "" };
        let (anchor, value) = match node {
            Node::Plain(text, value) => {
                // A comment would end the line in the middle of a collection.
                let text = text.split(" #").next().unwrap_or_default();
                write!(self.out, "{blank}{text}").expect("writing to a String never fails");
                (None, value.clone())
            }
            Node::Text(text, Quotes::Single) if text.chars().all(is_printable) => {
                write!(self.out, "{blank}'{}'", text.replace('\'', "''")).expect("writing to a String never fails");
                (None, Value::from_text(text))
            }
            Node::Text(text, Quotes::Tagged)
                if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !text.is_empty() =>
            {
                write!(self.out, "{blank}!!str {text}").expect("writing to a String never fails");
                (None, Value::from_text(text))
            }
            Node::Text(text, _) => {
                self.out.push_str(blank);
                write_text(text, &mut self.out);
                (None, Value::from_text(text))
            }
            Node::Alias(index) => {
                if let Some(number) = self.earlier(*index, false) {
                    // Without a blank, the name could extend into the following text.
                    write!(self.out, "{blank}*n{number} ").expect("writing to a String never fails");
                    (None, self.anchors[number].clone())
                } else {
                    write!(self.out, "{blank}null").expect("writing to a String never fails");
                    (None, Value::Null)
                }
            }
            Node::List(items, node_style) => {
                let anchor = self.anchor(*node_style);
                self.out.push_str(" [");
                let values = items.iter().map(|item| {
                    let value = self.flow(item, node_style.filler == 3);
                    self.out.push(',');
                    value
                });
                let values = values.collect();
                self.out.push(']');
                (anchor, Value::List(values))
            }
            Node::Map(fields, node_style) | Node::Merge(_, fields, node_style) => {
                let base = match node {
                    Node::Merge(base, ..) => self.earlier(*base, true),
                    _ => None,
                };
                let anchor = self.anchor(*node_style);
                self.out.push_str(" {");
                if let Some(base) = base {
                    write!(self.out, "<<: *n{base} ,").expect("writing to a String never fails");
                }
                let mut entries = self.base(base);
                for (key, value) in fields {
                    self.key(key);
                    self.out.push(':');
                    let value = self.flow(value, true);
                    self.out.push(',');
                    entries.push((Cow::Owned(key.clone()), value));
                }
                self.out.push('}');
                (anchor, Value::Map(Map::from_entries(entries)))
            }
        };
        self.anchored(anchor, value)
    }
}

/// Returns true if a literal block without an indentation indicator can represent this text.
fn is_literal(text: &str) -> bool {
    !text.trim_matches(['\n', ' ']).is_empty()
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|char| char == '\n' || is_printable(char))
}

fn is_printable(char: char) -> bool {
    !char.is_control() && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
