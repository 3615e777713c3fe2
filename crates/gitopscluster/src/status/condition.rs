//! The conditions of a GitOpsCluster.

use hub_state::GitOpsCluster;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The maximum number of clusters that a message names.
const MAX_NAMED: usize = 3;

/// The status of a condition, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum ConditionStatus {
    False,
    Unknown,
    True,
}

pub(super) type StatusCondition = (&'static str, Outcome);

#[derive(Clone)]
pub(super) struct Outcome {
    pub(super) is: ConditionStatus,
    /// The reasons of Red Hat ACM and of argocd-pull-integration.
    pub(super) reason: [&'static str; 2],
    pub(super) message: String,
}

impl Outcome {
    /// Returns an outcome that has the same reason in both APIs.
    pub(super) fn new(status: ConditionStatus, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is: status,
            reason: [reason; 2],
            message: message.into(),
        }
    }

    pub(super) fn success(message: impl Into<String>) -> Self {
        Self::new(ConditionStatus::True, "Success", message)
    }

    /// Returns the outcome of what fails, with the reason of Red Hat ACM.
    pub(super) fn failure(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason: [reason, "Failed"],
            ..Self::new(ConditionStatus::False, reason, message)
        }
    }

    /// Returns the outcome of what is not decided yet, with the reason of Red Hat ACM.
    pub(super) fn progress(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason: [reason, "InProgress"],
            ..Self::new(ConditionStatus::Unknown, reason, message)
        }
    }

    /// Returns the condition of this type, in the API that the GitOpsCluster uses.
    pub(super) fn to_json(&self, kind: &str, gitops_cluster: &GitOpsCluster, now: &str) -> Value {
        let status = json!(self.is);
        let before = condition(gitops_cluster, kind).filter(|condition| condition["status"] == status);
        let since = before.and_then(|condition| condition["lastTransitionTime"].as_str());
        json!({
            "type": kind,
            "status": status,
            "reason": self.reason[usize::from(gitops_cluster.spec.is_pull_integration)],
            "message": self.message,
            "observedGeneration": gitops_cluster.generation,
            "lastTransitionTime": since.unwrap_or(now),
        })
    }
}

/// Returns the first of the outcomes with the worst status, unless all are True.
pub(super) fn worst<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> Option<&'o Outcome> {
    let bad = outcomes.filter(|outcome| outcome.is != ConditionStatus::True);
    bad.min_by_key(|outcome| outcome.is)
}

pub(super) fn condition<'i>(gitops_cluster: &'i GitOpsCluster, kind: &str) -> Option<&'i Value> {
    let conditions = gitops_cluster.status.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

pub(super) fn first_few(all: &[String]) -> String {
    let first = all.iter().take(MAX_NAMED).map(String::as_str);
    let mut text = first.collect::<Vec<_>>().join("; ");
    if all.len() > MAX_NAMED {
        let _ = write!(text, " ({} in total)", all.len());
    }
    text
}
