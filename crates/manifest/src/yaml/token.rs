//! The tokens of YAML.

use std::borrow::Cow;

use super::resolve::ScalarStyle;

/// A token and the byte at which it starts.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: TokenKind<'a>,
    /// The flow level at which this token is recorded as a possible start of a key, plus one; otherwise zero.
    pub(super) key_level: usize,
}

#[derive(Debug)]
pub(super) enum TokenKind<'a> {
    /// The end of the text.
    End,
    /// `%YAML` and the version.
    Version(u8, u8),
    /// `%TAG`, the handle and its prefix.
    TagHandle(Box<TagPart<'a>>),
    /// `---`
    DocumentStart,
    /// `...`
    DocumentEnd,
    /// The start of a list with `-` entries.
    BlockList,
    /// The start of an indented mapping.
    BlockMap,
    /// The end of the innermost indented list or mapping.
    BlockEnd,
    /// `[`
    FlowList,
    /// `]`
    FlowListEnd,
    /// `{`
    FlowMap,
    /// `}`
    FlowMapEnd,
    /// `-`
    Dash,
    /// `,`
    Comma,
    /// The start of a key.
    Key,
    /// `:`
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// The handle, which may be empty, and the rest.
    Tag(Box<TagPart<'a>>),
    Scalar(Cow<'a, str>, ScalarStyle),
}

/// A handle, which may be empty, and the following name.
#[derive(Debug)]
pub(super) struct TagPart<'a> {
    pub(super) handle: &'a str,
    pub(super) name: Vec<u8>,
}
