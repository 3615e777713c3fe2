//! The Events that wait to be written: bounded, with a fair share for each namespace.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::action::RecordedEvent;
use super::turns::{Share, Turns};
use std::sync::Arc;

/// The maximum number of waiting Events: an API server that accepts none must not fill our memory.
const MOST: usize = 10_000;

/// The Events that wait to be written.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: Turns<RecordedEvent>,
    /// True if an Event was dropped and at least half of the capacity has been in use since.
    is_full: bool,
}

/// The result of adding an Event to the outbox.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// The Event waits.
    Waiting,
    /// The Event, or one of a namespace with more Events, was dropped.
    Dropped {
        /// True for the first drop since there was room.
        first: bool,
    },
}

impl Outbox {
    /// Adds an Event. If the outbox is full, drops the newest Event of the namespace with most Events, or the Event itself.
    pub fn put(&mut self, recorded: RecordedEvent) -> Put {
        let share = Share::of(&recorded.of.place.namespace);
        if self.waiting.len() < MOST {
            self.waiting.push(&share, recorded);
            return Put::Waiting;
        }
        if self.waiting.make_room(&share.namespace) {
            self.waiting.push(&share, recorded);
        }
        let first = !std::mem::replace(&mut self.is_full, true);
        Put::Dropped { first }
    }

    /// Removes and returns the next Event of a namespace that `may` accepts.
    pub fn pop(&mut self, may: impl Fn(&Arc<str>) -> bool) -> Option<(Share, RecordedEvent)> {
        if self.waiting.len() < MOST / 2 {
            self.is_full = false;
        }
        self.waiting.pop(may, |_| true)
    }

    /// Returns the maximum number of waiting Events.
    #[must_use]
    pub const fn room() -> usize {
        MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::action::{Event, Involved};
    use ocm::object_ref::ObjectRef;
    use ocm::resources::APPLICATIONS;

    fn recorded(namespace: &str, number: usize) -> RecordedEvent {
        RecordedEvent {
            controller: "application-status",
            of: Involved {
                resource: &APPLICATIONS,
                place: ObjectRef::new(namespace, &number.to_string()),
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
            assert_eq!(outbox.put(recorded("loud", number)), Put::Waiting);
        }
        assert_eq!(outbox.put(recorded("loud", MOST)), Put::Dropped { first: true });
        assert_eq!(outbox.put(recorded("quiet", 0)), Put::Dropped { first: false });
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
        let fill = |outbox: &mut Outbox| (0..=MOST).map(|number| outbox.put(recorded("a", number))).last();
        assert_eq!(fill(&mut outbox), Some(Put::Dropped { first: true }));
        pop(&mut outbox);
        assert_eq!(outbox.put(recorded("a", 0)), Put::Waiting);
        assert_eq!(outbox.put(recorded("a", 0)), Put::Dropped { first: false });
        while pop(&mut outbox).is_some() {}
        assert_eq!(fill(&mut outbox), Some(Put::Dropped { first: true }));
    }
}
