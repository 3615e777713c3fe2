//! The error of an object that cannot be parsed.

use thiserror::Error;

/// An object that cannot be parsed: the API server accepts no such object. The message describes the invalid JSON or field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidObject(Box<str>);

impl InvalidObject {
    pub fn new(message: &str) -> Self {
        Self(message.into())
    }

    /// Creates the error of a JSON parser, which may quote values of the object: not for Secrets.
    pub fn json(error: &serde_json::Error) -> Self {
        Self(error.to_string().into())
    }
}
