//! The workqueue of a controller: decides which objects to reconcile, and when. Changes are reconciled at once, failures with
//! exponential backoff, and refreshes are rate limited. Of the objects that are due, tenants and clusters take turns;
//! those whose last write was slow have their own line.

use super::fair_queue::{FairQueue, FlowKey};
use primitives::object_ref::ObjectRef;
use primitives::time_math::later;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The time to wait for more changes of the same object: some writers change an object in several steps.
pub const DEBOUNCE: Duration = Duration::from_millis(200);
/// The minimum interval between two refreshes of any object.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);
/// The time after which a reservation lapses: otherwise the objects would use all reservations of an outage at once.
const RESERVED_FOR: Duration = Duration::from_secs(10);
/// The minimum interval between two refreshes of the same object.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The delays of the first and the last retry.
const BACKOFF: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(300)];
/// The minimum interval between two retries of objects that fail for the same cause.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The time after which these objects are retried at the latest once one of them was written: others may still fail.
const RELEASE_DELAY: Duration = Duration::from_secs(30);
/// The interval between these retries.
const RELEASE_INTERVAL: Duration = Duration::from_millis(5);
/// The number of failures in a row after which an object counts as failing: an occasional conflict is normal.
pub const FAILING_AFTER: u32 = 3;

#[derive(Debug)]
pub struct Queue {
    min_write_interval: Duration,
    entries: HashMap<ObjectRef, Entry>,
    /// The objects whose last write was prompt, and those whose last write was slow.
    subqueues: [Subqueue; 2],
    /// The times at which objects can be forgotten if nothing happens before.
    expiring: BTreeSet<(Instant, ObjectRef)>,
    /// The earliest time for a refresh that no object has reserved; none before the first refresh.
    next_refresh: Option<Instant>,
    failing: usize,
    by_cause: BTreeMap<Cause, BTreeSet<ObjectRef>>,
}

/// The cause of failed writes that objects have in common: the resource, and the reason of the API server.
pub type Cause = (&'static str, &'static str);

/// A line of objects to reconcile.
#[derive(Debug, Default)]
struct Subqueue {
    due: BTreeSet<(Instant, ObjectRef)>,
    /// The last object that has become due and is in `fair_queue`, as are all before it.
    taken_until: Option<(Instant, ObjectRef)>,
    /// The objects that are due. Those no longer in `due` have been reconciled or forgotten.
    fair_queue: FairQueue<(Instant, ObjectRef)>,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is true or false whatever the others are"
)]
struct Entry {
    flow: FlowKey,
    /// True if the last write was slow.
    slow: bool,
    due: Option<Instant>,
    /// True if a write is in progress.
    busy: bool,
    /// True if it was queued again while a write was in progress.
    is_requeued: bool,
    /// True if a refresh is needed.
    stale: bool,
    /// The time that is reserved for its refresh.
    refresh_at: Option<Instant>,
    failures: u32,
    /// True if the last of the failures waits for the deletion of another object.
    is_waiting: bool,
    cause: Option<Cause>,
    written: Option<Instant>,
    refreshed: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub object_ref: ObjectRef,
    /// The share that its write counts against.
    pub flow: FlowKey,
    pub slow: bool,
    /// True if a refresh is needed and may be asked for.
    pub stale: bool,
    /// The number of failures in a row, and one.
    pub attempt: u32,
}

/// The effect of a change on the need to ask for a refresh of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The change does not affect it.
    Unchanged,
    /// The object is refreshed without being asked for: what other readers show is up to date.
    Done,
    /// Other readers show stale state until they are asked for a refresh.
    Needed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Unchanged,
    Written {
        /// True if a refresh was asked for.
        refreshed: bool,
    },
    Failed {
        /// The delay that the API server asks for.
        retry_after: Option<Duration>,
        cause: Option<Cause>,
        /// True if the write waits for the deletion of another object, which is no failure.
        is_waiting: bool,
    },
}

impl Outcome {
    /// A failure that the API server did not explain.
    pub const FAILED: Self = Self::Failed {
        retry_after: None,
        cause: None,
        is_waiting: false,
    };
}

impl Queue {
    pub fn new(min_write_interval: Duration) -> Self {
        Self {
            min_write_interval,
            entries: HashMap::new(),
            subqueues: Default::default(),
            expiring: BTreeSet::new(),
            next_refresh: None,
            failing: 0,
            by_cause: BTreeMap::new(),
        }
    }

