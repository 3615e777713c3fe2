//! Panics: a defect that one object triggers stops the work for that object only, and is one line of the log.

use std::panic::{self, AssertUnwindSafe};
use tracing::error;

/// Runs something that may panic.
///
/// # Errors
/// That it panicked. What it was about to change may be changed in part: the caller reads it anew, or leaves it.
pub(super) fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// Proof of a panic, without its message: that may quote an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Panicked;

/// Logs every panic as one event that names the line of source code, instead of several lines of text on standard error. A message
/// is only included if it is a constant of the program: others may quote what a Secret holds.
pub(super) fn log() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let why = panic
            .payload()
            .downcast_ref::<&'static str>()
            .copied()
            .unwrap_or_default();
        error!(location, why, "panic: this is a bug, please report it");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_without_its_message() {
        assert_eq!(guard(|| 7), Ok(7));
        let panicked = guard(|| -> u8 { panic!("the password is {}", "hunter2") });
        assert_eq!(format!("{panicked:?}"), "Err(Panicked)");
    }
}
