//! The conditions of a GitOpsCluster.

use hub_state::model::GitOpsCluster;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The maximum number of clusters that a message names.
const MAX_NAMED: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionStatus {
    True,
    False,
    Unknown,
}

/// A condition without its transition time.
pub(super) struct StatusCondition {
    pub(super) kind: &'static str,
    pub(super) is: ConditionStatus,
    /// The reasons of Red Hat ACM and of argocd-pull-integration.
    pub(super) reason: [&'static str; 2],
    pub(super) message: String,
}

/// Returns a condition of the current status.
pub(super) fn condition<'i>(it: &'i GitOpsCluster, kind: &str) -> Option<&'i Value> {
    let conditions = it.status.get("conditions")?.as_array()?;
    conditions.iter().find(|found| found["type"] == kind)
}

impl StatusCondition {
    /// Returns a condition that has the same reason in both APIs.
    pub(super) fn new(kind: &'static str, is: ConditionStatus, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            is,
            reason: [reason; 2],
            message,
        }
    }

    pub(super) fn to_json(&self, it: &GitOpsCluster, dialect: usize, now: &str) -> Value {
        let status = match self.is {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        let found = condition(it, self.kind).filter(|found| found["status"] == status);
        let since = found.and_then(|found| found["lastTransitionTime"].as_str());
        json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason[dialect],
            "message": self.message,
            "observedGeneration": it.generation,
            "lastTransitionTime": since.unwrap_or(now),
        })
    }
}

/// Joins the first few texts, and adds their total number.
pub(super) fn first_few(all: &[String]) -> String {
    let first = all.iter().take(MAX_NAMED).map(String::as_str);
    let mut text = first.collect::<Vec<_>>().join("; ");
    if all.len() > MAX_NAMED {
        let _ = write!(text, " ({} in total)", all.len());
    }
    text
}
