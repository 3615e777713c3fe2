//! What is wrong with a hub, and what to do about it: pure checks of what was read there.
//!
//! ```text
//! hub ─▶ Seen ─▶ checks, a file each ─▶ Finding ─▶ a table, or JSON
//! ```
//!
//! What a check may find is a [`Message`], which docs/doctor.md explains. What cannot be looked at is found as well: where that is so,
//! nobody is told that all is well.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod checks;
mod companion;
mod message;
mod print;
mod rights;
mod seen;
mod shipped;

pub use checks::{CHECKS, Check};
pub use companion::Companion;
pub use message::{Finding, Level, Message};
pub use print::{table, value};
pub use rights::{Right, wanted};
pub(crate) use seen::{AGENT_LABEL, CONTROLLER, PLUGIN};
pub use seen::{Application, Cluster, Look, Project, Refusal, ReplicaSet, Seen, Work};

use k8s_openapi::jiff::Timestamp;

/// What all checks find, errors first; as of `now`.
#[must_use]
pub fn examine(seen: &Seen, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in CHECKS {
        findings.extend((check.run)(seen, now).into_iter().map(|finding| Finding {
            check: check.name,
            ..finding
        }));
    }
    // Those of a level stay in the order of the checks.
    findings.sort_by_key(|finding| finding.message.level);
    findings
}

/// How the hub is as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong; there may be warnings.
    Well,
    /// Something is wrong.
    Wrong,
    /// Nothing that was looked at is wrong, but not all could be.
    Unknown,
}

/// How the hub is of which this was found.
#[must_use]
pub fn verdict(findings: &[Finding]) -> Verdict {
    if findings.iter().any(|finding| finding.message.level == Level::Error) {
        Verdict::Wrong
    } else if findings.iter().any(|finding| finding.message.blind) {
        Verdict::Unknown
    } else {
        Verdict::Well
    }
}