    pub fn enqueue(&mut self, object_ref: &ObjectRef, flow: FlowKey, refresh: Refresh, now: Instant) {
        let entry = self
            .entries
            .entry(object_ref.clone())
            .or_insert_with(|| Entry::new(flow.clone()));
        if entry.due.is_none() {
            entry.flow = flow;
        }
        match refresh {
            Refresh::Unchanged => {}
            Refresh::Done => (entry.stale, entry.refresh_at) = (false, None),
            Refresh::Needed => entry.stale = true,
        }
        if entry.busy {
            entry.is_requeued = true;
            return;
        }
        // A change does not shorten the backoff of a failing object.
        if entry.due.is_some() && entry.failures > 0 {
            return;
        }
        let next = entry
            .written
            .map_or(now, |written| later(written, self.min_write_interval));
        let next = next.max(later(now, DEBOUNCE));
        if entry.due.is_none_or(|due| next < due) {
            self.at(object_ref, next);
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.subqueues.iter().filter_map(Subqueue::next_due).min()
    }

    pub fn next_due_after(&self, now: Instant) -> Option<Instant> {
        static FIRST: LazyLock<ObjectRef> = LazyLock::new(|| ObjectRef::new("", ""));
        let from = (later(now, Duration::from_nanos(1)), FIRST.clone());
        let next = |subqueue: &Subqueue| subqueue.due.range(from.clone()..).next().map(|(at, _)| *at);
        self.subqueues.iter().filter_map(next).min()
    }

    /// Returns true if an object is due: with `slow`, one whose last write was slow, else one of the others.
    pub fn is_due(&self, slow: bool, now: Instant) -> bool {
        self.subqueues[usize::from(slow)].next_due().is_some_and(|at| at <= now)
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn failing(&self) -> usize {
        self.failing
    }

    pub fn is_failing(&self, object_ref: &ObjectRef) -> bool {
        self.entries.get(object_ref).is_some_and(Entry::is_failing)
    }

    /// Removes and returns a due object, of those whose last write was slow or of the others. The caller reports the outcome with
    /// `done`. The predicates select the tenants and clusters as in [`FairQueue::pop`].
    pub fn pop(
        &mut self,
        slow: bool,
        now: Instant,
        may_tenant: impl Fn(&Arc<str>) -> bool,
        may_cluster: impl Fn(&FlowKey) -> bool,
    ) -> Option<Due> {
        self.settle(now);
        let subqueue = &mut self.subqueues[usize::from(slow)];
        subqueue.take_due(&self.entries, now);
        let (flow, object_ref) = loop {
            let (flow, due) = subqueue.fair_queue.pop(&may_tenant, &may_cluster)?;
            // The object may have been forgotten since, or have another due time.
            if subqueue.due.remove(&due) {
                break (flow, due.1);
            }
        };
        let entry = self.entries.get_mut(&object_ref)?;
        (entry.due, entry.busy, entry.is_requeued) = (None, true, false);
        entry.refresh_at.take_if(|at| later(*at, RESERVED_FOR) < now);
        let may_refresh_at = entry.may_refresh_at().max(entry.refresh_at.or(self.next_refresh));
        let stale = entry.stale && may_refresh_at.is_none_or(|at| at <= now);
        let attempt = entry.failures.saturating_add(1);
        if stale {
            // A change during the write needs another refresh.
            entry.stale = false;
            reserve(&mut entry.refresh_at, &mut self.next_refresh, now);
        }
        Some(Due {
            object_ref,
            flow,
            slow,
            stale,
            attempt,
        })
    }

    /// Forgets objects that were written long enough ago.
    fn settle(&mut self, now: Instant) {
        while self.expiring.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, object_ref)) = self.expiring.pop_first() else {
                return;
            };
            self.forget_idle(&object_ref, now);
        }
    }

    pub fn set_slow(&mut self, object_ref: &ObjectRef, slow: bool) {
        if let Some(entry) = self.entries.get_mut(object_ref).filter(|entry| entry.due.is_none()) {
            entry.slow = slow;
        }
    }

    /// Queues an object for a reconciliation at that time at the latest.
    pub fn later(&mut self, object_ref: &ObjectRef, at: Instant) {
        let flow = || Entry::new(FlowKey::of_namespace(&object_ref.namespace));
        let entry = self.entries.entry(object_ref.clone()).or_insert_with(flow);
        if !entry.busy && entry.due.is_none_or(|due| at < due) {
            self.at(object_ref, at);
        }
    }

    /// Records the outcome of a reconciliation; `jitter` is from 0 to 1.
    pub fn done(&mut self, due: &Due, outcome: &Outcome, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(&due.object_ref) else {
            return;
        };
        entry.busy = false;
        let was_failing = entry.is_failing();
        let mut cause = entry.cause.take();
        let mut is_cause_gone = false;
        let is_failed = matches!(outcome, Outcome::Failed { .. });
        entry.refresh_at.take_if(|_| due.stale && !is_failed);
        let mut next = match outcome {
            Outcome::Unchanged => {
                entry.failures = 0;
                entry.is_requeued.then_some(later(now, DEBOUNCE))
            }
            Outcome::Written { refreshed } => {
                entry.failures = 0;
                entry.written = Some(now);
                is_cause_gone = true;
                if *refreshed {
                    entry.refreshed = Some(now);
                }
                entry.is_requeued.then_some(later(now, self.min_write_interval))
            }
            Outcome::Failed {
                retry_after,
                cause: new_cause,
                is_waiting,
            } => {
                entry.is_waiting = *is_waiting;
                entry.stale |= due.stale;
                entry.cause = *new_cause;
                let mut wait = backoff(entry.failures);
                if let Some(new_cause) = new_cause {
                    let alike = self.by_cause.entry(*new_cause).or_default();
                    alike.insert(due.object_ref.clone());
                    let number = u32::try_from(alike.len()).unwrap_or(u32::MAX);
                    wait = wait.max(RETRY_INTERVAL.saturating_mul(number));
                    cause.take_if(|cause| cause == new_cause);
                }
                let wait = wait.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0);
                entry.failures = entry.failures.saturating_add(1);
                Some(later(now, wait.max(retry_after.unwrap_or_default())))
            }
        };
        let is_failing = usize::from(entry.is_failing());
        self.failing = self
            .failing
            .saturating_add(is_failing)
            .saturating_sub(usize::from(was_failing));
        if entry.stale && next.is_none() {
            next = Some(match entry.may_refresh_at().filter(|at| *at > now) {
                Some(at) => at.max(later(now, DEBOUNCE)),
                None => reserve(&mut entry.refresh_at, &mut self.next_refresh, now),
            });
        }
        match next {
            Some(next) => self.at(&due.object_ref, next),
            None => self.forget_idle(&due.object_ref, now),
        }
        match cause {
            Some(cause) if is_cause_gone => self.release(cause, now),
            cause => self.forget_cause(&due.object_ref, cause),
        }
    }

    /// Forgets an object that is not queued, now or when it has no effect any more.
    fn forget_idle(&mut self, object_ref: &ObjectRef, now: Instant) {
        let Some(entry) = self.entries.get(object_ref) else {
            return;
        };
        if entry.due.is_some() || entry.busy {
            return;
        }
        match entry.forgotten(self.min_write_interval) {
            Some(at) if at > now => drop(self.expiring.insert((at, object_ref.clone()))),
            _ => drop(self.entries.remove(object_ref)),
        }
    }

    /// Forgets all objects except those whose writes are in progress: another replica leads now.
    pub fn clear(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|_, entry| entry.busy);
        for entry in entries.values_mut() {
            *entry = Entry {
                busy: true,
                ..Entry::new(entry.flow.clone())
            };
        }
        *self = Self {
            entries,
            ..Self::new(self.min_write_interval)
        };
    }

    /// Records that an object no longer fails for a cause.
    fn forget_cause(&mut self, object_ref: &ObjectRef, cause: Option<Cause>) {
        let Some(cause) = cause else { return };
        if let Some(alike) = self.by_cause.get_mut(&cause) {
            alike.remove(object_ref);
            if alike.is_empty() {
                self.by_cause.remove(&cause);
            }
        }
    }

    /// Retries all objects that failed for a cause, one after the other: a write of one of them succeeded.
    fn release(&mut self, cause: Cause, now: Instant) {
        let mut at = later(now, RELEASE_DELAY);
        for object_ref in self.by_cause.remove(&cause).unwrap_or_default() {
            let Some(entry) = self.entries.get_mut(&object_ref) else {
                continue;
            };
            entry.cause.take_if(|known| *known == cause);
            if entry.due.is_some_and(|due| at < due) {
                self.at(&object_ref, at);
                at = later(at, RELEASE_INTERVAL);
            }
        }
    }

    fn at(&mut self, object_ref: &ObjectRef, at: Instant) {
        if let Some(entry) = self.entries.get_mut(object_ref) {
            let subqueue = &mut self.subqueues[usize::from(entry.slow)];
            if let Some(before) = entry.due.replace(at) {
                subqueue.due.remove(&(before, object_ref.clone()));
            }
            let due = (at, object_ref.clone());
            if subqueue.taken_until.as_ref().is_some_and(|last| due <= *last) {
                subqueue.fair_queue.push(&entry.flow, due.clone());
            }
            subqueue.due.insert(due);
        }
    }
}

