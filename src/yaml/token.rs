//! The words of YAML.

use std::borrow::Cow;

use super::resolve::Style;

/// A token and the byte at which it starts.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: Kind<'a>,
    /// The flow level at which this token is noted as the possible start of a key, plus one; otherwise zero.
    pub(super) key_level: usize,
}

#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// The end of the text.
    End,
    /// `%YAML` and the version.
    Version(u8, u8),
    /// `%TAG`, the handle and what it stands for.
    TagHandle(Box<TagPart<'a>>),
    /// `---`
    DocumentStart,
    /// `...`
    DocumentEnd,
    /// A list with `-` starts, has an entry.
    BlockList,
    /// A mapping by indentation starts.
    BlockMap,
    /// The innermost list or mapping by indentation ends.
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
    /// A key follows.
    Key,
    /// `:`
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// The handle, which may be empty, and the rest.
    Tag(Box<TagPart<'a>>),
    Scalar(Cow<'a, str>, Style),
}

/// A handle, which may be empty, and the name behind it.
#[derive(Debug)]
pub(super) struct TagPart<'a> {
    pub(super) handle: &'a str,
    pub(super) name: Vec<u8>,
}
