//! The changes of the cache, and what a mapper sees of them.

use super::{Cache, ReconcileRequest, Refusal, WorkBefore};
use crate::application_set_report::ExistingReport;
use crate::cluster_secrets::ClusterSecret;
use crate::model::{
    AgentResource, Application, ApplicationSet, Availability, Cluster, GitOpsCluster, Kind, Object, Placement,
    PlacementDecision, TlsSecret, Work, WorkKind,
};
use crate::pull::tenancy::Namespaces;
use crate::runtime::queue::Refresh;
use crate::runtime::table::Update;
use ocm::object_ref::ObjectRef;
use ocm::tracking::Tracking;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change of the cache that a watch event causes. A setting is the only object of its kind.
#[derive(Debug)]
pub enum Change {
    /// An update of Applications.
    Application(Update<ObjectRef, Application>),
    /// An update of the works of a kind.
    Work(WorkKind, Update<ObjectRef, Work>),
    /// A work exists and cannot be read, for this reason.
    UnreadableWork(ObjectRef, Box<str>),
    /// An update of ManagedClusters.
    Cluster(Update<Arc<str>, Cluster>),
    /// An update of PlacementDecisions.
    PlacementDecision(Update<ObjectRef, PlacementDecision>),
    /// An update of Placements.
    Placement(Update<ObjectRef, Placement>),
    /// An update of GitOpsClusters.
    GitOpsCluster(Update<ObjectRef, Box<GitOpsCluster>>),
    /// An update of AppProjects.
    Project(Update<Arc<str>, Value>),
    /// An update of the cluster Secrets of Argo CD.
    Secret(Update<Arc<str>, ClusterSecret>),
    /// An update of ApplicationSets.
    ApplicationSet(Update<ObjectRef, ApplicationSet>),
    /// An update of the reports of ApplicationSets. After a complete list, the hub is known to serve their kind.
    Report(Update<ObjectRef, ExistingReport>),
    /// An update of the Secrets with certificates of argocd-agent.
    Certificate(Update<Arc<str>, TlsSecret>),
    /// An update of the objects of argocd-agent and its add-on, of this kind.
    Object(AgentResource, Update<ObjectRef, Object>),
    /// The setting of Argo CD's namespace that allows GitOpsClusters of other namespaces to have cluster Secrets there.
    AllowOtherNamespaces(Update<(), bool>),
    /// The resource tracking settings of Argo CD.
    Tracking(Update<(), Tracking>),
    /// The namespaces in which Argo CD reads Applications.
    Namespaces(Update<(), Namespaces>),
    /// The API server refused or accepted the last write that this part of a controller made for an object.
    WriteOutcome(&'static str, usize, ReconcileRequest, Option<Refusal>),
    /// A panic, for tests.
    #[cfg(test)]
    Panic,
}

impl Change {
    /// Returns the name of the changed object for the log, or none if the change is a complete list or a setting.
    #[must_use]
    pub fn object(&self) -> Option<String> {
        match self {
            Self::Application(update) => update.key().map(ToString::to_string),
            Self::Work(_, update) => update.key().map(ToString::to_string),
            Self::Cluster(update) => update.key().map(ToString::to_string),
            Self::PlacementDecision(update) => update.key().map(ToString::to_string),
            Self::Placement(update) => update.key().map(ToString::to_string),
            Self::GitOpsCluster(update) => update.key().map(ToString::to_string),
            Self::Project(update) => update.key().map(ToString::to_string),
            Self::Secret(update) => update.key().map(ToString::to_string),
            Self::ApplicationSet(update) => update.key().map(ToString::to_string),
            Self::Report(update) => update.key().map(ToString::to_string),
            Self::Certificate(update) => update.key().map(ToString::to_string),
            Self::Object(_, update) => update.key().map(ToString::to_string),
            _ => None,
        }
    }
}

/// A change of one object that the cache has applied.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'c> {
    /// The kind of the object.
    pub kind: Kind,
    /// The namespace and name of the object.
    pub object_ref: &'c ObjectRef,
    /// The previous state, for the kinds whose mappers need it.
    pub before: Option<Before<'c>>,
}

impl Changed<'_> {
    /// Returns the requests for the Applications that own a changed work or owned it.
    pub(crate) fn owners(&self) -> Vec<ReconcileRequest> {
        let (owners, refresh) = match self.before {
            Some(Before::Work(before)) => (&before.owners, before.refresh),
            Some(Before::Tracking(before)) => (&before.owners, Refresh::Unchanged),
            _ => return Vec::new(),
        };
        let request = |application: &ObjectRef| ReconcileRequest {
            refresh,
            ..ReconcileRequest::application(application.clone())
        };
        owners.iter().map(request).collect()
    }
}

/// The previous state of a changed object.
#[derive(Clone, Copy, Debug)]
pub enum Before<'c> {
    /// An Application.
    Application(&'c Application),
    /// A work.
    Work(&'c WorkBefore),
    /// A ManagedCluster.
    Cluster(&'c ClusterBefore),
    /// The resource tracking of Argo CD, and the owners of works.
    Tracking(&'c TrackingBefore),
    /// A cluster Secret of Argo CD.
    Secret(&'c ClusterSecret),
    /// A PlacementDecision.
    PlacementDecision(&'c PlacementDecision),
    /// A GitOpsCluster.
    GitOpsCluster(&'c GitOpsCluster),
    /// An object of argocd-agent or of its add-on.
    Object(&'c Object),
}

/// A ManagedCluster before a change.
#[derive(Debug)]
pub struct ClusterBefore {
    /// The cluster, if it existed.
    pub cluster: Option<Cluster>,
    /// True if the last complete list of ManagedClusters was empty, and the changed cluster is the first since.
    pub was_list_empty: bool,
}

impl ClusterBefore {
    /// Returns true if the change affects the reachability of the cluster; `after` is the current one.
    #[must_use]
    pub fn has_availability_changed(&self, after: Option<&Cluster>) -> bool {
        Availability::of(self.cluster.as_ref()) != Availability::of(after)
    }

    /// Returns true if the change created or deleted the cluster; `after` is the current one.
    #[must_use]
    pub fn was_created_or_deleted(&self, after: Option<&Cluster>) -> bool {
        self.cluster.is_some() != after.is_some()
    }
}

/// The resource tracking of Argo CD before a change.
#[derive(Debug)]
pub struct TrackingBefore {
    /// The tracking label.
    pub label: String,
    /// The Applications that owned works or own works now.
    pub owners: BTreeSet<ObjectRef>,
}

/// A function that maps a change to the objects to reconcile.
pub type Mapper = fn(&Cache, &Changed<'_>) -> Vec<ReconcileRequest>;

/// The mappers of controllers, by the kind of the changed object.
pub type Mappers = BTreeMap<Kind, Vec<Mapper>>;
