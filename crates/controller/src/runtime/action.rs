//! The writes that a controller requests: plain values, complete enough to be carried out without further decisions.

use ocm::object_ref::ObjectRef;
use ocm::resources::Resource;
use pki::Recipe;
use serde_json::Value;

/// The writes for an object, to be carried out at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The object on which Events are recorded.
    pub involved_object: InvolvedObject,
    /// The writes, in this order. If one fails, the rest is skipped and the object is reconciled again.
    pub writes: Vec<Write>,
    /// True if the writes ask for a refresh of the object.
    pub refresh: bool,
    /// The Events to record after all writes have succeeded. Without writes, an Event reports a lasting problem that a person has
    /// to solve: it is not repeated as long as the hub has the Event.
    pub events: Vec<Event>,
}

/// The object on which an Event is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvolvedObject {
    /// The resource of the object.
    pub resource: &'static Resource,
    /// The namespace and name of the object.
    pub object_ref: ObjectRef,
    /// The UID, which distinguishes the object from an earlier one of the same name.
    pub uid: Box<str>,
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Creates an object that does not exist.
    Create {
        /// The resource of the object.
        resource: &'static Resource,
        /// The namespace and name of the object.
        object_ref: ObjectRef,
        /// The whole object.
        object: Value,
    },
    /// Patches an object by a JSON merge patch.
    Patch {
        /// The resource of the object.
        resource: &'static Resource,
        /// The namespace and name of the object.
        object_ref: ObjectRef,
        /// The patch. It contains the `resourceVersion` that the decision is based on: the API server rejects it for any other
        /// version.
        body: Value,
    },
    /// Deletes an object.
    Delete {
        /// The resource of the object.
        resource: &'static Resource,
        /// The namespace and name of the object.
        object_ref: ObjectRef,
        /// The UID as a precondition: another object of the same name is not deleted.
        uid: Box<str>,
        /// The resource version as a precondition: a changed object is not deleted.
        version: Box<str>,
        /// The object that must not exist for the deletion. The writer asks the API server first.
        unless_exists: Option<(&'static Resource, ObjectRef)>,
    },
    /// Completes another write with generated data: secrets that must not be kept before, and random values.
    Generate {
        /// The write to complete.
        write: Box<Write>,
        /// The recipe for the generated data.
        recipe: Recipe,
        /// The key of the object that receives the generated data.
        into: &'static str,
    },
}

impl Action {
    /// Returns the Events to record after the writes, on behalf of the controller of this name.
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

/// An Event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// The name of the controller.
    pub controller: &'static str,
    /// The object of the Event.
    pub involved_object: InvolvedObject,
    /// The Event.
    pub event: Event,
    /// True if the Event reports a lasting problem that a person has to solve, not a repeated occurrence.
    pub is_persistent: bool,
}

/// The contents of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// True for the type Warning.
    pub warning: bool,
    /// The reason in CamelCase.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}
