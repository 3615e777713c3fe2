//! The workqueues of a standby replica: they keep only the objects that the leader has not written yet.
//!
//! Every change adds objects to the workqueues of every replica, so that a new leader knows what to reconcile. Without a limit, a
//! replica on standby for months would remember every object that ever existed. So a standby reconciles each object a minute
//! later, without writing, and forgets those in the desired state.

use super::{
    CLOCK_CHECK_INTERVAL, Context, PANIC_BACKOFF, ReconcileResult, Reconciler, Workqueue, YIELD_AFTER, decide,
};
use crate::runtime::panics::guard;
use ocm::object_ref::ObjectRef;
use ocm::time_math::later;
use std::time::{Duration, Instant};

/// The time that the leader has to write an object before a standby reconciles it.
const STANDBY_DELAY: Duration = Duration::from_secs(60);

/// The queued objects that a standby reconciles.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The objects left, with the indices of their workqueues.
    left: Vec<(usize, ObjectRef)>,
    next: Option<Instant>,
}

impl Sweep {
    /// Returns the start of the next sweep, if it is in the future.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.next.filter(|at| *at > now)
    }
}

impl Reconciler {
    /// Removes objects that need no write from the workqueues of a standby. Returns true if its budget is used up.
    pub(super) fn sweep_standby(&mut self) -> bool {
        let now = (self.clocks.elapsed)();
        if self.sweep.left.is_empty() {
            if self.sweep.next.is_some_and(|at| now < at) {
                return false;
            }
            self.sweep.next = Some(later(now, STANDBY_DELAY));
            for workqueue in &mut self.workqueues {
                workqueue.queue.forget_refreshes(now);
            }
            let Some(by) = now.checked_sub(STANDBY_DELAY) else {
                return false;
            };
            for (at, workqueue) in self.workqueues.iter().enumerate() {
                self.sweep.left.extend(
                    workqueue
                        .queue
                        .overdue(by)
                        .into_iter()
                        .map(|object_ref| (at, object_ref)),
                );
            }
        }
        let mut reconciled = 0_u32;
        while let Some((at, object_ref)) = self.sweep.left.pop() {
            let Workqueue { controller, queue, .. } = &mut self.workqueues[at];
            if queue.peek(&object_ref, now).is_none() {
                continue;
            }
            let context = Context {
                now: (self.clocks.time)(),
                // Nothing on the hub tells whether the leader has asked Argo CD for a refresh, but it had the time to do so.
                stale: false,
                settings: &self.settings,
            };
            match guard(|| decide(controller, &self.cache, &object_ref, &context)) {
                Ok(ReconcileResult::Unchanged(requeue_after)) => {
                    queue.forget_due(&object_ref, requeue_after.map(|wait| later(now, wait)));
                }
                Ok(ReconcileResult::Write(_)) => {}
                // The leader reports the panic.
                Err(_) => self.sweep.next = Some(later(now, PANIC_BACKOFF)),
            }
            reconciled = reconciled.wrapping_add(1);
            if reconciled.is_multiple_of(CLOCK_CHECK_INTERVAL)
                && (self.clocks.elapsed)().saturating_duration_since(now) >= YIELD_AFTER
            {
                return true;
            }
        }
        false
    }
}
