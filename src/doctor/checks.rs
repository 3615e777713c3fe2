//! The checks, one file each. To add a check, add a file and a line here.

mod addon;
mod admission;
mod applications;
mod argo_cd;
mod clusters;
mod confinement;
mod controller;
mod health;
mod live;
mod ocm;
mod plugin;
mod pods;
mod projects;
mod rights;
#[cfg(test)]
mod tests;
mod works;

pub(crate) use admission::denies;
pub(crate) use confinement::about_nodes;
pub(crate) use controller::is_renewed;

use super::hub_state::{HubState, Lookup};
use super::message::{Finding, Message};
use jiff::Timestamp;

/// A check of `doctor`: reads the state of the hub only, without requests.
#[derive(Debug)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// All messages of the check, besides the one about missing permissions.
    pub messages: &'static [&'static Message],
    /// Runs the check as of a time.
    pub(crate) run: fn(&HubState, Timestamp) -> Vec<Finding>,
}

/// All checks.
pub static CHECKS: &[&Check] = &[
    &argo_cd::CHECK,
    &ocm::CHECK,
    &plugin::CHECK,
    &pods::CHECK,
    &confinement::CHECK,
    &health::CHECK,
    &projects::CHECK,
    &applications::CHECK,
    &controller::CHECK,
    &rights::CHECK,
    &admission::CHECK,
    &clusters::CHECK,
    &works::CHECK,
    &addon::CHECK,
    &live::CHECK,
];

/// The names of the checks of a hub that has nothing of this program yet.
pub(crate) const BEFORE_INSTALL: [&str; 5] = ["argo-cd", "ocm", "confinement", "rights", "clusters"];

/// The message of every check about missing permissions.
pub static REFUSED: Message = Message::unreadable(
    "cannot-read",
    "cannot read {what}: {why}",
    "ask for permission to get and list them, or ask an administrator to run this",
);

impl<T> Lookup<T> {
    /// Returns the finding that `what` cannot be read, if that is so.
    fn refusal(&self, what: &str) -> Vec<Finding> {
        match self {
            Self::Refused(why) => vec![REFUSED.finding(&[("what", &what), ("why", why)])],
            Self::Found(_) | Self::NotFound => Vec::new(),
        }
    }
}
