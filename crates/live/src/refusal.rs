//! The reason why a request has no answer.

use http::StatusCode;
use manifest::text::{one_line, shortened};
use serde_json::json;

/// The maximum size of a message, in bytes: parts of it are written by clusters.
const LINE_MAX: usize = 1_000;

/// A reason, in one line, with the status of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    /// The status.
    pub status: StatusCode,
    /// The problem and its remedy.
    pub line: String,
    /// True if the cluster would refuse each request, not only that for one object.
    pub is_general: bool,
}

impl HttpRefusal {
    /// Creates a refusal.
    pub fn new(status: StatusCode, line: impl AsRef<str>) -> Self {
        let line = shortened(&one_line(line.as_ref()), LINE_MAX).into_owned();
        Self {
            status,
            line,
            is_general: false,
        }
    }

    /// The cluster would refuse each request.
    pub(crate) fn general(self) -> Self {
        Self {
            is_general: true,
            ..self
        }
    }

    /// The request is invalid.
    pub fn invalid(line: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, line)
    }

    /// The object is not one that the request may ask for.
    pub fn not_found(line: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, line)
    }

    /// A peer answers nonsense.
    pub fn nonsense(line: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, line)
    }

    /// A cluster cannot be reached.
    pub fn unreachable(line: impl AsRef<str>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, line)
    }

    /// Returns the body of the response.
    pub fn body(&self) -> String {
        json!({"error": self.line}).to_string()
    }
}
