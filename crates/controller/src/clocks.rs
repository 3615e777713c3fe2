//! The clocks of the process.

use jiff::Timestamp;
use std::time::Instant;

/// The clocks of the process.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Returns the wall clock time.
    pub time: fn() -> Timestamp,
    /// Returns the monotonic time, which cannot be set.
    pub elapsed: fn() -> Instant,
}
