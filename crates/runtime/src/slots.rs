//! Limits on the writes in progress: by controller, namespace and cluster, and a separate share for writes that the API
//! server does not answer.
//!
//! Each controller, and the writing of Events, has reserved slots that no other can use. Beyond these all draw from a common
//! pool. One namespace may have three quarters of the slots of its controller, and one cluster half of them. A write that is not
//! answered within [`SLOW_AFTER`] is *slow*: slow writes may have a quarter of all slots. An object whose last write was slow is only
//! written in that share, until a write is answered promptly again. Slow writes beyond the share are aborted as soon as another
//! write waits, and retried in the share. While the API server answers everything, but slowly, none is aborted: that would only
//! add to its load.
//!
//! No I/O and no clock: instants are arguments.

use super::fair_queue::FlowKey;
use primitives::time_math::later;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which a write counts as slow. API servers answer in milliseconds, and webhooks should within a second.
pub const SLOW_AFTER: Duration = Duration::from_secs(2);

/// The writes in progress, each with a key that the caller chooses. They are few enough to count them anew for each decision.
#[derive(Debug)]
pub struct Slots<K> {
    total: usize,
    /// The number of slots reserved for each group.
    reserved: usize,
    /// The number of groups: one for each controller, and one for Events.
    groups: usize,
    running: HashMap<K, Running>,
    /// True if the last answer arrived late.
    is_api_server_slow: bool,
}

#[derive(Debug)]
struct Running {
    group: usize,
    flow: FlowKey,
    since: Instant,
    slow: bool,
}

impl<K: Copy + Eq + Hash> Slots<K> {
    /// Divides `total` slots, at least one, among the groups. A quarter of the slots is reserved.
    pub fn new(total: usize, groups: usize) -> Self {
        let total = total.max(1);
        let each = total.checked_div(groups.saturating_mul(4)).unwrap_or_default();
        Self {
            total,
            reserved: each.max(1),
            groups,
            running: HashMap::new(),
            is_api_server_slow: false,
        }
    }

    fn count(&self, is_counted: impl Fn(&Running) -> bool) -> usize {
        self.running.values().filter(|running| is_counted(running)).count()
    }

    fn in_group(&self, group: usize) -> usize {
        self.count(|running| running.group == group)
    }

    /// Returns true if a group may begin another write; `is_slow` is true if the object's last write was slow.
    pub fn may_begin(&self, group: usize, is_slow: bool) -> bool {
        let from_pool = (0..self.groups).map(|group| self.in_group(group).saturating_sub(self.reserved));
        self.running.len() < self.total
            && (self.in_group(group) < self.reserved || from_pool.sum::<usize>() < self.pool())
            && (!is_slow || self.may_be_slow(group))
    }

    /// Returns true if a group may begin another write without taking from the pool.
    pub fn may_begin_reserved(&self, group: usize) -> bool {
        self.may_begin(group, false) && self.in_group(group) < self.reserved
    }

    pub fn may_begin_for_namespace(&self, group: usize, namespace: &Arc<str>) -> bool {
        let limit = self.group_limit().saturating_mul(3).div_ceil(4);
        self.count(|running| running.group == group && running.flow.namespace == *namespace) < limit
    }

    pub fn may_begin_for_flow(&self, group: usize, flow: &FlowKey) -> bool {
        // A namespace that is not divided by clusters has only the limit of namespaces.
        flow.cluster == flow.namespace
            || self.count(|running| running.group == group && running.flow == *flow) < self.group_limit().div_ceil(2)
    }

    pub fn are_others_busy(&self, group: usize) -> bool {
        self.running.values().any(|running| running.group != group)
    }

    pub fn begin(&mut self, key: K, group: usize, flow: FlowKey, is_slow: bool, now: Instant) {
        let running = Running {
            group,
            flow,
            since: now,
            slow: is_slow,
        };
        self.running.insert(key, running);
    }

    /// Records that a write has ended; `is_answered` is true if it was answered and succeeded. Returns true if it took so long
    /// that the object's next write belongs in the share of slow writes.
    pub fn end(&mut self, key: &K, is_answered: bool, now: Instant) -> bool {
        let Some(running) = self.running.remove(key) else {
            return false;
        };
        let is_slow = now >= later(running.since, SLOW_AFTER);
        if is_answered {
            self.is_api_server_slow = is_slow;
        }
        is_slow
    }

    /// Counts writes that have been in progress for long as slow, as far as their share has room.
    pub fn age(&mut self, now: Instant) {
        let late: Vec<K> = self.overdue(now).collect();
        for key in late {
            let has_room = self
                .running
                .get(&key)
                .is_some_and(|running| self.may_be_slow(running.group));
            if let Some(running) = self.running.get_mut(&key) {
                running.slow = has_room;
            }
        }
    }

