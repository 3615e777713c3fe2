//! What is wrong with a text, and where.

use std::borrow::Cow;

/// Something wrong at a byte of the text at hand; it becomes an [`Error`](super::Error) once the line is known.
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
