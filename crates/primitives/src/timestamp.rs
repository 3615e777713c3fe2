//! Times as text in objects.

use jiff::Timestamp;

/// Formats a time like Kubernetes: in UTC, to the second.
pub fn format_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
