//! Panic handling: a defect that one object triggers stops only the work for that object, and is one line of the log.

use std::panic::{self, AssertUnwindSafe};
use tracing::error;

// A program built with `panic = "abort"` cannot catch a panic.
const _: () = assert!(cfg!(panic = "unwind"));

/// Runs code that may panic. After a panic, the state that it changes may be changed in part: the caller reads it again or
/// discards it.
pub fn guard<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// Proof of a panic, without the panic message, which may quote an object.
#[derive(Debug, PartialEq, Eq)]
pub struct Panicked;

/// Logs every panic as one event that names the line of source code, instead of several lines of text on standard error. A
/// message is included only if it is a constant of the program: others may quote the contents of a Secret.
pub fn log() {
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

    /// Returns a text that is not a constant.
    fn password() -> String {
        "hunter2".to_owned()
    }

    #[test]
    fn panic_error_does_not_contain_its_message() {
        assert_eq!(guard(|| 7), Ok(7));
        let panicked = guard(|| -> u8 { panic!("the password is {}", password()) });
        assert_eq!(format!("{panicked:?}"), "Err(Panicked)");
    }

    /// The program that [`panic_is_one_line_in_the_log`] starts, as a process has one panic hook and one log.
    #[test]
    #[ignore = "started by another test"]
    fn panics_twice() {
        crate::telemetry::init(
            crate::telemetry::Level::Info,
            crate::telemetry::Format::Text,
            &["runtime"],
        );
        log();
        assert!(guard(|| panic!("a constant")).is_err());
        assert!(guard(|| panic!("the password is {}", password())).is_err());
    }

    #[test]
    fn panic_is_one_line_in_the_log() {
        let itself = std::env::current_exe().expect("the program of the tests");
        let test = "panics::tests::panics_twice";
        let output = std::process::Command::new(itself)
            .args(["--exact", test, "--ignored", "--nocapture"])
            .output()
            .expect("it can be started");
        let log = String::from_utf8(output.stderr).expect("a text");
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), 2, "{log}");
        let is_bug = |line: &&str| line.contains("ERROR") && line.contains("panic: this is a bug");
        assert!(lines.iter().all(is_bug), "{log}");
        assert!(lines.iter().all(|line| line.contains("src/panics.rs:")), "{log}");
        assert!(
            lines[0].ends_with("why=\"a constant\"") && !log.contains("hunter2"),
            "{log}"
        );
    }
}
