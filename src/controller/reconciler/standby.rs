//! What a replica keeps for shards that others write for: only what they have not done yet.
//!
//! Every change puts objects into the queues of every replica, so that one that takes over knows what to look at. Without an end to
//! that, a replica that stands by for months would remember every object that there ever was. So it decides, a minute later, what
//! would be to do for each, as the other replica has by then: it forgets those of which nothing is.

use super::{AFTER_PANIC, BUDGET, Decision, Held, Lane, Moment, Reconciler, STRIDE, decide};
use crate::controller::panics::guard;
use crate::controller::seen::Place;
use crate::time_math::later;
use std::time::{Duration, Instant};

/// The time that the writing replica has for an object before a standby decides about it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The objects of others that are looked at.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// By the numbers of their lanes.
    left: Vec<(usize, Place)>,
    next: Option<Instant>,
}

impl Sweep {
    /// Returns when the next sweep begins, if that is not past.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.next.filter(|at| *at > now)
    }
}

impl Reconciler {
    /// Forgets the objects of other replicas' shards of which nothing is to be written. Returns true if its budget is used up.
    pub(super) fn sweep_standby(&mut self, held: Held) -> bool {
        let now = (self.clocks.elapsed)();
        if self.ready.check().is_err() {
            return false;
        }
        if self.sweep.left.is_empty() {
            if self.sweep.next.is_some_and(|at| now < at) {
                return false;
            }
            self.sweep.next = Some(later(now, PATIENCE));
            let is_of_others = |(_, lane): &(usize, &Lane)| !held.has(lane.shard);
            let Some(by) = now.checked_sub(PATIENCE) else {
                return false;
            };
            for (at, lane) in self.lanes.iter().enumerate().filter(is_of_others) {
                self.sweep
                    .left
                    .extend(lane.queue.overdue(by).into_iter().map(|place| (at, place)));
            }
        }
        let mut looks = 0_u32;
        while let Some((at, place)) = self.sweep.left.pop() {
            let Lane {
                promise, shard, queue, ..
            } = &mut self.lanes[at];
            if held.has(*shard) {
                continue;
            }
            let Some(due) = queue.peek(&place, now) else { continue };
            let moment = Moment {
                now: (self.clocks.time)(),
                stale: due.stale,
                settings: &self.settings,
            };
            match guard(|| decide(promise, &self.index, &place, &moment)) {
                Ok(Decision::AsItShouldBe(again)) => queue.drop_due(&place, again.map(|wait| later(now, wait))),
                Ok(Decision::Write(_)) => {}
                // Who writes for it says so.
                Err(_) => self.sweep.next = Some(later(now, AFTER_PANIC)),
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(STRIDE) && (self.clocks.elapsed)().saturating_duration_since(now) >= BUDGET {
                return true;
            }
        }
        false
    }
}
