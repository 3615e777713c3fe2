//! Which Applications are to be looked at, and when: what happens at once is looked at once, what failed is tried again later
//! and later, and Argo CD is not asked too often to look again.

use super::index::Noticed;
use super::seen::Place;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long to wait for more of the same: an agent writes the status of a work in several steps.
const TOGETHER: Duration = Duration::from_millis(200);
/// How long the next write to the same Application waits at least.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);
/// How long the next refresh of the same Application waits at least.
const BETWEEN_REFRESHES: Duration = Duration::from_secs(30);
/// How long the next refresh of any Application waits at least.
const BETWEEN_ALL_REFRESHES: Duration = Duration::from_millis(200);
/// How long the first retry waits, and the last.
const BACKOFF: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];

/// Which Applications are to be looked at, and when.
#[derive(Debug, Default)]
pub struct Queue {
    entries: HashMap<Place, Entry>,
    due: BTreeSet<(Instant, Place)>,
    refreshed: Option<Instant>,
}

#[derive(Debug, Default)]
struct Entry {
    /// When it is looked at; nothing while it is not to be.
    due: Option<Instant>,
    /// Whether something is being written for it.
    busy: bool,
    /// Whether it was touched meanwhile.
    again: bool,
    /// Whether Argo CD shows something stale of it.
    stale: bool,
    failures: u32,
    written: Option<Instant>,
    refreshed: Option<Instant>,
}

/// An Application that is to be looked at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Where it is.
    pub application: Place,
    /// Whether Argo CD may be asked to look again.
    pub stale: bool,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be written.
    AsItShouldBe,
    /// It was written.
    Written {
        /// Argo CD was asked to look again.
        refreshed: bool,
    },
    /// It could not be written.
    Failed {
        /// How long the API server asks us to wait.
        retry_after: Option<Duration>,
    },
}

impl Queue {
    /// Something has happened that concerns an Application.
    pub fn touch(&mut self, application: &Place, noticed: Noticed, now: Instant) {
        let entry = self.entries.entry(application.clone()).or_default();
        match noticed {
            Noticed::Nothing => {}
            Noticed::Yes => entry.stale = false,
            Noticed::No => entry.stale = true,
        }
        if entry.busy {
            entry.again = true;
            return;
        }
        // What fails is not tried more often because it is touched.
        if entry.due.is_some() && entry.failures > 0 {
            return;
        }
        let next = entry.written.map_or(now, |written| written + BETWEEN_WRITES);
        let next = next.max(now + TOGETHER);
        if entry.due.is_none_or(|due| next < due) {
            self.at(application, next);
        }
    }

    /// When the next is to be looked at.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// One that is to be looked at now. How it went is to be told.
    pub fn pop(&mut self, now: Instant) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        let (_, application) = self.due.pop_first()?;
        let is_long_ago = |at: Option<Instant>, ago| at.is_none_or(|at| at + ago <= now);
        let all = is_long_ago(self.refreshed, BETWEEN_ALL_REFRESHES);
        let entry = self.entries.get_mut(&application)?;
        (entry.due, entry.busy, entry.again) = (None, true, false);
        let stale = entry.stale && all && is_long_ago(entry.refreshed, BETWEEN_REFRESHES);
        if stale {
            // Until it is told how it went: the next that is looked at shall not be asked for as well.
            self.refreshed = Some(now);
        }
        Some(Due { application, stale })
    }

    /// How it went with one that was to be looked at; `jitter` is from 0 to 1.
    pub fn done(&mut self, due: &Due, outcome: &Outcome, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(&due.application) else {
            return;
        };
        entry.busy = false;
        let mut next = None;
        match outcome {
            Outcome::AsItShouldBe => {
                entry.failures = 0;
                // Where it may be refreshed and is not, nothing stale is left to be seen.
                entry.stale &= !due.stale;
                next = entry.again.then_some(now + TOGETHER);
            }
            Outcome::Written { refreshed } => {
                entry.failures = 0;
                entry.written = Some(now);
                entry.stale &= !due.stale;
                if *refreshed {
                    entry.refreshed = Some(now);
                }
                next = entry.again.then_some(now + BETWEEN_WRITES).or(next);
            }
            Outcome::Failed { retry_after } => {
                let wait = backoff(entry.failures).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
                entry.failures = entry.failures.saturating_add(1);
                next = Some(now + wait.max(retry_after.unwrap_or_default()));
            }
        }
        if entry.stale && next.is_none() {
            let own = entry.refreshed.map(|at| at + BETWEEN_REFRESHES);
            let all = self.refreshed.map(|at| at + BETWEEN_ALL_REFRESHES);
            next = Some(own.max(all).unwrap_or(now).max(now + TOGETHER));
        }
        let application = due.application.clone();
        match next {
            Some(next) => self.at(&application, next),
            None if self.entries[&application].is_forgotten(now) => drop(self.entries.remove(&application)),
            None => {}
        }
    }

    fn at(&mut self, application: &Place, at: Instant) {
        if let Some(entry) = self.entries.get_mut(application) {
            if let Some(before) = entry.due.replace(at) {
                self.due.remove(&(before, application.clone()));
            }
            self.due.insert((at, application.clone()));
        }
    }
}

impl Entry {
    /// Whether nothing of it matters any more.
    fn is_forgotten(&self, now: Instant) -> bool {
        let is_past = |at: Option<Instant>, wait| at.is_none_or(|at| at + wait <= now);
        is_past(self.written, BETWEEN_WRITES) && is_past(self.refreshed, BETWEEN_REFRESHES)
    }
}

fn backoff(failures: u32) -> Duration {
    let [first, last] = BACKOFF;
    first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(last)
}
