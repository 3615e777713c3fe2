//! What is to be written: values that are complete enough to be carried out without another thought.

use super::resources::Resource;
use super::seen::Place;
use crate::pki::Recipe;
use serde_json::Value;

/// What is to be done on behalf of an object, at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// On which object Events are told.
    pub of: Involved,
    /// What is written, in this order. Where one cannot be, the rest is not, and all is decided anew.
    pub writes: Vec<Write>,
    /// Whether that asks Argo CD to look again.
    pub refresh: bool,
    /// What is told to whom it concerns, once all is written. Where nothing is, it is what somebody has to see to, and lasts: as
    /// long as the hub has the Event, it is not told again.
    pub events: Vec<Event>,
}

/// An object on which something is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Involved {
    /// What it is.
    pub resource: &'static Resource,
    /// Where it is.
    pub place: Place,
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// An object that is not there.
    Create {
        /// What it is.
        resource: &'static Resource,
        /// Where it shall be.
        place: Place,
        /// All of it.
        object: Value,
    },
    /// A JSON merge patch of an object.
    Patch {
        /// What it is.
        resource: &'static Resource,
        /// Where it is.
        place: Place,
        /// The patch. It has the `resourceVersion` of the form that was looked at: another is not written.
        body: Value,
    },
    /// An object that shall not be there.
    Delete {
        /// What it is.
        resource: &'static Resource,
        /// Where it is.
        place: Place,
        /// What distinguishes it from one of the same name before it: another is not deleted.
        uid: Box<str>,
        /// The form of it that was looked at: another is not deleted.
        version: Box<str>,
        /// What must not be there for it to be deleted, which is asked of the API server before.
        unless_there: Option<(&'static Resource, Place)>,
    },
    /// Another write, with something in it that is made when it is written: what nobody may see before, and what needs chance.
    Make {
        /// What is written.
        write: Box<Write>,
        /// What is made for it.
        recipe: Recipe,
        /// Under which key of what is written it is put.
        into: &'static str,
    },
}

impl Action {
    /// What is to be told now that it is written, on behalf of the promise of this name.
    pub fn told(self, promise: &'static str) -> impl Iterator<Item = Telling> {
        let Self { of, writes, events, .. } = self;
        let lasts = writes.is_empty();
        events.into_iter().map(move |event| Telling {
            promise,
            of: of.clone(),
            event,
            lasts,
        })
    }
}

/// An Event that is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// On behalf of which promise.
    pub promise: &'static str,
    /// Of which object.
    pub of: Involved,
    /// What.
    pub event: Event,
    /// Whether it is so until somebody sees to it, and does not happen again and again.
    pub lasts: bool,
}

/// An Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether somebody should look.
    pub warning: bool,
    /// What happened, in one word.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
}
