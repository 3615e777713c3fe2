//! What the controller promises, one file each: what should be written, of what is there. Adding one is a file and a line.

mod application_status;

use super::action::Action;
use super::index::Index;
use super::seen::Place;
use k8s_openapi::jiff::Timestamp;

/// A promise.
#[derive(Debug)]
pub struct Promise {
    /// What it is called on the command line and in metrics.
    pub name: &'static str,
    /// What it does, in a line of the help.
    pub about: &'static str,
    /// What is to be written for an Application; nothing when it is as it should be.
    pub desired: fn(&Index, &Place, &Moment) -> Option<Action>,
}

/// When something is decided.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// Whether Argo CD shows something stale of the Application.
    pub stale: bool,
}

/// Every promise.
pub static PROMISES: &[Promise] = &[application_status::PROMISE];
