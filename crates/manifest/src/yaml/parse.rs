//! Parses tokens to nodes by the grammar of YAML 1.1, as go-yaml v2 follows it.

use std::borrow::Cow;

use super::Fault;
use super::json::DEPTH;
use super::resolve::{ScalarStyle, Tag};
use super::scan::{Scanner, TOO_DEEP};
use super::token::{TagPart, Token, TokenKind};

/// The reason why a document was not read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The document is invalid.
    Fault(Fault),
    /// The document needs more than a sequence of nodes, see [`graph`](super::graph).
    NeedsGraph,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The properties that precede a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Properties<'a> {
    pub(super) anchor: Option<&'a str>,
    pub(super) tag: Option<Tag>,
}

/// A consumer of the nodes of a document in source order; the children of a mapping are key, value, key, value….
pub(super) trait Sink<'a> {
    fn scalar(
        &mut self,
        at: usize,
        text: Cow<'a, str>,
        style: ScalarStyle,
        properties: Properties<'a>,
    ) -> Result<(), Stop>;
    fn alias(&mut self, at: usize, name: &'a str) -> Result<(), Stop>;
    fn open_list(&mut self, at: usize, anchor: Option<&'a str>) -> Result<(), Stop>;
    fn open_map(&mut self, at: usize, anchor: Option<&'a str>) -> Result<(), Stop>;
    /// Closes the innermost open collection.
    fn close(&mut self) -> Result<(), Stop>;
}

/// Parses the first document of a text. Returns the position of its root node, if any.
///
/// The text after the root node is not read, except for one token, which must be valid.
pub(super) fn document<'a>(scanner: Scanner<'a>, sink: &mut impl Sink<'a>) -> Result<Option<usize>, Stop> {
    let mut parser = YamlParser {
        scanner,
        sink,
        handles: Vec::new(),
    };
    if !parser.prologue()? {
        return Ok(None);
    }
    let start = parser.scanner.position();
    parser.node(Context::List, 0)?;
    parser.scanner.peek()?;
    Ok(Some(start))
}

/// A method that parses the entries of a collection at a depth.
type ParseEntries<P> = fn(&mut P, usize) -> Result<(), Stop>;

/// The place of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Context {
    /// Inside brackets.
    Flow,
    /// In a list with dashes, or the root.
    List,
    /// In an indented mapping, whose lists need no further indentation.
    Map,
}

struct YamlParser<'s, 'a, S> {
    scanner: Scanner<'a>,
    sink: &'s mut S,
    /// The prefixes of tag handles that directives declare.
    handles: Vec<TagPart<'a>>,
}

impl<'a, S: Sink<'a>> YamlParser<'_, 'a, S> {
    fn fault<T>(&self, message: &'static str) -> Result<T, Stop> {
        Err(Stop::Fault(Fault::new(self.scanner.position(), message)))
    }

    /// Reads the tokens before the root node. Returns true if there is a root node.
    ///
    /// Directives only have an effect if they and the following `---` are not separate lines for apimachinery's splitter, which
    /// recognizes no line break but LF.
    fn prologue(&mut self) -> Result<bool, Stop> {
        let mut version = false;
        let mut directives = false;
        loop {
            match self.scanner.peek()? {
                TokenKind::Version(..) if version => return self.fault("duplicate \"%YAML\""),
                TokenKind::Version(1, 1) => version = true,
                TokenKind::Version(..) => return self.fault("only version 1.1 of YAML can be read"),
                TokenKind::TagHandle(declared) if self.handles.iter().any(|known| known.handle == declared.handle) => {
                    return self.fault("duplicate \"%TAG\" for this handle");
                }
                TokenKind::TagHandle(_) => {}
                TokenKind::DocumentStart => break,
                TokenKind::End if !directives => return Ok(false),
                _ if directives => return self.fault("after a directive (\"%\") a line \"---\" is expected"),
                _ => return Ok(true),
            }
            directives = true;
            if let TokenKind::TagHandle(declared) = self.scanner.take().kind {
                self.handles.push(*declared);
            }
        }
        self.scanner.take();
        let is_empty = matches!(
            self.scanner.peek()?,
            TokenKind::Version(..)
                | TokenKind::TagHandle(..)
                | TokenKind::DocumentStart
                | TokenKind::DocumentEnd
                | TokenKind::End
        );
        Ok(!is_empty)
    }