impl Subqueue {
    fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Adds the objects that have become due to `fair_queue`.
    fn take_due(&mut self, entries: &HashMap<ObjectRef, Entry>, now: Instant) {
        let from = self.taken_until.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let due = self
            .due
            .range((from, Bound::Unbounded))
            .take_while(|(at, _)| *at <= now);
        for due in due {
            if let Some(entry) = entries.get(&due.1) {
                self.fair_queue.push(&entry.flow, due.clone());
            }
            self.taken_until = Some(due.clone());
        }
    }
}

impl Entry {
    fn new(flow: FlowKey) -> Self {
        Self {
            flow,
            slow: false,
            due: None,
            busy: false,
            is_requeued: false,
            stale: false,
            refresh_at: None,
            failures: 0,
            is_waiting: false,
            cause: None,
            written: None,
            refreshed: None,
        }
    }

    const fn is_failing(&self) -> bool {
        self.failures >= FAILING_AFTER && !self.is_waiting
    }

    /// Returns the time from which the entry has no effect and can be forgotten.
    fn forgotten(&self, min_write_interval: Duration) -> Option<Instant> {
        let written = self.written.map(|at| later(at, min_write_interval));
        written.max(self.may_refresh_at())
    }

    /// Returns the time from which the last refresh permits another one.
    fn may_refresh_at(&self) -> Option<Instant> {
        self.refreshed.map(|at| later(at, MIN_REFRESH_INTERVAL))
    }
}

