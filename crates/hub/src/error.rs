//! Formats errors of an API server as one line.

use kube::Error;
use manifest::problem::plain;
use std::error::Error as StdError;

/// Returns the HTTP status code with which the API server rejected a request.
#[must_use]
pub fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Returns the root cause of an error: the outer causes only say that an inner one failed.
#[must_use]
pub fn reason(error: &Error) -> String {
    if let Error::Api(status) = error {
        return status.message.clone();
    }
    let mut cause: &dyn StdError = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    match cause.downcast_ref() {
        Some(error) => plain(error),
        None => cause.to_string(),
    }
}
