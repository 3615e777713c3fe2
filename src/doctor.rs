//! The problems of a hub and their remediation: pure checks of the state that was read.
//!
//! ```text
//! hub ─▶ HubState ─▶ checks, a file each ─▶ Finding ─▶ a table, or JSON
//! ```
//!
//! Every possible finding of a check is a [`Message`]; docs/doctor.md lists those that need action. A state that cannot be read is a
//! finding as well: then `doctor` does not report success.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod checks;
mod controller;
mod hub_state;
mod message;
mod print;
mod rights;

pub(crate) use checks::{BEFORE_INSTALL, about_nodes, denies, is_renewed};
pub use checks::{CHECKS, Check, REFUSED};
pub(crate) use hub_state::{AGENT_LABEL, HubNode, HubState, HubWork, LiveState, Lookup, PLUGIN, Project, ReplicaSet};
pub(crate) use message::Finding;
pub use message::{Message, Severity};
pub(crate) use rights::{Permission, required_permissions};

use jiff::Timestamp;

/// Runs all checks, and returns their findings as of `now`, errors first.
pub(crate) fn examine(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in CHECKS {
        findings.extend((check.run)(hub_state, now).into_iter().map(|finding| Finding {
            check: check.name,
            ..finding
        }));
    }
    // A stable sort: findings of a level stay in the order of the checks.
    findings.sort_by_key(|finding| finding.message.level);
    findings
}

/// The overall result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// There are no errors; there may be warnings.
    Passed,
    /// There are errors.
    Failed,
    /// There are no errors, but some checks could not run.
    Unknown,
}

/// Returns the overall result of the findings.
pub(crate) fn overall_result(findings: &[Finding]) -> CheckResult {
    if findings.iter().any(|finding| finding.message.level == Severity::Error) {
        CheckResult::Failed
    } else if findings.iter().any(|finding| finding.message.unreadable) {
        CheckResult::Unknown
    } else {
        CheckResult::Passed
    }
}
