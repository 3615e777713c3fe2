//! Which objects are to be looked at for a promise, and when: what happens at once is looked at once, what failed is tried again later
//! and later, and Argo CD is not asked too often to look again.

use super::index::Noticed;
use super::seen::Place;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long to wait for more of the same: an agent writes the status of a work in several steps.
const TOGETHER: Duration = Duration::from_millis(200);
/// How long the next refresh of the same Application waits at least.
const BETWEEN_REFRESHES: Duration = Duration::from_secs(30);
/// How long the next refresh of any Application waits at least.
const BETWEEN_ALL_REFRESHES: Duration = Duration::from_millis(200);
/// How long the first retry waits, and the last.
const BACKOFF: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];
/// What has failed so often in a row is told of: a conflict now and then is as it should be.
const FAILING: u32 = 3;

/// Which objects are to be looked at, and when.
#[derive(Debug)]
pub struct Queue {
    /// How long the next write for the same object waits at least.
    pause: Duration,
    entries: HashMap<Place, Entry>,
    due: BTreeSet<(Instant, Place)>,
    refreshed: Option<Instant>,
    failing: usize,
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

/// An object that is to be looked at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Where it is.
    pub place: Place,
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
    /// Nothing yet, with so long a pause at least between two writes for the same object.
    #[must_use]
    pub fn new(pause: Duration) -> Self {
        Self {
            pause,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            refreshed: None,
            failing: 0,
        }
    }

    /// Something has happened that concerns an object.
    pub fn touch(&mut self, place: &Place, noticed: Noticed, now: Instant) {
        let entry = self.entries.entry(place.clone()).or_default();
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
        let next = entry.written.map_or(now, |written| written + self.pause);
        let next = next.max(now + TOGETHER);
        if entry.due.is_none_or(|due| next < due) {
            self.at(place, next);
        }
    }

    /// When the next is to be looked at.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many have failed three times in a row at least, and are tried again.
    #[must_use]
    pub fn failing(&self) -> usize {
        self.failing
    }

    /// One that is to be looked at now. How it went is to be told.
    pub fn pop(&mut self, now: Instant) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        let (_, place) = self.due.pop_first()?;
        let is_long_ago = |at: Option<Instant>, ago| at.is_none_or(|at| at + ago <= now);
        let all = is_long_ago(self.refreshed, BETWEEN_ALL_REFRESHES);
        let entry = self.entries.get_mut(&place)?;
        (entry.due, entry.busy, entry.again) = (None, true, false);
        let stale = entry.stale && all && is_long_ago(entry.refreshed, BETWEEN_REFRESHES);
        if stale {
            // Until it is told how it went: the next that is looked at shall not be asked for as well.
            self.refreshed = Some(now);
        }
        Some(Due { place, stale })
    }

    /// One that is as it should be is to be looked at again by then, though nothing happens.
    pub fn later(&mut self, place: &Place, at: Instant) {
        let entry = self.entries.entry(place.clone()).or_default();
        if !entry.busy && entry.due.is_none_or(|due| at < due) {
            self.at(place, at);
        }
    }

    /// How it went with one that was to be looked at; `jitter` is from 0 to 1.
    pub fn done(&mut self, due: &Due, outcome: &Outcome, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(&due.place) else {
            return;
        };
        entry.busy = false;
        let was_failing = entry.failures >= FAILING;
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
                next = entry.again.then_some(now + self.pause).or(next);
            }
            Outcome::Failed { retry_after } => {
                let wait = backoff(entry.failures).mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
                entry.failures = entry.failures.saturating_add(1);
                next = Some(now + wait.max(retry_after.unwrap_or_default()));
            }
        }
        self.failing = self.failing + usize::from(entry.failures >= FAILING) - usize::from(was_failing);
        if entry.stale && next.is_none() {
            let own = entry.refreshed.map(|at| at + BETWEEN_REFRESHES);
            let all = self.refreshed.map(|at| at + BETWEEN_ALL_REFRESHES);
            next = Some(own.max(all).unwrap_or(now).max(now + TOGETHER));
        }
        let place = due.place.clone();
        match next {
            Some(next) => self.at(&place, next),
            None if self.entries[&place].is_forgotten(self.pause, now) => drop(self.entries.remove(&place)),
            None => {}
        }
    }

    fn at(&mut self, place: &Place, at: Instant) {
        if let Some(entry) = self.entries.get_mut(place) {
            if let Some(before) = entry.due.replace(at) {
                self.due.remove(&(before, place.clone()));
            }
            self.due.insert((at, place.clone()));
        }
    }
}

