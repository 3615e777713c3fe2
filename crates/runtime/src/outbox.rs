//! The Events that wait to be written: bounded, with a fair share for each namespace.

use super::action::RecordedEvent;
use super::fair_queue::{FairQueue, FlowKey};
use std::sync::Arc;

/// The maximum number of waiting Events: an API server that accepts none must not fill our memory.
pub const CAPACITY: usize = 10_000;

#[derive(Debug, Default)]
pub struct Outbox {
    waiting: FairQueue<RecordedEvent>,
    /// True if an Event was dropped and at least half of the capacity has been in use since.
    is_full: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Enqueued {
    Waiting,
    /// The Event, or one of a namespace with more Events, was dropped.
    Dropped {
        /// True for the first drop since there was room.
        first: bool,
    },
}

impl Outbox {
    /// Adds an Event. If the outbox is full, drops the newest Event of the namespace with most Events, or the Event itself.
    pub fn put(&mut self, recorded: RecordedEvent) -> Enqueued {
        let flow = FlowKey::of_namespace(&recorded.involved_object.object_ref.namespace);
        if self.waiting.len() < CAPACITY {
            self.waiting.push(&flow, recorded);
            return Enqueued::Waiting;
        }
        if self.waiting.make_room(&flow.namespace) {
            self.waiting.push(&flow, recorded);
        }
        let first = !std::mem::replace(&mut self.is_full, true);
        Enqueued::Dropped { first }
    }

    /// Removes and returns the next Event of a namespace that `may` accepts.
    pub fn pop(&mut self, may: impl Fn(&Arc<str>) -> bool) -> Option<(FlowKey, RecordedEvent)> {
        if self.waiting.len() < CAPACITY / 2 {
            self.is_full = false;
        }
        self.waiting.pop(may, |_| true)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Event, InvolvedObject};
    use ocm::resources::APPLICATIONS;
    use primitives::object_ref::ObjectRef;

    fn recorded(namespace: &str, number: usize) -> RecordedEvent {
        RecordedEvent {
            controller: "application-status",
            involved_object: InvolvedObject::new(
                &APPLICATIONS,
                ObjectRef::new(namespace, &number.to_string()),
                "".into(),
            ),
            event: Event::warning("Test", String::new()),
            is_persistent: false,
        }
    }

    fn pop(outbox: &mut Outbox) -> Option<String> {
        outbox
            .pop(|_| true)
            .map(|(_, event)| event.involved_object.object_ref.to_string())
    }

    #[test]
    fn full_outbox_drops_events_of_the_largest_namespace() {
        let mut outbox = Outbox::default();
        for number in 0..CAPACITY {
            assert_eq!(outbox.put(recorded("loud", number)), Enqueued::Waiting);
        }
        assert_eq!(
            outbox.put(recorded("loud", CAPACITY)),
            Enqueued::Dropped { first: true }
        );
        assert_eq!(outbox.put(recorded("quiet", 0)), Enqueued::Dropped { first: false });
        assert_eq!(outbox.waiting.len(), CAPACITY);
        assert_eq!(pop(&mut outbox).as_deref(), Some("loud/0"));
        assert_eq!(
            pop(&mut outbox).as_deref(),
            Some("quiet/0"),
            "the Event of the other namespace waits"
        );
        let left: Vec<_> = std::iter::from_fn(|| pop(&mut outbox)).collect();
        assert_eq!(
            (left.len(), left.last().map(String::as_str)),
            (CAPACITY - 2, Some("loud/9998"))
        );
    }

    #[test]
    fn announces_only_the_first_dropped_event_of_a_burst() {
        let mut outbox = Outbox::default();
        let fill = |outbox: &mut Outbox| (0..=CAPACITY).map(|number| outbox.put(recorded("a", number))).last();
        assert_eq!(fill(&mut outbox), Some(Enqueued::Dropped { first: true }));
        pop(&mut outbox);
        assert_eq!(outbox.put(recorded("a", 0)), Enqueued::Waiting);
        assert_eq!(outbox.put(recorded("a", 0)), Enqueued::Dropped { first: false });
        while pop(&mut outbox).is_some() {}
        assert_eq!(fill(&mut outbox), Some(Enqueued::Dropped { first: true }));
    }
}
