//! The writes that a controller requests: plain values, complete enough to be carried out without further decisions.

use manifest::text::shortened;
use pki::Recipe;
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use serde_json::Value;

const MAX_NAMED_CHANGES: usize = 3;

/// The maximum length of the message of an Event, in bytes: that of Kubernetes' API `events.k8s.io`.
const MAX_MESSAGE: usize = 1024;

/// The writes for an object, to be carried out at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub involved_object: InvolvedObject,
    /// The writes, in this order. If one fails, the rest is skipped and the object is reconciled again.
    pub writes: Vec<Write>,
    /// True if the writes ask for a refresh of the object.
    pub refresh: bool,
    /// The Events to record after all writes have succeeded. Without writes, an Event reports a lasting problem that a person has
    /// to solve: it is not repeated as long as the hub has the Event.
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvolvedObject {
    pub resource: &'static Resource,
    pub object_ref: ObjectRef,
    pub uid: Box<str>,
}

impl InvolvedObject {
    pub fn new(resource: &'static Resource, object_ref: ObjectRef, uid: Box<str>) -> Self {
        Self {
            resource,
            object_ref,
            uid,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub resource: &'static Resource,
    pub object_ref: ObjectRef,
    pub verb: Verb,
    /// The recipe for data that the writer adds to the content: secrets that must not be kept before, and random values.
    pub recipe: Option<Recipe>,
    /// The object that must not exist for the write. The writer asks the API server first.
    pub unless_exists: Option<(&'static Resource, ObjectRef)>,
    /// True if that object exists for some time, so that the write waits for its deletion without counting as failed.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    Create(Value),
    /// Patches an object by a JSON merge patch. It contains the `resourceVersion` that the decision is based on: the API server
    /// rejects it for any other version.
    Patch(Value),
    /// Patches an element of a list, by the operations of a JSON patch (RFC 6902): a merge patch would need the whole list. One
    /// operation replaces the `resourceVersion`, with the same effect. Only the removal of an object uses it, so a plan counts it as a
    /// deletion.
    JsonPatch(Value),
    Delete {
        /// The UID as a precondition: another object of the same name is not deleted.
        uid: Box<str>,
        /// The resource version as a precondition: a changed object is not deleted.
        version: Box<str>,
    },
}

impl Verb {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Patch(_) | Self::JsonPatch(_) => "patch",
            Self::Delete { .. } => "delete",
        }
    }
}

impl Write {
    pub fn create(resource: &'static Resource, object_ref: ObjectRef, object: Value) -> Self {
        Self::new(resource, object_ref, Verb::Create(object))
    }

    pub fn patch(resource: &'static Resource, object_ref: ObjectRef, body: Value) -> Self {
        Self::new(resource, object_ref, Verb::Patch(body))
    }

    pub fn json_patch(resource: &'static Resource, object_ref: ObjectRef, operations: Value) -> Self {
        Self::new(resource, object_ref, Verb::JsonPatch(operations))
    }

    pub fn delete(resource: &'static Resource, object_ref: ObjectRef, (uid, version): (&str, &str)) -> Self {
        let verb = Verb::Delete {
            uid: uid.into(),
            version: version.into(),
        };
        Self::new(resource, object_ref, verb)
    }

    pub fn unless_exists(self, unless_exists: Option<(&'static Resource, ObjectRef)>) -> Self {
        Self { unless_exists, ..self }
    }

    fn new(resource: &'static Resource, object_ref: ObjectRef, verb: Verb) -> Self {
        Self {
            resource,
            object_ref,
            verb,
            recipe: None,
            unless_exists: None,
            waits: false,
        }
    }

    pub fn body(&self) -> Option<&Value> {
        match &self.verb {
            Verb::Create(body) | Verb::Patch(body) | Verb::JsonPatch(body) => Some(body),
            Verb::Delete { .. } => None,
        }
    }

    pub fn body_mut(&mut self) -> Option<&mut Value> {
        match &mut self.verb {
            Verb::Create(body) | Verb::Patch(body) | Verb::JsonPatch(body) => Some(body),
            Verb::Delete { .. } => None,
        }
    }
}

impl Action {
    pub fn new(involved_object: InvolvedObject, writes: Vec<Write>, events: impl IntoIterator<Item = Event>) -> Self {
        Self {
            involved_object,
            writes,
            refresh: false,
            events: events.into_iter().collect(),
        }
    }

    pub fn recorded_events(self, controller: &'static str) -> impl Iterator<Item = RecordedEvent> {
        let Self {
            involved_object,
            writes,
            events,
            ..
        } = self;
        let is_persistent = writes.is_empty();
        events.into_iter().map(move |event| RecordedEvent {
            controller,
            involved_object: involved_object.clone(),
            event,
            is_persistent,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    pub controller: &'static str,
    pub involved_object: InvolvedObject,
    pub event: Event,
    /// True if the Event reports a lasting problem that a person has to solve, not a repeated occurrence.
    pub is_persistent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Event {
    pub fn warning(reason: &'static str, message: String) -> Self {
        Self {
            warning: true,
            reason,
            message,
        }
    }

    pub fn normal(reason: &'static str, message: String) -> Self {
        Self {
            warning: false,
            reason,
            message,
        }
    }

    /// Returns one Event for changes of an object, the worst first: each Event costs the API server as much as the write that it
    /// reports. It has the reason of the worst change, and names the first few.
    pub fn of_all(changes: Vec<Self>) -> Option<Self> {
        let more = changes.len().saturating_sub(MAX_NAMED_CHANGES);
        let mut changes = changes.into_iter();
        let mut event = changes.next()?;
        for change in changes.take(MAX_NAMED_CHANGES.saturating_sub(1)) {
            event.message.extend(["; ", &change.message]);
        }
        let rest = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        let named = shortened(&event.message, MAX_MESSAGE.saturating_sub(rest.len()));
        event.message = format!("{named}{rest}");
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(reason: &'static str, message: &str) -> Event {
        Event::warning(reason, message.to_owned())
    }

    #[test]
    fn event_of_many_changes_names_the_first_few() {
        assert_eq!(Event::of_all(Vec::new()), None);
        let one = change("A", "eu1: a");
        assert_eq!(Event::of_all(vec![one.clone()]), Some(one));
        let many = vec![
            change("A", "a"),
            change("B", "b"),
            change("B", "c"),
            change("C", "d"),
            change("C", "e"),
        ];
        assert_eq!(Event::of_all(many), Some(change("A", "a; b; c; and 2 more")));
        let long = Event::of_all(vec![change("A", &"a".repeat(600)); 4]).expect("an Event");
        assert!(
            long.message.len() <= 1024 && long.message.ends_with("a…; and 1 more"),
            "{}",
            long.message
        );
    }
}
