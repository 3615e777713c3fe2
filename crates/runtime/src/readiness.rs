//! Readiness: the controller decides nothing before the caches of all kinds are synced.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kinds whose caches are not synced yet, with the names of their resources.
#[derive(Debug)]
pub struct Readiness<K> {
    waiting: Mutex<BTreeMap<K, &'static str>>,
}

impl<K: Ord> Readiness<K> {
    pub fn new(kinds: impl IntoIterator<Item = (K, &'static str)>) -> Self {
        Self {
            waiting: Mutex::new(kinds.into_iter().collect()),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<K, &'static str>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_for(&self, kind: K, plural: &'static str) {
        self.waiting().insert(kind, plural);
    }

    /// Records that the cache of a kind is synced. Returns true if it was the last.
    pub fn synced(&self, kind: &K) -> bool {
        let mut waiting = self.waiting();
        waiting.remove(kind).is_some() && waiting.is_empty()
    }

    pub fn waits_for(&self, plural: &str) -> bool {
        self.waiting().values().any(|name| *name == plural)
    }

    pub fn check(&self) -> Result<(), String> {
        let names: Vec<_> = self.waiting().values().copied().collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(format!("waiting for: {}", names.join(", ")))
        }
    }
}
