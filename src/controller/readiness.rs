//! Whether all there is on the hub is known: before that, nothing is decided.

use super::watches::Kind;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Which watches have not told yet what there is.
#[derive(Debug)]
pub(super) struct Readiness {
    waiting: Mutex<BTreeSet<Kind>>,
}

impl Readiness {
    /// Waits for these.
    pub(super) fn new(kinds: BTreeSet<Kind>) -> Self {
        Self {
            waiting: Mutex::new(kinds),
        }
    }

    /// Notes that a watch has told all; whether it was the last.
    pub(super) fn synced(&self, kind: Kind) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&kind) && waiting.is_empty()
    }

    /// Whether a watch of such objects has yet to tell all.
    pub(super) fn waits_for(&self, plural: &str) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().any(|kind| kind.resource().plural == plural)
    }

    /// What is waited for, if something is.
    pub(super) fn check(&self) -> Result<(), String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = waiting.iter().map(|kind| kind.resource().plural).collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(format!("waiting for: {}", names.join(", ")))
        }
    }
}
