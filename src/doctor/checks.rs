//! What is checked, one file each. Adding a check is a file and a line.

mod addon;
mod argo_cd;
mod clusters;
mod companion;
mod confinement;
mod health;
mod ocm;
mod plugin;
mod pods;
mod projects;
mod rights;
#[cfg(test)]
mod tests;
mod works;

use super::message::{Finding, Message};
use super::seen::Seen;
use k8s_openapi::jiff::Timestamp;

/// A check.
#[derive(Debug)]
pub struct Check {
    /// What it is called.
    pub name: &'static str,
    /// All that it may find, besides that it may not look.
    pub messages: &'static [&'static Message],
    /// What it finds as of a time.
    pub run: fn(&Seen, Timestamp) -> Vec<Finding>,
}

/// Every check.
pub static CHECKS: &[&Check] = &[
    &argo_cd::CHECK,
    &ocm::CHECK,
    &plugin::CHECK,
    &pods::CHECK,
    &confinement::CHECK,
    &health::CHECK,
    &projects::CHECK,
    &companion::CHECK,
    &rights::CHECK,
    &clusters::CHECK,
    &works::CHECK,
    &addon::CHECK,
];

/// What any check may find.
pub(super) static REFUSED: Message = Message::blind(
    "could-not-look",
    "could not look at {what}: {why}",
    "have somebody grant you to get and list them, or to run this",
);

/// We may not look at something, for this reason.
fn refused(what: &str, why: &str) -> Vec<Finding> {
    vec![REFUSED.of(&[("what", &what), ("why", &why)])]
}
