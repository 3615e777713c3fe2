//! Progress on a terminal.

use super::say;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The time before the first update.
const SILENT: Duration = Duration::from_secs(2);
/// The interval of updates.
const INTERVAL: Duration = Duration::from_secs(1);

/// An escape code that clears the line of the cursor.
pub(super) const CLEAR_LINE: &str = "\r\x1b[K";

/// Calls `work`. If it takes longer than two seconds and standard error is a terminal, shows `what` it does, such as `reading the hub`,
/// and for how long, until it returns.
pub(super) fn shown<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        // The sender is dropped when the work returns or panics.
        let (_working, wait) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut elapsed = SILENT;
            if wait.recv_timeout(SILENT) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            loop {
                say(&format!("{CLEAR_LINE}{what} … {} s", elapsed.as_secs()));
                if wait.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                elapsed += INTERVAL;
            }
            say(CLEAR_LINE);
        });
        work()
    })
}