impl Entry {
    /// Whether nothing of it matters any more.
    fn is_forgotten(&self, pause: Duration, now: Instant) -> bool {
        let is_past = |at: Option<Instant>, wait| at.is_none_or(|at| at + wait <= now);
        is_past(self.written, pause) && is_past(self.refreshed, BETWEEN_REFRESHES)
    }
}

fn backoff(failures: u32) -> Duration {
    let [first, last] = BACKOFF;
    first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(last)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin to count from")]
mod tests {
    use super::*;

    fn app() -> Place {
        Place::new("argocd", "shop")
    }

    /// A queue, and a stopwatch.
    struct Test {
        queue: Queue,
        start: Instant,
    }

    impl Test {
        fn new() -> Self {
            Self {
                queue: Queue::new(Duration::from_secs(1)),
                start: Instant::now(),
            }
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn touch(&mut self, millis: u64, noticed: Noticed) {
            let now = self.at(millis);
            self.queue.touch(&app(), noticed, now);
        }

        fn pop(&mut self, millis: u64) -> Option<Due> {
            let now = self.at(millis);
            self.queue.pop(now)
        }

        fn done(&mut self, due: &Due, outcome: &Outcome, millis: u64) {
            let now = self.at(millis);
            self.queue.done(due, outcome, now, 0.0);
        }

        /// In how many milliseconds from the start something is due.
        fn next(&self) -> Option<u128> {
            Some((self.queue.next()? - self.start).as_millis())
        }
    }

    const WRITTEN: Outcome = Outcome::Written { refreshed: false };
    const FAILED: Outcome = Outcome::Failed { retry_after: None };

    #[test]
    fn what_happens_at_once_is_looked_at_once() {
        let mut test = Test::new();
        test.touch(0, Noticed::Nothing);
        test.touch(100, Noticed::Nothing);
        assert_eq!((test.next(), test.pop(199)), (Some(200), None));
        let due = test.pop(200).expect("it is due");
        assert_eq!(test.pop(200), None);
        test.done(&due, &WRITTEN, 210);
        assert_eq!(test.next(), None);
    }

    #[test]
    fn a_change_while_it_is_written_is_looked_at_after_that() {
        let mut test = Test::new();
        test.touch(0, Noticed::Nothing);
        let due = test.pop(200).expect("it is due");
        test.touch(250, Noticed::Nothing);
        assert_eq!(test.pop(5000), None, "not twice at a time");
        test.done(&due, &WRITTEN, 300);
        assert_eq!(test.next(), Some(1300), "not too often");
        let due = test.pop(1300).expect("it is due");
        test.done(&due, &Outcome::AsItShouldBe, 1300);
        assert_eq!(test.next(), None);
        test.touch(60_000, Noticed::Nothing);
        assert_eq!(test.next(), Some(60_200));
    }

    #[test]
    fn what_fails_is_tried_later_and_later_whatever_happens() {
        let mut test = Test::new();
        test.touch(0, Noticed::Nothing);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..10 {
            let next = u64::try_from(test.next().expect("it is tried again")).expect("small");
            waits.push(next - now);
            now = next;
            let due = test.pop(now).expect("it is due");
            test.done(&due, &FAILED, now);
            assert_eq!(test.queue.failing(), usize::from(waits.len() >= 3));
            test.touch(now + 1, Noticed::Nothing);
        }
        assert_eq!(waits, [200, 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        let due = test.pop(now + 60_000).expect("it is due");
        test.done(&due, &WRITTEN, now + 60_000);
        assert_eq!(test.queue.failing(), 0);
        test.touch(now + 70_000, Noticed::Nothing);
        assert_eq!(
            test.next(),
            Some(u128::from(now) + 70_200),
            "it is forgotten that it failed"
        );
    }

    #[test]
    fn what_is_looked_at_later_is_looked_at_sooner_when_it_is_touched() {
        let mut test = Test::new();
        test.touch(0, Noticed::Nothing);
        let due = test.pop(200).expect("it is due");
        test.done(&due, &Outcome::AsItShouldBe, 200);
        test.queue.later(&app(), test.at(60_000));
        test.queue.later(&app(), test.at(90_000));
        assert_eq!(test.next(), Some(60_000), "the first");
        test.touch(1000, Noticed::Nothing);
        assert_eq!(test.next(), Some(1200));
    }

    #[test]
    fn the_api_server_says_how_long_to_wait() {
        let mut test = Test::new();
        test.touch(0, Noticed::Nothing);
        let due = test.pop(200).expect("it is due");
        let retry_after = Some(Duration::from_secs(7));
        test.done(&due, &Outcome::Failed { retry_after }, 200);
        assert_eq!(test.next(), Some(7200));
    }

    #[test]
    fn jitter_shortens_a_wait_by_half_at_most() {
        for (jitter, wanted) in [(0.0, 700), (1.0, 450), (0.5, 575), (7.0, 450)] {
            let mut test = Test::new();
            test.touch(0, Noticed::Nothing);
            let due = test.pop(200).expect("it is due");
            let now = test.at(200);
            test.queue.done(&due, &FAILED, now, jitter);
            assert_eq!(test.next(), Some(wanted));
        }
    }

    #[test]
    fn argo_cd_is_not_asked_too_often_to_look_again() {
        let mut test = Test::new();
        test.touch(0, Noticed::No);
        let due = test.pop(200).expect("it is due");
        assert!(due.stale);
        test.done(&due, &Outcome::Written { refreshed: true }, 200);
        test.touch(3000, Noticed::No);
        let due = test.pop(3200).expect("it is due");
        assert!(!due.stale, "not again so soon");
        test.done(&due, &Outcome::AsItShouldBe, 3200);
        assert_eq!(test.next(), Some(30_200), "but in the end");
        test.touch(5000, Noticed::Nothing);
        assert_eq!(test.next(), Some(5200), "for which nothing else waits");
        let due = test.pop(5200).expect("it is due");
        test.done(&due, &WRITTEN, 5200);
        assert!(test.pop(30_200).expect("it is due").stale);
    }

    #[test]
    fn argo_cd_is_not_asked_to_look_at_what_it_has_noticed() {
        let mut test = Test::new();
        test.touch(0, Noticed::No);
        test.touch(50, Noticed::Yes);
        let due = test.pop(200).expect("it is due");
        assert!(!due.stale);
        test.done(&due, &WRITTEN, 200);
        assert_eq!(test.next(), None);
    }

    #[test]
    fn argo_cd_is_not_asked_for_all_at_once() {
        let mut queue = Queue::new(Duration::from_secs(1));
        let start = Instant::now();
        for name in ["a", "b", "c"] {
            queue.touch(&Place::new("argocd", name), Noticed::No, start);
        }
        let (mut refreshed, mut looks) = (Vec::new(), 0);
        let mut now = start;
        while let Some(next) = queue.next() {
            now = now.max(next);
            let due = queue.pop(now).expect("it is due");
            let outcome = if due.stale {
                refreshed.push((now - start).as_millis());
                Outcome::Written { refreshed: true }
            } else {
                Outcome::AsItShouldBe
            };
            queue.done(&due, &outcome, now, 0.0);
            looks += 1;
            assert!(looks < 20, "it comes to an end");
        }
        assert_eq!(refreshed, [200, 400, 600]);
    }
}
