//! An Application on a cluster, as a report shows it.

use hub_state::report::Resource;

/// The state of an Application on a cluster. Unknown fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// The managed cluster; empty if the Application is on none yet.
    pub cluster: &'a str,
    /// The Application, as [`app`](super::app) names it.
    pub app: String,
    /// The sync status, in Argo CD's words.
    pub sync: &'a str,
    /// The health status, in Argo CD's words.
    pub health: &'a str,
    /// The start time of the last operation.
    pub started_at: &'a str,
    /// The phase of the last operation.
    pub phase: &'a str,
    /// The Git revision that the Application was compared with.
    pub revision: &'a str,
    /// The conditions of the Application on the cluster.
    pub conditions: Vec<Condition<'a>>,
    /// The resources of the Application on the cluster, in one or more lists.
    pub resources: Vec<&'a [Resource]>,
}

impl Line<'_> {
    pub(super) fn is_healthy(&self) -> bool {
        self.health == "Healthy"
    }

    pub(super) fn is_progressing(&self) -> bool {
        self.health == "Progressing"
    }

    pub(super) fn is_synced(&self) -> bool {
        self.sync == "Synced"
    }
}

/// A condition of an Application on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The type of the condition; its suffix gives the severity.
    pub kind: &'a str,
    /// The message of the condition.
    pub message: &'a str,
}
