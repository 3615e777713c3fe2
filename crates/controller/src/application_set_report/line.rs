//! An Application on a cluster, as a report shows it.

/// The label that names the ApplicationSet of a report, cut to the length of a label value.
pub const HOSTING: &str = ocm::pull_model::SET;
/// The annotation that describes what the report leaves out.
pub const TRUNCATED: &str = "argocd-ocm-cmp.github.io/truncated";

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

/// An object on a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// The name of the object.
    pub name: Box<str>,
    /// The kind of the object.
    pub kind: Box<str>,
    /// The namespace of the object on the cluster; empty for a cluster-scoped object.
    pub namespace: Box<str>,
    /// The API group and version of the object.
    pub api_version: Box<str>,
}