    /// Returns the writes to abort: those in progress for long that are not counted as slow.
    pub fn overdue(&self, now: Instant) -> impl Iterator<Item = K> + use<'_, K> {
        let is_overdue = move |running: &Running| {
            !self.is_api_server_slow && !running.slow && now >= later(running.since, SLOW_AFTER)
        };
        self.running
            .iter()
            .filter(move |(_, running)| is_overdue(running))
            .map(|(key, _)| *key)
    }

    /// Returns the time at which the next write in progress becomes slow.
    pub fn next_slow_at(&self, now: Instant) -> Option<Instant> {
        let times = self
            .running
            .values()
            .filter(|running| !running.slow)
            .map(|running| later(running.since, SLOW_AFTER));
        times.filter(|at| *at > now).min()
    }

    fn may_be_slow(&self, group: usize) -> bool {
        let is_slow_in_group = |running: &Running| running.slow && running.group == group;
        self.is_api_server_slow
            || (self.count(|running| running.slow) < self.total.div_ceil(4)
                && self.count(is_slow_in_group) < self.group_limit().div_ceil(4))
    }

    /// Returns the number of slots that all groups share.
    fn pool(&self) -> usize {
        self.total.saturating_sub(self.reserved.saturating_mul(self.groups))
    }

    fn group_limit(&self) -> usize {
        self.pool().saturating_add(self.reserved)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin to count from")]
mod tests {
    use super::*;
    use crate::fair_queue::tests::flow;

    /// Begins writes of a group, one namespace each, until no more may begin. Returns their number.
    fn fill(slots: &mut Slots<usize>, group: usize, first: usize, is_slow: bool, now: Instant) -> usize {
        let mut count = 0;
        while slots.may_begin(group, is_slow) {
            let key = first + count;
            slots.begin(key, group, flow(&key.to_string(), "one"), is_slow, now);
            count += 1;
        }
        count
    }

    #[test]
    fn group_cannot_use_slots_reserved_for_another() {
        let now = Instant::now();
        for (total, groups, group_limit, others) in [(48, 2, 42, 6), (48, 12, 37, 1), (8, 4, 5, 1), (1000, 3, 834, 83)]
        {
            let mut slots = Slots::new(total, groups);
            assert_eq!(
                fill(&mut slots, 0, 0, false, now),
                group_limit,
                "{total} slots, {groups} groups"
            );
            for group in 1..groups {
                assert!(slots.may_begin_reserved(group));
                assert_eq!(fill(&mut slots, group, 1000 * group, false, now), others);
                assert!(!slots.may_begin_reserved(group));
            }
            for key in 0..group_limit {
                slots.end(&key, true, now);
            }
            assert_eq!(
                fill(&mut slots, 1, 1_000_000, false, now),
                group_limit - others,
                "all of the pool"
            );
        }
    }

    #[test]
    fn groups_share_slots_when_there_are_too_few() {
        let now = Instant::now();
        let mut slots = Slots::new(1, 5);
        assert_eq!(fill(&mut slots, 0, 0, false, now), 1);
        assert!(!slots.may_begin(1, false));
        slots.end(&0, true, now);
        assert_eq!(fill(&mut slots, 1, 1, true, now), 1);
    }

    #[test]
    fn one_namespace_or_cluster_leaves_slots_for_others() {
        let now = Instant::now();
        let mut slots = Slots::new(48, 2);
        let all = flow("a", "a");
        let mut count = 0;
        while slots.may_begin(0, false)
            && slots.may_begin_for_namespace(0, &all.namespace)
            && slots.may_begin_for_flow(0, &all)
        {
            slots.begin(count, 0, all.clone(), false, now);
            count += 1;
        }
        assert_eq!(count, 32, "three quarters of 42");
        assert!(
            slots.may_begin(0, false)
                && slots.may_begin_for_namespace(0, &"b".into())
                && slots.may_begin_for_namespace(1, &all.namespace)
        );
        let one = flow("b", "one");
        for key in 100..121 {
            assert!(slots.may_begin_for_flow(0, &one));
            slots.begin(key, 0, one.clone(), false, now);
        }
        assert!(!slots.may_begin_for_flow(0, &one) && slots.may_begin_for_flow(0, &flow("b", "two")));
    }

    #[test]
    fn slow_writes_are_limited_to_a_quarter_of_the_slots() {
        let start = Instant::now();
        let mut slots = Slots::new(48, 2);
        assert_eq!(fill(&mut slots, 0, 0, false, start), 42);
        let late = start + SLOW_AFTER;
        assert_eq!(slots.next_slow_at(start), Some(late));
        slots.age(start);
        assert_eq!(
            (slots.overdue(start).count(), slots.count(|running| running.slow)),
            (0, 0)
        );
        slots.age(late);
        assert_eq!(
            (slots.overdue(late).count(), slots.count(|running| running.slow)),
            (31, 11)
        );
        assert_eq!(slots.next_slow_at(late), None);
        let overdue: Vec<_> = slots.overdue(late).collect();
        for key in overdue {
            assert!(slots.end(&key, false, late), "it is slow");
        }
        assert!(slots.may_begin(0, false) && !slots.may_begin(0, true) && slots.may_begin(1, true));
        assert_eq!(fill(&mut slots, 0, 100, false, late), 31);
        assert!(!slots.end(&100, true, late), "it is prompt");
    }

    #[test]
    fn cancels_no_write_while_every_response_is_slow() {
        let start = Instant::now();
        let mut slots = Slots::new(48, 2);
        assert_eq!(fill(&mut slots, 0, 0, false, start), 42);
        let late = start + SLOW_AFTER;
        assert!(slots.end(&0, true, late));
        assert_eq!(slots.overdue(late).count(), 0);
        assert!(slots.may_begin(0, true));
        slots.begin(100, 0, flow("a", "one"), true, late);
        assert!(!slots.end(&100, true, late), "one is prompt");
        assert_eq!(slots.overdue(late).count(), 41);
        assert!(slots.may_begin(0, true), "none is counted as slow yet");
    }

    #[test]
    fn slow_writes_of_one_group_leave_slots_for_another() {
        let now = Instant::now();
        let mut slots = Slots::new(48, 12);
        assert_eq!(fill(&mut slots, 0, 0, true, now), 10);
        assert_eq!(fill(&mut slots, 1, 100, true, now), 2, "12 in all");
        for group in 2..12 {
            assert!(slots.may_begin(group, false) && !slots.may_begin(group, true));
        }
    }
}
