//! What is to be written: values that are complete enough to be carried out without another thought.

use super::seen::{Condition, Place};

/// What is to be written to an Application that Argo CD reconciles, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where it is.
    pub application: Place,
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// The form of it that was looked at: another is not written.
    pub version: Box<str>,
    /// All its conditions, where they change.
    pub conditions: Option<Vec<Condition>>,
    /// Whether Argo CD is asked to look at it again.
    pub refresh: bool,
    /// What is told to whom it concerns, once it is written.
    pub events: Vec<Event>,
}

impl Action {
    /// What is to be told now that it is written, on behalf of the promise of this name.
    pub fn told(self, promise: &'static str) -> impl Iterator<Item = Telling> {
        let Self {
            application,
            uid,
            events,
            ..
        } = self;
        events.into_iter().map(move |event| Telling {
            promise,
            application: application.clone(),
            uid: uid.clone(),
            event,
        })
    }
}

/// An Event that is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// On behalf of which promise.
    pub promise: &'static str,
    /// Of which Application.
    pub application: Place,
    /// What distinguishes that from one of the same name before it.
    pub uid: Box<str>,
    /// What.
    pub event: Event,
}

/// An Event on an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether somebody should look.
    pub warning: bool,
    /// What happened, in one word.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
}
