//! Events that wait to be written: bounded, with a fair share for each namespace.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::action::Telling;
use super::turns::{Share, Turns};
use std::sync::Arc;

/// How many Events wait at most: an API server that accepts none must not fill our memory.
const MOST: usize = 10_000;

/// Events that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Turns<Telling>,
    /// Whether an Event was dropped since most of the room was free.
    is_full: bool,
}

/// What became of an Event that was put into the outbox.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits.
    Kept,
    /// It, or one of a namespace with more Events, was dropped.
    Dropped {
        /// Whether it is the first since there was room.
        first: bool,
    },
}

impl Outbox {
    /// Adds an Event. Where there is no room, the newest Event of the namespace with most Events makes room for it, or it is dropped
    /// itself.
    pub(super) fn put(&mut self, telling: Telling) -> Put {
        let share = Share::of(&telling.of.place.namespace);
        if self.waiting.len() < MOST {
            self.waiting.push(&share, telling);
            return Put::Kept;
        }
        if self.waiting.make_room(&share.namespace) {
            self.waiting.push(&share, telling);
        }
        let first = !std::mem::replace(&mut self.is_full, true);
        Put::Dropped { first }
    }

    /// Takes the next Event of a namespace that may have a turn.
    pub(super) fn pop(&mut self, may: impl Fn(&Arc<str>) -> bool) -> Option<(Share, Telling)> {
        if self.waiting.len() < MOST / 2 {
            self.is_full = false;
        }
        self.waiting.pop(may, |_| true)
    }

    /// Returns how many Events wait at most.
    pub(super) const fn room() -> usize {
        MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::action::{Event, Involved};
    use crate::controller::resources::APPLICATIONS;
    use crate::controller::seen::Place;

    fn telling(namespace: &str, number: usize) -> Telling {
        Telling {
            promise: "application-status",
            of: Involved {
                resource: &APPLICATIONS,
                place: Place::new(namespace, &number.to_string()),
                uid: "".into(),
            },
            event: Event {
                warning: true,
                reason: "Test",
                message: String::new(),
            },
            lasts: false,
        }
    }

    fn pop(outbox: &mut Outbox) -> Option<String> {
        outbox.pop(|_| true).map(|(_, it)| it.of.place.to_string())
    }

    #[test]
    fn events_beyond_the_limit_are_dropped_of_the_namespace_with_most() {
        let mut outbox = Outbox::default();
        for number in 0..MOST {
            assert_eq!(outbox.put(telling("loud", number)), Put::Kept);
        }
        assert_eq!(outbox.put(telling("loud", MOST)), Put::Dropped { first: true });
        assert_eq!(outbox.put(telling("quiet", 0)), Put::Dropped { first: false });
        assert_eq!(outbox.waiting.len(), MOST);
        assert_eq!(pop(&mut outbox).as_deref(), Some("loud/0"));
        assert_eq!(
            pop(&mut outbox).as_deref(),
            Some("quiet/0"),
            "the Event of the other namespace waits"
        );
        let left: Vec<_> = std::iter::from_fn(|| pop(&mut outbox)).collect();
        assert_eq!(
            (left.len(), left.last().map(String::as_str)),
            (MOST - 2, Some("loud/9998"))
        );
    }

    #[test]
    fn the_first_event_that_is_dropped_is_announced_once_for_each_burst() {
        let mut outbox = Outbox::default();
        let fill = |outbox: &mut Outbox| (0..=MOST).map(|number| outbox.put(telling("a", number))).last();
        assert_eq!(fill(&mut outbox), Some(Put::Dropped { first: true }));
        pop(&mut outbox);
        assert_eq!(outbox.put(telling("a", 0)), Put::Kept);
        assert_eq!(outbox.put(telling("a", 0)), Put::Dropped { first: false });
        while pop(&mut outbox).is_some() {}
        assert_eq!(fill(&mut outbox), Some(Put::Dropped { first: true }));
    }
}