/// Reserves the next free time for a refresh, unless the object has one. So each object that waits is reconciled once more, and not
/// again and again until its turn comes.
fn reserve(refresh_at: &mut Option<Instant>, next_refresh: &mut Option<Instant>, now: Instant) -> Instant {
    *refresh_at.get_or_insert_with(|| {
        let at = next_refresh.map_or(now, |at| at.max(now));
        *next_refresh = Some(later(at, REFRESH_INTERVAL));
        at
    })
}

fn backoff(failures: u32) -> Duration {
    let [first, last] = BACKOFF;
    first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(last)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin to count from")]
mod tests {
    use super::*;

    fn app() -> ObjectRef {
        ObjectRef::new("argocd", "shop")
    }

    fn pop(queue: &mut Queue, slow: bool, now: Instant) -> Option<Due> {
        queue.pop(slow, now, |_| true, |_| true)
    }

    fn enqueue(queue: &mut Queue, object_ref: &ObjectRef, refresh: Refresh, now: Instant) {
        queue.enqueue(object_ref, FlowKey::of_namespace(&object_ref.namespace), refresh, now);
    }

    /// A queue and a clock.
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

        /// Returns a queue whose object became due after 200 milliseconds.
        fn with_due(refresh: Refresh) -> (Self, Due) {
            let mut test = Self::new();
            test.enqueue(0, refresh);
            let due = test.pop(200).expect("it is due");
            (test, due)
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn enqueue(&mut self, millis: u64, refresh: Refresh) {
            let now = self.at(millis);
            enqueue(&mut self.queue, &app(), refresh, now);
        }

        fn pop(&mut self, millis: u64) -> Option<Due> {
            let now = self.at(millis);
            pop(&mut self.queue, false, now)
        }

        fn done(&mut self, due: &Due, outcome: &Outcome, millis: u64) {
            let now = self.at(millis);
            self.queue.done(due, outcome, now, 0.0);
        }

        /// Returns the milliseconds from the start to the next due time.
        fn next_due(&self) -> Option<u128> {
            Some((self.queue.next_due()? - self.start).as_millis())
        }
    }

    const WRITTEN: Outcome = Outcome::Written { refreshed: false };

    #[test]
    fn coalesces_requests_within_a_short_time() {
        let mut test = Test::new();
        test.enqueue(0, Refresh::Unchanged);
        test.enqueue(100, Refresh::Unchanged);
        assert_eq!((test.next_due(), test.pop(199)), (Some(200), None));
        let due = test.pop(200).expect("it is due");
        assert_eq!(test.pop(200), None);
        test.done(&due, &WRITTEN, 210);
        assert_eq!(test.next_due(), None);
    }

    #[test]
    fn change_during_a_write_is_reconciled_after_it() {
        let (mut test, due) = Test::with_due(Refresh::Unchanged);
        test.enqueue(250, Refresh::Unchanged);
        assert_eq!(test.pop(5000), None, "not twice at a time");
        test.done(&due, &WRITTEN, 300);
        assert_eq!(test.next_due(), Some(1300), "not too often");
        let due = test.pop(1300).expect("it is due");
        test.done(&due, &Outcome::Unchanged, 1300);
        assert_eq!(test.next_due(), None);
        test.enqueue(60_000, Refresh::Unchanged);
        assert_eq!(test.next_due(), Some(60_200));
    }

    #[test]
    fn failures_are_retried_with_backoff_despite_new_requests() {
        let mut test = Test::new();
        test.enqueue(0, Refresh::Unchanged);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..13 {
            let next = u64::try_from(test.next_due().expect("it is tried again")).expect("small");
            waits.push(next - now);
            now = next;
            let due = test.pop(now).expect("it is due");
            test.done(&due, &Outcome::FAILED, now);
            assert_eq!(test.queue.failing(), usize::from(waits.len() >= 3));
            test.enqueue(now + 1, Refresh::Unchanged);
        }
        let seconds = [
            1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000,
        ];
        assert_eq!(waits, [&[200, 500][..], &seconds].concat());
        let due = test.pop(now + 300_000).expect("it is due");
        let waiting = Outcome::Failed {
            retry_after: None,
            cause: None,
            is_waiting: true,
        };
        test.done(&due, &waiting, now + 300_000);
        assert_eq!(test.queue.failing(), 0);
        now += 300_000;
        let due = test.pop(now + 300_000).expect("it is due");
        test.done(&due, &WRITTEN, now + 300_000);
        assert_eq!(test.queue.failing(), 0);
        test.enqueue(now + 310_000, Refresh::Unchanged);
        assert_eq!(
            test.next_due(),
            Some(u128::from(now) + 310_200),
            "it is forgotten that it failed"
        );
    }

    #[test]
    fn new_request_overrides_a_later_requeue() {
        let (mut test, due) = Test::with_due(Refresh::Unchanged);
        test.done(&due, &Outcome::Unchanged, 200);
        test.queue.later(&app(), test.at(60_000));
        test.queue.later(&app(), test.at(90_000));
        assert_eq!(test.next_due(), Some(60_000), "the first");
        test.enqueue(1000, Refresh::Unchanged);
        assert_eq!(test.next_due(), Some(1200));
    }

    #[test]
    fn honours_retry_after_of_the_api_server() {
        let (mut test, due) = Test::with_due(Refresh::Unchanged);
        let retry_after = Some(Duration::from_secs(7));
        test.done(
            &due,
            &Outcome::Failed {
                retry_after,
                cause: None,
                is_waiting: false,
            },
            200,
        );
        assert_eq!(test.next_due(), Some(7200));
    }

    #[test]
    fn jitter_shortens_a_delay_by_at_most_half() {
        for (jitter, desired) in [(0.0, 700), (1.0, 450), (0.5, 575), (7.0, 450)] {
            let (mut test, due) = Test::with_due(Refresh::Unchanged);
            let now = test.at(200);
            test.queue.done(&due, &Outcome::FAILED, now, jitter);
            assert_eq!(test.next_due(), Some(desired));
        }
    }

    #[test]
    fn limits_how_often_argo_cd_is_asked_to_refresh() {
        let (mut test, due) = Test::with_due(Refresh::Needed);
        assert!(due.stale);
        test.done(&due, &Outcome::Written { refreshed: true }, 200);
        test.enqueue(3000, Refresh::Needed);
        let due = test.pop(3200).expect("it is due");
        assert!(!due.stale, "not again so soon");
        test.done(&due, &Outcome::Unchanged, 3200);
        assert_eq!(test.next_due(), Some(30_200), "but in the end");
        test.enqueue(5000, Refresh::Unchanged);
        assert_eq!(test.next_due(), Some(5200), "for which nothing else waits");
        let due = test.pop(5200).expect("it is due");
        test.done(&due, &WRITTEN, 5200);
        assert!(test.pop(30_200).expect("it is due").stale);
    }

    #[test]
    fn requests_no_refresh_that_argo_cd_already_does() {
        let mut test = Test::new();
        test.enqueue(0, Refresh::Needed);
        test.enqueue(50, Refresh::Done);
        let due = test.pop(200).expect("it is due");
        assert!(!due.stale);
        test.done(&due, &WRITTEN, 200);
        assert_eq!(test.next_due(), None);
    }

    #[test]
    fn spreads_refresh_requests_over_time() {
        let mut queue = Queue::new(Duration::from_secs(1));
        let start = Instant::now();
        for name in ["a", "b", "c"] {
            let object_ref = ObjectRef::new("argocd", name);
            enqueue(&mut queue, &object_ref, Refresh::Needed, start);
        }
        let (mut refreshed, mut reconciled) = (Vec::new(), 0);
        let mut now = start;
        while let Some(next) = queue.next_due() {
            now = now.max(next);
            let due = pop(&mut queue, false, now).expect("it is due");
            let outcome = if due.stale {
                refreshed.push((now - start).as_millis());
                Outcome::Written { refreshed: true }
            } else {
                Outcome::Unchanged
            };
            queue.done(&due, &outcome, now, 0.0);
            reconciled += 1;
            assert!(reconciled < 20, "it comes to an end");
        }
        assert_eq!(refreshed, [200, 400, 600]);
    }

    #[test]
    fn refreshes_of_many_objects_reconcile_each_of_them_twice_at_most() {
        const OBJECTS: usize = 10_000;
        let mut queue = Queue::new(Duration::from_secs(1));
        let start = Instant::now();
        for number in 0..OBJECTS {
            let object_ref = ObjectRef::new("argocd", &number.to_string());
            enqueue(&mut queue, &object_ref, Refresh::Needed, start);
        }
        let (mut refreshed, mut reconciled, mut now) = (0, 0, start);
        while let Some(next) = queue.next_due() {
            now = now.max(next);
            let due = pop(&mut queue, false, now).expect("it is due");
            refreshed += usize::from(due.stale);
            queue.done(&due, &Outcome::Written { refreshed: due.stale }, now, 0.0);
            reconciled += 1;
            assert!(reconciled <= 2 * OBJECTS, "linear");
        }
        assert_eq!(refreshed, OBJECTS);
        assert!(
            now - start <= Duration::from_millis(200 * (OBJECTS as u64 + 1)),
            "none waits in vain"
        );
        pop(&mut queue, false, now + MIN_REFRESH_INTERVAL);
        assert!(queue.is_empty());
    }

    #[test]
    fn object_that_cannot_be_reconciled_does_not_hold_up_refreshes_of_others() {
        let mut queue = Queue::new(Duration::ZERO);
        let start = Instant::now();
        for (namespace, name) in [("a", "1"), ("hangs", "2"), ("a", "3")] {
            let object_ref = ObjectRef::new(namespace, name);
            enqueue(&mut queue, &object_ref, Refresh::Needed, start);
        }
        let now = start + DEBOUNCE;
        while let Some(due) = pop(&mut queue, false, now) {
            queue.done(&due, &Outcome::Written { refreshed: due.stale }, now, 0.0);
        }
        let not_hanging = |namespace: &Arc<str>| &**namespace != "hangs";
        let later = now + Duration::from_secs(2);
        let due = queue.pop(false, later, not_hanging, |_| true).expect("it is its turn");
        assert!(due.stale && &*due.object_ref.name == "3");
    }

    #[test]
    fn refreshes_are_spread_after_an_outage() {
        let mut queue = Queue::new(Duration::ZERO);
        let start = Instant::now();
        for number in 0..1000 {
            let object_ref = ObjectRef::new("argocd", &number.to_string());
            enqueue(&mut queue, &object_ref, Refresh::Needed, start);
        }
        let mut count_refreshes = |now: Instant| {
            let mut refreshes = 0;
            while let Some(due) = pop(&mut queue, false, now) {
                refreshes += usize::from(due.stale);
                queue.done(&due, &Outcome::Written { refreshed: due.stale }, now, 0.0);
            }
            refreshes
        };
        assert_eq!(count_refreshes(start + DEBOUNCE), 1);
        assert_eq!(count_refreshes(start + Duration::from_secs(300)), 1);
    }

    #[test]
    fn change_during_a_refresh_needs_another_one() {
        let (mut test, due) = Test::with_due(Refresh::Needed);
        assert!(due.stale);
        test.enqueue(250, Refresh::Needed);
        test.done(&due, &Outcome::Written { refreshed: true }, 300);
        let due = test.pop(1300).expect("it was changed");
        assert!(!due.stale, "not again so soon");
        test.done(&due, &Outcome::Unchanged, 1300);
        assert!(test.pop(30_300).expect("it is due").stale);
    }

    #[test]
    fn failed_refresh_is_repeated() {
        let (mut test, due) = Test::with_due(Refresh::Needed);
        test.done(&due, &Outcome::FAILED, 300);
        assert!(test.pop(10_000).expect("it is due").stale);
    }

    #[test]
    fn objects_that_fail_for_one_cause_share_their_retries() {
        const OBJECTS: u32 = 20_000;
        let refused = Outcome::Failed {
            retry_after: None,
            cause: Some(("applications", "forbidden")),
            is_waiting: false,
        };
        let (mut queue, start) = (Queue::new(Duration::ZERO), Instant::now());
        affected(&mut queue, "argocd", 0..OBJECTS as usize, start);
        let mut now = start + DEBOUNCE;
        let (mut writes, hour) = (0, Duration::from_secs(3600));
        while let Some(next) = queue.next_due().filter(|next| *next < start + hour) {
            now = now.max(next);
            let due = pop(&mut queue, false, now).expect("it is due");
            queue.done(&due, &refused, now, 0.0);
            writes += 1;
        }
        assert!(writes < 6 * OBJECTS, "{writes} writes in an hour");
        // The cause is gone.
        let due = loop {
            now = now.max(queue.next_due().expect("all are retried"));
            if let Some(due) = pop(&mut queue, false, now) {
                break due;
            }
        };
        queue.done(&due, &WRITTEN, now, 0.0);
        let due = queue.subqueues[0].due.iter();
        let soon = due.filter(|(at, _)| *at < now + Duration::from_secs(180)).count();
        assert_eq!(soon + 1, OBJECTS as usize, "one success is enough");
    }

    fn affected(queue: &mut Queue, namespace: &str, names: std::ops::Range<usize>, now: Instant) {
        for name in names {
            let object_ref = ObjectRef::new(namespace, &format!("{name:06}"));
            enqueue(queue, &object_ref, Refresh::Unchanged, now);
        }
    }

    /// Returns the namespaces of the next objects, none of which needs a write.
    fn looked_at(queue: &mut Queue, most: usize, now: Instant) -> Vec<Arc<str>> {
        let mut namespaces = Vec::new();
        while namespaces.len() < most
            && let Some(due) = pop(queue, false, now)
        {
            queue.done(&due, &Outcome::Unchanged, now, 0.0);
            namespaces.push(due.object_ref.namespace);
        }
        namespaces
    }

    #[test]
    fn tenant_with_thousands_of_objects_barely_delays_others() {
        let (mut queue, start) = (Queue::new(Duration::ZERO), Instant::now());
        affected(&mut queue, "large", 0..3000, start);
        let now = start + DEBOUNCE;
        assert_eq!(looked_at(&mut queue, 1, now).len(), 1);
        affected(&mut queue, "small", 0..1, start);
        let order = looked_at(&mut queue, 4, now);
        assert!(order.iter().any(|namespace| &**namespace == "small"), "{order:?}");
        assert_eq!(looked_at(&mut queue, usize::MAX, now).len(), 3000 - 4);
        assert!(queue.is_empty() && queue.next_due().is_none());
    }

    #[test]
    fn objects_with_slow_writes_use_a_separate_queue() {
        let (mut test, due) = Test::with_due(Refresh::Unchanged);
        test.queue.set_slow(&due.object_ref, true);
        test.done(&due, &Outcome::FAILED, 30_000);
        let now = test.at(31_000);
        assert!(test.queue.is_due(true, now) && !test.queue.is_due(false, now));
        assert_eq!(test.pop(31_000), None);
        let due = pop(&mut test.queue, true, now).expect("it is due");
        assert!(due.slow);
        test.queue.set_slow(&due.object_ref, false);
        test.done(&due, &WRITTEN, 31_000);
        test.enqueue(40_000, Refresh::Unchanged);
        assert!(test.pop(40_200).is_some_and(|due| !due.slow), "it was written promptly");
    }

    #[test]
    fn cleared_queue_reconciles_an_object_in_progress_no_second_time() {
        let (mut queue, start) = (Queue::new(Duration::ZERO), Instant::now());
        affected(&mut queue, "argocd", 0..3, start);
        let now = start + DEBOUNCE;
        let busy = pop(&mut queue, false, now).expect("it is due");
        queue.clear();
        assert_eq!((queue.len(), queue.next_due()), (1, None), "others are forgotten");
        affected(&mut queue, "argocd", 0..3, now);
        let now = now + DEBOUNCE;
        let others = looked_at(&mut queue, usize::MAX, now);
        assert_eq!(others.len(), 2, "the first write is still in progress");
        queue.done(&busy, &WRITTEN, now, 0.0);
        assert_eq!(looked_at(&mut queue, usize::MAX, now + DEBOUNCE).len(), 1);
    }

    #[test]
    fn an_object_is_forgotten_after_its_last_write() {
        let (mut test, due) = Test::with_due(Refresh::Unchanged);
        test.done(&due, &WRITTEN, 300);
        assert_eq!(test.queue.len(), 1, "the next write waits for a second");
        assert_eq!(test.pop(1300), None);
        assert!(test.queue.is_empty());
    }

    mod random {
        use super::*;
        use proptest::prelude::*;

        proptest! {
            #![proptest_config(testing::config(256))]

            /// No due object is lost, and no object is reconciled twice at the same time.
            #[test]
            fn reconciles_every_requested_object(steps in prop::collection::vec((0..6_u8, 0..9_usize, 0..400_u64), 1..200)) {
                let mut queue = Queue::new(Duration::from_secs(1));
                let mut now = Instant::now();
                let mut open: Vec<Due> = Vec::new();
                let object_ref = |number: usize| ObjectRef::new(["a", "b", "c"][number % 3], &number.to_string());
                for (step, number, millis) in steps {
                    now += Duration::from_millis(millis);
                    match step {
                        0 | 1 => affected(&mut queue, ["a", "b", "c"][number % 3], number..number + 1, now),
                        2 | 3 => open.extend(pop(&mut queue, step == 3, now)),
                        4 if !open.is_empty() => {
                            let due = open.swap_remove(number % open.len());
                            queue.set_slow(&due.object_ref, number % 2 == 0);
                            let outcomes = [Outcome::Unchanged, WRITTEN, Outcome::FAILED];
                            queue.done(&due, &outcomes[number % 3], now, 0.5);
                        }
                        5 => queue.later(&object_ref(number), now + Duration::from_millis(millis)),
                        _ => {}
                    }
                    let mut object_refs: Vec<_> = open.iter().map(|due| &due.object_ref).collect();
                    object_refs.sort();
                    object_refs.dedup();
                    prop_assert_eq!(object_refs.len(), open.len());
                }
                for due in open.drain(..) {
                    queue.done(&due, &Outcome::Unchanged, now, 0.5);
                }
                let due: usize = queue.subqueues.iter().map(|subqueue| subqueue.due.len()).sum();
                now += Duration::from_secs(3600);
                for slow in [false, true] {
                    while let Some(item) = pop(&mut queue, slow, now) {
                        open.push(item);
                    }
                }
                prop_assert_eq!(open.len(), due);
                for due in open {
                    queue.done(&due, &Outcome::Unchanged, now, 0.5);
                }
                prop_assert!(queue.is_empty() && queue.next_due().is_none());
                prop_assert!(queue.subqueues.iter().all(|subqueue| subqueue.fair_queue.is_empty()));
            }
        }
    }
}
