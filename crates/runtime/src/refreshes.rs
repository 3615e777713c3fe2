//! The refreshes that objects wait for: one at a time, with an interval between two of them.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use primitives::object_ref::ObjectRef;
use primitives::time_math::later;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The minimum interval between two refreshes of any object.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// The time after which an object that cannot be reconciled no longer holds up the refreshes of others.
const TURN: Duration = Duration::from_secs(1);

/// The objects that need a refresh and wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Refreshes {
    last: Option<Instant>,
    waiting: VecDeque<ObjectRef>,
    /// The object whose turn it is, and when it is due.
    turn: Option<(ObjectRef, Instant)>,
}

impl Refreshes {
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        self.last.is_none_or(|at| later(at, MIN_INTERVAL) <= now)
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// Adds an object at the end of the line.
    pub(super) fn push(&mut self, object_ref: ObjectRef) {
        self.waiting.push_back(object_ref);
    }

    /// Removes the next object, and returns when its refresh may begin, unless another object has its turn.
    pub(super) fn next_turn(&mut self, now: Instant) -> Option<(ObjectRef, Instant)> {
        self.turn.take_if(|(_, at)| later(*at, TURN) < now);
        if self.turn.is_some() {
            return None;
        }
        let object_ref = self.waiting.pop_front()?;
        let at = self.last.map_or(now, |at| later(at, MIN_INTERVAL).max(now));
        Some((object_ref, at))
    }

    /// Gives an object its turn, at this time.
    pub(super) fn give_turn(&mut self, object_ref: ObjectRef, at: Instant) {
        self.turn = Some((object_ref, at));
    }

    /// Ends the turn of an object, if it has it.
    pub(super) fn end_turn(&mut self, object_ref: &ObjectRef) {
        self.turn.take_if(|(turn, _)| turn == object_ref);
    }
}