    /// Returns the tag of a handle and a name, if the handle is known.
    fn tag(&self, part: &TagPart<'a>) -> Option<Tag> {
        let declared = self.handles.iter().find(|known| known.handle == part.handle);
        let prefix = match (declared, part.handle) {
            (Some(declared), _) => declared.name.as_slice(),
            (None, "") => b"",
            (None, "!") => b"!",
            (None, "!!") => b"tag:yaml.org,2002:",
            (None, _) => return None,
        };
        Some(Tag::from_name(&[prefix, &part.name].concat()))
    }

    fn empty(&mut self) -> Result<(), Stop> {
        let at = self.scanner.position();
        self.sink
            .scalar(at, Cow::Borrowed(""), ScalarStyle::Plain, Properties::default())
    }

    fn properties(&mut self) -> Result<Option<Properties<'a>>, Stop> {
        let mut properties = Properties::default();
        let mut any = false;
        loop {
            match self.scanner.peek()? {
                TokenKind::Anchor(_) if properties.anchor.is_none() => {}
                TokenKind::Tag(..) if properties.tag.is_none() => {}
                _ => return Ok(any.then_some(properties)),
            }
            any = true;
            match self.scanner.take() {
                Token {
                    kind: TokenKind::Anchor(name),
                    ..
                } => properties.anchor = Some(name),
                Token {
                    at,
                    kind: TokenKind::Tag(part),
                    ..
                } => {
                    let Some(tag) = self.tag(&part) else {
                        let message = "the part of this tag between the exclamation marks is not declared";
                        return Err(Fault::new(at, message).into());
                    };
                    properties.tag = Some(tag);
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, context: Context, depth: usize) -> Result<(), Stop> {
        let mut properties = None;
        if matches!(self.scanner.peek()?, TokenKind::Anchor(_) | TokenKind::Tag(..)) {
            properties = self.properties()?;
        }
        let (is_map, entries): (bool, ParseEntries<Self>) = match self.scanner.peek()? {
            TokenKind::Scalar(..) => {
                let Token {
                    at,
                    kind: TokenKind::Scalar(text, style),
                    ..
                } = self.scanner.take()
                else {
                    return Ok(());
                };
                return self.sink.scalar(at, text, style, properties.unwrap_or_default());
            }
            &TokenKind::Alias(name) if properties.is_none() => {
                let at = self.scanner.take().at;
                return self.sink.alias(at, name);
            }
            TokenKind::FlowList => (false, Self::flow_list),
            TokenKind::FlowMap => (true, Self::flow_map),
            TokenKind::Dash if context == Context::Map => (false, Self::indentless_list),
            TokenKind::BlockList if context != Context::Flow => (false, Self::block_list),
            TokenKind::BlockMap if context != Context::Flow => (true, Self::block_map),
            _ => match properties {
                None => return self.fault("a value is missing or cannot start like this"),
                Some(properties) => {
                    let at = self.scanner.position();
                    return self.sink.scalar(at, Cow::Borrowed(""), ScalarStyle::Plain, properties);
                }
            },
        };
        if depth == DEPTH {
            return self.fault(TOO_DEEP);
        }
        let at = self.scanner.position();
        let anchor = properties.and_then(|properties| properties.anchor);
        if is_map {
            self.sink.open_map(at, anchor)?;
        } else {
            self.sink.open_list(at, anchor)?;
        }
        entries(self, depth + 1)?;
        self.sink.close()
    }

    /// Parses a node, unless the next token shows that it is missing.
    fn node_unless(
        &mut self,
        is_missing: impl Fn(&TokenKind<'a>) -> bool,
        context: Context,
        depth: usize,
    ) -> Result<(), Stop> {
        if is_missing(self.scanner.peek()?) {
            self.empty()
        } else {
            self.node(context, depth)
        }
    }

    fn block_list(&mut self, depth: usize) -> Result<(), Stop> {
        self.scanner.take();
        loop {
            match self.scanner.peek()? {
                TokenKind::Dash => {}
                TokenKind::BlockEnd => break,
                _ => return self.fault("this is indented like a list entry but does not start with \"- \""),
            }
            self.scanner.take();
            let is_missing = |kind: &_| matches!(kind, TokenKind::Dash | TokenKind::BlockEnd);
            self.node_unless(is_missing, Context::List, depth)?;
        }
        self.scanner.take();
        Ok(())
    }

    /// Parses a list that is not indented further than its key; its first token is a dash.
    fn indentless_list(&mut self, depth: usize) -> Result<(), Stop> {
        while matches!(self.scanner.peek()?, TokenKind::Dash) {
            self.scanner.take();
            let is_missing = |kind: &_| matches!(kind, TokenKind::Dash) || ends_entry(kind);
            self.node_unless(is_missing, Context::List, depth)?;
        }
        Ok(())
    }

    fn block_map(&mut self, depth: usize) -> Result<(), Stop> {
        self.scanner.take();
        loop {
            match self.scanner.peek()? {
                TokenKind::Key => {}
                TokenKind::BlockEnd => break,
                _ => return self.fault("a key is expected here: check the indentation and the quotes"),
            }
            self.scanner.take();
            self.node_unless(ends_entry, Context::Map, depth)?;
            if matches!(self.scanner.peek()?, TokenKind::Value) {
                self.scanner.take();
                self.node_unless(ends_entry, Context::Map, depth)?;
            } else {
                self.empty()?;
            }
        }
        self.scanner.take();
        Ok(())
    }

    fn flow_list(&mut self, depth: usize) -> Result<(), Stop> {
        self.scanner.take();
        let mut is_first = true;
        while !matches!(self.scanner.peek()?, TokenKind::FlowListEnd) {
            if !is_first {
                self.comma("a \",\" or \"]\" is missing")?;
            }
            is_first = false;
            match self.scanner.peek()? {
                TokenKind::Key => self.flow_pair(depth)?,
                TokenKind::FlowListEnd => break,
                _ => self.node(Context::Flow, depth)?,
            }
        }
        self.scanner.take();
        Ok(())
    }

    /// Parses a mapping of a single pair inside `[]`.
    fn flow_pair(&mut self, depth: usize) -> Result<(), Stop> {
        if depth == DEPTH {
            return self.fault(TOO_DEEP);
        }
        let at = self.scanner.take().at;
        self.sink.open_map(at, None)?;
        match self.scanner.peek()? {
            TokenKind::Value | TokenKind::Comma | TokenKind::FlowListEnd => {
                // go-yaml loses the token that reveals the missing key.
                self.scanner.take();
                self.empty()?;
            }
            _ => self.node(Context::Flow, depth + 1)?,
        }
        self.flow_value(depth + 1, |kind| {
            matches!(kind, TokenKind::Comma | TokenKind::FlowListEnd)
        })?;
        self.sink.close()
    }

    fn flow_map(&mut self, depth: usize) -> Result<(), Stop> {
        self.scanner.take();
        let mut is_first = true;
        while !matches!(self.scanner.peek()?, TokenKind::FlowMapEnd) {
            if !is_first {
                self.comma("a \",\" or \"}\" is missing")?;
            }
            is_first = false;
            match self.scanner.peek()? {
                TokenKind::Key => {
                    self.scanner.take();
                    let is_end = |kind: &_| matches!(kind, TokenKind::Comma | TokenKind::FlowMapEnd);
                    let is_missing = |kind: &_| matches!(kind, TokenKind::Value) || is_end(kind);
                    self.node_unless(is_missing, Context::Flow, depth)?;
                    self.flow_value(depth, is_end)?;
                }
                TokenKind::FlowMapEnd => break,
                _ => {
                    self.node(Context::Flow, depth)?;
                    self.empty()?;
                }
            }
        }
        self.scanner.take();
        Ok(())
    }

    fn comma(&mut self, missing: &'static str) -> Result<(), Stop> {
        if !matches!(self.scanner.peek()?, TokenKind::Comma) {
            return self.fault(missing);
        }
        self.scanner.take();
        Ok(())
    }

    /// Parses the value of a key inside brackets; some tokens reveal that it is missing.
    fn flow_value(&mut self, depth: usize, is_end: impl Fn(&TokenKind<'a>) -> bool) -> Result<(), Stop> {
        if !matches!(self.scanner.peek()?, TokenKind::Value) {
            return self.empty();
        }
        self.scanner.take();
        self.node_unless(is_end, Context::Flow, depth)
    }
}

/// Returns true for a token before which the key or the value of an indented mapping is missing.
fn ends_entry(kind: &TokenKind<'_>) -> bool {
    matches!(kind, TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd)
}
