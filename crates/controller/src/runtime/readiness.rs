//! Readiness: the controller decides nothing before the caches of all kinds are synced.

use crate::watches::Kind;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The kinds whose caches are not synced yet.
#[derive(Debug)]
pub struct Readiness {
    waiting: Mutex<BTreeSet<Kind>>,
}

impl Readiness {
    /// Waits for the caches of these kinds.
    #[must_use]
    pub fn new(kinds: BTreeSet<Kind>) -> Self {
        Self {
            waiting: Mutex::new(kinds),
        }
    }

    /// Records that the cache of a kind is synced. Returns true if it was the last.
    pub fn synced(&self, kind: Kind) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&kind) && waiting.is_empty()
    }

    /// Returns true if the cache of this kind is not synced yet.
    pub fn waits_for(&self, plural: &str) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().any(|kind| kind.resource().plural == plural)
    }

    /// Returns an error that names the kinds whose caches are not synced yet.
    pub(crate) fn check(&self) -> Result<(), String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = waiting.iter().map(|kind| kind.resource().plural).collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(format!("waiting for: {}", names.join(", ")))
        }
    }
}
