//! An error at a position of a text.

use std::borrow::Cow;

/// An error at a byte of the current text; it becomes an [`YamlError`](super::YamlError) once the line is known.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: Cow<'static, str>,
}

impl Fault {
    pub(super) fn new(at: usize, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}
