//! The ownership of delivered objects: a work keeps them, or releases them to another component.

use crate::json::{items, text_at};
use manifest::value::Value;

/// The propagation policy that keeps delivered objects when the work is deleted.
pub const ORPHAN: &str = "Orphan";

/// The update strategy with which an agent only observes.
pub const READ_ONLY: &str = "ReadOnly";

/// The progress of a work in releasing its delivered objects, so that another component can adopt them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// The delivered objects are deleted with the work.
    Owned,
    /// The agent removes its owner reference from the delivered objects, which it does when it applies them.
    Orphaning,
    /// The agent only observes. It no longer changes the delivered objects, so it must have removed the owner reference before:
    /// Kubernetes deletes with the work any object that still has one.
    Released,
}

impl Retention {
    pub fn from_work(work: &Value<'_>) -> Self {
        let mut configs = items(work, "/spec/manifestConfigs").iter();
        match text_at(work, "/spec/deleteOption/propagationPolicy") {
            Some(ORPHAN) if configs.all(is_read_only) => Self::Released,
            Some(ORPHAN) => Self::Orphaning,
            _ => Self::Owned,
        }
    }
}

/// Returns true if the agent only observes the objects of an entry of `manifestConfigs`.
pub(super) fn is_read_only(config: &Value<'_>) -> bool {
    text_at(config, "/updateStrategy/type") == Some(READ_ONLY)
}
