//! The cache of hub objects, kept by watch events: maps each change to the objects to reconcile. It does no I/O: changes and the
//! time are arguments.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod agents;
mod application_sets;
mod decisions;
mod gitops_clusters;
mod interned;
mod pull_applications;
mod refusals;
mod secrets;
mod works;

use super::model::AgentResource;
use crate::application_set_report::{Found, Resource};
use crate::cluster_secrets::{ClusterSecret, is_hub};
use crate::model::{
    Application, ApplicationSet, Availability, Cluster, Condition, Generated, GitOpsCluster, Kind, Object, Placement,
    PlacementDecision, TlsSecret, Work, WorkKind,
};
use crate::pull;
use crate::pull::PullWork;
use crate::pull::tenancy;
use crate::pull::tenancy::Namespaces;
use crate::runtime::fair_queue::FlowKey;
use crate::runtime::queue::Refresh;
use crate::runtime::table::{Table, Update};
use agents::Agents;
use application_sets::ApplicationSets;
use decisions::Decisions;
use gitops_clusters::GitOpsClusters;
pub use gitops_clusters::Selection;
use interned::Interned;
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::health::HealthStatus;
use ocm::object_ref::ObjectRef;
use ocm::tracking::Tracking;
use pull_applications::PullApplications;
pub use refusals::Refusal;
use refusals::Refusals;
use secrets::Secrets;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use works::Works;

/// A change of the cache that a watch event causes. A setting is the only object of its kind.
#[derive(Debug)]
pub enum Change {
    /// An update of Applications.
    Application(Update<ObjectRef, Application>),
    /// An update of the works of a kind.
    Work(WorkKind, Update<ObjectRef, Work>),
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
    Report(Update<ObjectRef, Found>),
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
    WriteRefused(&'static str, usize, ReconcileRequest, Option<Refusal>),
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

/// A work of the basic pull model.
#[derive(Clone, Copy, Debug)]
pub struct PullWorkRef<'i> {
    /// The namespace and name of the work.
    pub object_ref: &'i ObjectRef,
    /// The Application that it carries.
    pub pull_work: &'i PullWork,
    /// True if the name of the work says that it carries the Application. All else in it can be written by the cluster's agent.
    pub is_named: bool,
}

/// The kinds of objects that controllers reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReconcileKind {
    /// Applications.
    Application,
    /// ManagedClusters, which have no namespace.
    Cluster,
    /// ApplicationSets.
    ApplicationSet,
    /// GitOpsClusters.
    GitOpsCluster,
    /// The Argo CD of the hub, named by its namespace.
    ArgoCd,
    /// CertificateSigningRequests, which have no namespace.
    Request,
}

impl ReconcileKind {
    /// Returns the Kubernetes kind, for the log.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::Cluster => "ManagedCluster",
            Self::ApplicationSet => "ApplicationSet",
            Self::GitOpsCluster => "GitOpsCluster",
            Self::ArgoCd => "Namespace",
            Self::Request => "CertificateSigningRequest",
        }
    }
}

/// An object to reconcile because of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    /// The kind of the object.
    pub kind: ReconcileKind,
    /// The namespace and name of the object.
    pub object_ref: ObjectRef,
    /// Argo CD's need to be asked for a refresh.
    pub refresh: Refresh,
}

impl ReconcileRequest {
    /// Returns the request for an Application whose state in Argo CD is up to date.
    pub(crate) fn application(object_ref: ObjectRef) -> Self {
        Self {
            kind: ReconcileKind::Application,
            object_ref,
            refresh: Refresh::Unchanged,
        }
    }

    /// Returns the request for the Argo CD of the hub.
    pub(crate) fn argocd(namespace: &Arc<str>) -> Self {
        Self {
            kind: ReconcileKind::ArgoCd,
            object_ref: ObjectRef {
                namespace: "".into(),
                name: Arc::clone(namespace),
            },
            refresh: Refresh::Unchanged,
        }
    }

    /// Returns the request for a CertificateSigningRequest.
    pub(crate) fn request(object_ref: ObjectRef) -> Self {
        Self {
            kind: ReconcileKind::Request,
            ..Self::application(object_ref)
        }
    }

    /// Returns the request for a ManagedCluster.
    pub(crate) fn cluster(name: &Arc<str>) -> Self {
        Self {
            kind: ReconcileKind::Cluster,
            object_ref: ObjectRef {
                namespace: "".into(),
                name: Arc::clone(name),
            },
            refresh: Refresh::Unchanged,
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

/// The previous state of a changed object.
#[derive(Clone, Copy, Debug)]
pub enum Before<'c> {
    /// A cluster Secret of Argo CD.
    Secret(&'c ClusterSecret),
    /// A PlacementDecision.
    PlacementDecision(&'c PlacementDecision),
    /// A GitOpsCluster.
    GitOpsCluster(&'c GitOpsCluster),
    /// An object of argocd-agent or of its add-on.
    Object(&'c Object),
}

/// A function that maps a change to the objects to reconcile.
pub type Mapper = fn(&Cache, &Changed<'_>) -> Vec<ReconcileRequest>;

/// The mappers of controllers, by the kind of the changed object.
pub type Mappers = BTreeMap<Kind, Vec<Mapper>>;

/// The cached objects of the hub.
#[derive(Debug)]
pub struct Cache {
    applications: Table<ObjectRef, Application>,
    /// True if a watch event has reported the deletion of an Application since the last complete list.
    has_seen_deletion: bool,
    pull_applications: PullApplications,
    /// The namespaces in which Argo CD reads Applications, besides its own.
    namespaces: Namespaces,
    works: Works,
    clusters: Table<Arc<str>, Cluster>,
    /// The number of managed clusters by reachability, in the order of [`Availability::ALL`].
    cluster_counts: [usize; 3],
    decisions: Decisions,
    projects: Table<Arc<str>, Value>,
    /// True if the complete list of ManagedClusters was empty.
    lists_no_cluster: bool,
    secrets: Secrets,
    application_sets: ApplicationSets,
    gitops: GitOpsClusters,
    agents: Agents,
    /// The resources of Applications that ApplicationSets generated, kept only if reports are enabled.
    resources: Option<Interned<Resource>>,
    /// The last writes that the API server refused.
    refusals: Refusals,
    /// The namespace of Argo CD.
    argocd: Arc<str>,
    mappers: Mappers,
}

impl Cache {
    /// Creates an empty cache for a hub whose Argo CD is in this namespace.
    #[must_use]
    pub fn new(argocd: &str) -> Self {
        Self {
            applications: Table::default(),
            has_seen_deletion: false,
            pull_applications: PullApplications::default(),
            namespaces: Namespaces::default(),
            works: Works::new(argocd),
            clusters: Table::default(),
            cluster_counts: [0; 3],
            decisions: Decisions::default(),
            projects: Table::default(),
            lists_no_cluster: false,
            secrets: Secrets::default(),
            application_sets: ApplicationSets::default(),
            gitops: GitOpsClusters::default(),
            agents: Agents::default(),
            refusals: Refusals::default(),
            argocd: argocd.into(),
            resources: None,
            mappers: Mappers::new(),
        }
    }

    /// Keeps the fields of Applications that the reports of ApplicationSets need.
    #[must_use]
    pub fn with_reports(mut self) -> Self {
        self.resources = Some(Interned::default());
        self
    }

    /// Maps changes by these mappers, besides those that the cache maps for all controllers.
    #[must_use]
    pub fn with_mappers(mut self, mappers: Mappers) -> Self {
        self.mappers = mappers;
        self
    }

    /// Returns the namespace of Argo CD.
    #[must_use]
    pub fn argocd(&self) -> &Arc<str> {
        &self.argocd
    }

    /// Returns all Applications of the basic pull model.
    pub fn pulled(&self) -> impl Iterator<Item = &ObjectRef> {
        self.pull_applications.all()
    }

    /// Returns why the API server refused the last write of a controller for an object.
    #[must_use]
    pub fn refusal(&self, controller: &'static str, kind: ReconcileKind, object_ref: &ObjectRef) -> Option<&str> {
        let refusal = self.refusals.get(&(controller, kind, object_ref.clone()));
        refusal.map(|refusal| &*refusal.why)
    }

    /// Returns why the API server refused the last write of this part of a controller for an object.
    #[must_use]
    pub fn refusal_of_workqueue(
        &self,
        controller: &'static str,
        part: usize,
        kind: ReconcileKind,
        object_ref: &ObjectRef,
    ) -> Option<&str> {
        let refusal = self.refusals.of_part(&(controller, kind, object_ref.clone()), part);
        refusal.map(|refusal| &*refusal.why)
    }

    /// Returns why the API server refused writes for a GitOpsCluster, each reason once.
    #[must_use]
    pub fn refused_of_gitops(&self, object_ref: &ObjectRef) -> BTreeSet<&str> {
        self.refusals.of_gitops(object_ref)
    }

    /// Returns an Application.
    #[must_use]
    pub fn application(&self, object_ref: &ObjectRef) -> Option<&Application> {
        self.applications.get(object_ref)
    }

    /// Returns true if an Application that is not in the cache does not exist. An empty list of all Applications is no proof.
    #[must_use]
    pub fn is_application_list_certain(&self) -> bool {
        self.has_seen_deletion || !self.applications.is_empty()
    }

    /// Returns the namespaces in which Argo CD reads Applications, besides its own.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Returns true if a Placement of this namespace selects this managed cluster.
    #[must_use]
    pub fn is_selected(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        self.decisions.select(namespace, cluster)
    }

    /// Returns an AppProject in the namespace of Argo CD.
    #[must_use]
    pub fn project(&self, name: &str) -> Option<&Value> {
        self.projects.get(name)
    }

    /// Returns the works of an Application: those that Argo CD applied, and those that OCM generated from them.
    pub fn works_of(&self, application: &ObjectRef) -> impl Iterator<Item = (WorkKind, &ObjectRef, &Work)> {
        self.works.of(application)
    }

    /// Returns the works of the basic pull model that carry an Application: those with the name of its works, and those that
    /// claim it and do not have the name of another Application's works.
    #[must_use]
    pub fn pull_works(&self, application: &ObjectRef) -> Vec<PullWorkRef<'_>> {
        let pull = self.application(application).and_then(|it| it.pull.as_deref());
        let own: BTreeSet<String> = pull.map(pull::work::names).into_iter().flatten().collect();
        let by_name = own.iter().flat_map(|name| self.works.with_application(name));
        let by_name = by_name.filter(|(object_ref, pull_work)| {
            self.application_by_work_name(object_ref, pull_work) == Some(application)
        });
        let claiming = self.works.claiming(application);
        let claiming =
            claiming.filter(|(object_ref, pull_work)| self.application_by_work_name(object_ref, pull_work).is_none());
        let all = by_name.map(|(object_ref, pull_work)| (object_ref, pull_work, true));
        let all = all.chain(claiming.map(|(object_ref, pull_work)| (object_ref, pull_work, false)));
        let all = all.map(|(object_ref, pull_work, is_named)| PullWorkRef {
            object_ref,
            pull_work,
            is_named,
        });
        all.collect()
    }

    /// Returns the Application whose works have the name of this work. If several do, because their UIDs have the same prefix,
    /// returns the Application whose destination is that cluster, and among several of these the one that the work claims.
    fn application_by_work_name(&self, object_ref: &ObjectRef, pull_work: &PullWork) -> Option<&ObjectRef> {
        let pull = |application: &ObjectRef| self.application(application).and_then(|it| it.pull.as_deref());
        let named = self.pull_applications.named(&object_ref.name);
        let named = named.filter(|it| pull(it).is_some_and(|pull| pull.name == pull_work.name));
        named.min_by_key(|it| {
            let goes_there = pull(it).is_some_and(|pull| pull.cluster.as_deref() == Some(&*object_ref.namespace));
            let claim = pull_work.claim.as_ref();
            let is_claimed = claim.is_some_and(|(namespace, _)| **namespace == *it.namespace);
            (!goes_there, !is_claimed)
        })
    }

    /// Returns true if works of another Application of the basic pull model have this name.
    #[must_use]
    pub fn is_others_name(&self, work: &str, application: &ObjectRef) -> bool {
        self.pull_applications.named(work).any(|other| other != application)
    }

    /// Returns a work, if it may belong to an Application.
    #[must_use]
    pub fn work(&self, kind: WorkKind, object_ref: &ObjectRef) -> Option<&Work> {
        self.works.get(kind, object_ref)
    }

    /// Returns a ManagedCluster.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }

    /// Returns the reachability of a managed cluster. A cluster that is not in the cache has not joined.
    #[must_use]
    pub fn availability(&self, cluster: &str) -> Availability {
        self.cluster(cluster)
            .map_or(Availability::Available, |cluster| cluster.availability)
    }

    /// Returns the number of managed clusters with this reachability.
    #[must_use]
    pub fn cluster_count(&self, availability: Availability) -> usize {
        self.cluster_counts[availability as usize]
    }

    /// Returns true if a ManagedCluster was deleted. An empty list of all ManagedClusters is no proof of that: the hub may be in
    /// the middle of a restore from a backup.
    #[must_use]
    pub fn is_deleted(&self, cluster: &str) -> bool {
        !self.lists_no_cluster && self.clusters.get(cluster).is_none()
    }

    /// Returns the cluster Secrets of Argo CD for a managed cluster, with their names.
    pub fn secrets_of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        self.secrets.of(cluster)
    }

    /// Returns the cluster Secrets of a GitOpsCluster, named as `NAMESPACE/NAME`.
    pub fn secrets_owned_by(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        self.secrets.owned(owner)
    }

    /// Returns a cluster Secret of Argo CD by its name.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&ClusterSecret> {
        self.secrets.get(name)
    }

    /// Returns a GitOpsCluster.
    #[must_use]
    pub fn gitops_cluster(&self, object_ref: &ObjectRef) -> Option<&GitOpsCluster> {
        self.gitops.get(object_ref)
    }

    /// Returns all GitOpsClusters with their namespaces and names.
    pub fn gitops_clusters(&self) -> impl Iterator<Item = (&ObjectRef, &GitOpsCluster)> {
        self.gitops.all()
    }

    /// Returns true if a watch event has reported the deletion of a GitOpsCluster. Its absence from a list is no proof.
    #[must_use]
    pub fn is_gitops_cluster_deleted(&self, object_ref: &ObjectRef) -> bool {
        self.gitops.is_deleted(object_ref)
    }

    /// Returns true if GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
    #[must_use]
    pub fn allows_other_namespaces(&self) -> bool {
        self.gitops.allows_other_namespaces()
    }

    /// Returns the clusters that a Placement selects.
    #[must_use]
    pub fn selection(&self, placement: &ObjectRef) -> Selection {
        self.gitops.selection(&self.decisions, placement)
    }

    /// Returns the managed clusters in the decisions of a Placement.
    pub fn selected_by(&self, placement: &ObjectRef) -> impl Iterator<Item = &Arc<str>> + use<'_> {
        self.decisions.of(placement).flatten()
    }

    /// Returns a PlacementDecision.
    #[must_use]
    pub fn decision(&self, object_ref: &ObjectRef) -> Option<&PlacementDecision> {
        self.decisions.get(object_ref)
    }

    /// Returns true if the decisions of a Placement contain a managed cluster.
    #[must_use]
    pub fn is_selected_by(&self, placement: &ObjectRef, cluster: &str) -> bool {
        self.decisions.of(placement).any(|named| named.contains(cluster))
    }

    /// Returns an object of argocd-agent or of its add-on.
    #[must_use]
    pub fn object(&self, kind: AgentResource, object_ref: &ObjectRef) -> Option<&Object> {
        self.agents.get(kind, object_ref)
    }

    /// Returns all objects of a kind of argocd-agent and of its add-on.
    pub fn objects(&self, kind: AgentResource) -> impl Iterator<Item = (&ObjectRef, &Object)> {
        self.agents.all(kind)
    }

    /// Returns the GitOpsClusters with a decision, written by the controller, that contains a managed cluster.
    pub fn gitops_with_decision(&self, cluster: &str) -> impl Iterator<Item = ObjectRef> + use<'_> {
        let decisions = self.agents.by_cluster(AgentResource::Decisions, cluster);
        decisions.filter_map(|(_, it)| it.owner())
    }

    /// Returns true if a decision that the controller wrote for a GitOpsCluster contains a managed cluster.
    #[must_use]
    pub fn has_written_decision(&self, gitops: &ObjectRef, cluster: &str) -> bool {
        self.gitops_with_decision(cluster).any(|owner| owner == *gitops)
    }

    /// Returns the CertificateSigningRequests of the agent of a managed cluster.
    pub fn requests_of(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> + use<'_> {
        self.agents
            .by_cluster(AgentResource::Requests, cluster)
            .map(|(object_ref, _)| object_ref)
    }

    /// Returns a Secret with certificates of argocd-agent by its name.
    #[must_use]
    pub fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.agents.certificate(name)
    }

    /// Returns when the certificates of argocd-agent on the hub expire, by the names of their Secrets.
    pub fn certificates_until(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let all = names::CERTIFICATES.into_iter();
        all.filter_map(|name| Some((name, self.certificate(name)?.certificates.first()?.not_after)))
    }

    /// Returns how Argo CD tracks the resources that it applied.
    #[must_use]
    pub fn tracking(&self) -> &Tracking {
        self.works.tracking()
    }

    /// Returns an ApplicationSet.
    #[must_use]
    pub fn application_set(&self, object_ref: &ObjectRef) -> Option<&ApplicationSet> {
        self.application_sets.get(object_ref)
    }

    /// Returns the Applications that an ApplicationSet generated.
    pub fn applications_of(&self, set: &ObjectRef) -> impl Iterator<Item = (&ObjectRef, &Application)> {
        let members = self.application_sets.members(set);
        members.filter_map(|object_ref| Some((object_ref, self.application(object_ref)?)))
    }

    /// Returns the reports of ApplicationSets, if the hub serves their kind.
    #[must_use]
    pub fn reports(&self) -> Option<&Table<ObjectRef, Found>> {
        self.application_sets.reports()
    }

    /// Returns the number of works with this health.
    #[must_use]
    pub fn count(&self, health: HealthStatus) -> usize {
        self.works.count(health)
    }

    /// Returns the next time at which the health of a work changes by time alone.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.works.next()
    }

    /// Returns the share that the work for an object counts against: the share of its namespace and, within it, of the managed
    /// cluster that the object is about. A CertificateSigningRequest counts against the user who created it, as the API server
    /// records it.
    #[must_use]
    pub fn flow(&self, kind: ReconcileKind, object_ref: &ObjectRef) -> FlowKey {
        let by_cluster = |cluster: Arc<str>| FlowKey {
            namespace: Arc::clone(&object_ref.namespace),
            cluster,
        };
        match kind {
            ReconcileKind::Application => {
                let pull = self.application(object_ref).and_then(|it| it.pull.as_ref());
                let named = pull.and_then(|pull| pull.cluster.as_deref()).map(Arc::from);
                let applied = || {
                    self.works_of(object_ref)
                        .next()
                        .map(|(_, work, _)| Arc::clone(&work.namespace))
                };
                named.or_else(applied).map(by_cluster)
            }
            ReconcileKind::Cluster => Some(by_cluster(Arc::clone(&object_ref.name))),
            ReconcileKind::Request => {
                let request = self.object(AgentResource::Requests, object_ref);
                let user = request.and_then(|it| it.object["spec"]["username"].as_str());
                user.map(|user| by_cluster(user.into()))
            }
            ReconcileKind::ApplicationSet | ReconcileKind::GitOpsCluster | ReconcileKind::ArgoCd => None,
        }
        .unwrap_or_else(|| FlowKey::of(&object_ref.namespace))
    }

    /// Advances the time, and returns the objects whose health changed by time alone.
    pub fn tick(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        let affected = self.works.tick(now);
        self.with_application_sets(affected)
    }

    /// Applies a change and returns the objects to reconcile.
    pub fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        match change {
            Change::Application(update) => {
                match &update {
                    Update::Set(..) => {}
                    Update::Deleted(_) => self.has_seen_deletion = true,
                    Update::Listed(_) => self.has_seen_deletion = false,
                }
                self.each(self.applications.changes(update), Self::put_application)
            }
            Change::Work(kind, update) => self.each(self.works.changes(kind, update), |cache, object_ref, work| {
                cache.put_work(kind, object_ref, work)
            }),
            Change::Cluster(update) => {
                if let Update::Listed(all) = &update {
                    self.lists_no_cluster = all.is_empty();
                }
                self.each(self.clusters.changes(update), Self::put_cluster)
            }
            Change::PlacementDecision(update) => self.each(self.decisions.changes(update), Self::put_decision),
            Change::Placement(update) => self.each(self.gitops.placement_changes(update), Self::put_placement),
            Change::GitOpsCluster(update) => {
                if let Update::Deleted(object_ref) = &update {
                    self.gitops.record_deletion(object_ref);
                }
                self.each(self.gitops.changes(update), Self::put_gitops_cluster)
            }
            Change::Project(update) => self.each(self.projects.changes(update), Self::put_project),
            Change::Secret(update) => self.each(self.secrets.changes(update), Self::put_secret),
            Change::ApplicationSet(update) => {
                let changed = self.application_sets.update(update);
                self.map_all(Kind::ApplicationSets, &changed)
            }
            Change::Report(update) => {
                let (changed, sets) = self.application_sets.update_reports(update);
                let mut affected = self.map_all(Kind::Reports, &changed);
                affected.extend(self.map_all(Kind::ApplicationSets, &sets));
                affected
            }
            Change::Certificate(update) => self.each(self.agents.certificate_changes(update), Self::put_certificate),
            Change::Object(kind, update) => {
                let changes = self.agents.changes(kind, update);
                self.each(changes, |cache, object_ref, object| {
                    cache.put_object(kind, object_ref, object)
                })
            }
            Change::AllowOtherNamespaces(update) => self.set(update, Self::put_allows_other_namespaces),
            Change::Tracking(update) => self.set(update, |cache, tracking| {
                cache.set_tracking(tracking.unwrap_or_else(|| Tracking::configured(|_| None)))
            }),
            Change::Namespaces(update) => self.set(update, Self::put_namespaces),
            Change::WriteRefused(controller, part, affected, refusal) => {
                let object = (controller, affected.kind, affected.object_ref.clone());
                let mut changed = self.refusals.put(&object, part, refusal);
                if affected.kind == ReconcileKind::ArgoCd {
                    // Every GitOpsCluster with agents uses the values in this object.
                    let with_agents = self.gitops.all().filter(|(_, it)| it.spec.agent.is_some());
                    changed.extend(with_agents.map(|(object_ref, _)| object_ref.clone()));
                }
                let is_another =
                    |it: &ReconcileRequest| (it.kind, &it.object_ref) != (affected.kind, &affected.object_ref);
                let mut all: Vec<_> = ReconcileRequest::gitops_all(&changed).filter(is_another).collect();
                all.push(affected);
                all
            }
            #[cfg(test)]
            Change::Panic => panic!("as asked for"),
        }
    }

    /// Applies the changes of single objects, one after the other, and returns the objects to reconcile.
    fn each<K, V>(
        &mut self,
        changes: impl Iterator<Item = (K, Option<V>)>,
        put: impl Fn(&mut Self, &K, Option<V>) -> Vec<ReconcileRequest>,
    ) -> Vec<ReconcileRequest> {
        changes.flat_map(|(key, value)| put(self, &key, value)).collect()
    }

    /// Returns the objects to reconcile after a change, by the mappers of controllers: what several return, once.
    fn map(&self, kind: Kind, object_ref: &ObjectRef, before: Option<Before<'_>>) -> Vec<ReconcileRequest> {
        let changed = Changed {
            kind,
            object_ref,
            before,
        };
        let mut affected = Vec::new();
        for map in self.mappers.get(&kind).into_iter().flatten() {
            let mut more = map(self, &changed);
            if !affected.is_empty() {
                let known: HashSet<_> = affected
                    .iter()
                    .map(|it: &ReconcileRequest| (it.kind, &it.object_ref))
                    .collect();
                more.retain(|it| !known.contains(&(it.kind, &it.object_ref)));
            }
            affected.extend(more);
        }
        affected
    }

    fn map_all(&self, kind: Kind, changed: &[ObjectRef]) -> Vec<ReconcileRequest> {
        changed
            .iter()
            .flat_map(|object_ref| self.map(kind, object_ref, None))
            .collect()
    }

    /// Returns the reference to an object in the namespace of Argo CD.
    fn of_argocd(&self, name: &Arc<str>) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&self.argocd),
            name: Arc::clone(name),
        }
    }

    /// Applies the update of a setting, and returns the objects to reconcile.
    fn set<V>(
        &mut self,
        update: Update<(), V>,
        put: impl Fn(&mut Self, Option<V>) -> Vec<ReconcileRequest>,
    ) -> Vec<ReconcileRequest> {
        update.single().map(|value| put(self, value)).unwrap_or_default()
    }

    fn put_application(
        &mut self,
        object_ref: &ObjectRef,
        mut application: Option<Application>,
    ) -> Vec<ReconcileRequest> {
        if let Some(application) = &mut application {
            match &mut application.generated {
                Some(generated) if self.resources.is_some() => self.keep(&mut generated.resources),
                generated => *generated = None,
            }
        }
        let before = self.applications.put(object_ref, application);
        let after = self.applications.get(object_ref);
        self.pull_applications.index_change(object_ref, before.as_ref(), after);
        self.application_sets.index_change(object_ref, before.as_ref(), after);
        let mut sets = BTreeSet::new();
        if before.as_ref().map(report_fields) != after.map(report_fields) {
            let both = before.iter().chain(after);
            sets.extend(both.filter_map(|it| it.set(object_ref)));
        }
        let mut concerned = BTreeSet::from([object_ref.clone()]);
        if after.is_none_or(|it| it.pull.is_none())
            && let Some(pull) = before.as_ref().and_then(|it| it.pull.as_deref())
        {
            // The claims of its works count from now on.
            let names = pull::work::names(pull);
            let works = names.iter().flat_map(|name| self.works.with_application(name));
            let claims = works.filter_map(|(_, pull_work)| pull_work.claim.as_ref());
            concerned.extend(claims.map(|(namespace, name)| ObjectRef::new(namespace, name)));
        }
        let mut affected: Vec<_> = concerned.into_iter().map(ReconcileRequest::application).collect();
        affected.extend(sets.into_iter().map(ReconcileRequest::set));
        affected
    }

    fn put_work(&mut self, kind: WorkKind, object_ref: &ObjectRef, mut work: Option<Work>) -> Vec<ReconcileRequest> {
        if let Some(work) = &mut work {
            self.keep(&mut work.resources);
        }
        let (was, is) = (self.works.get(kind, object_ref).is_some(), work.is_some());
        let is_pull_work = work.as_ref().is_some_and(|work| work.pull_work.is_some());
        let mut affected = self.works.put(kind, object_ref, work);
        if kind == WorkKind::Work {
            let named = self.pull_applications.named(&object_ref.name);
            let new = named.filter(|it| affected.iter().all(|known| known.object_ref != **it));
            let new: Vec<_> = new.cloned().map(ReconcileRequest::application).collect();
            affected.extend(new);
        }
        // The state of a work that carries an Application is reported through the Application, whose own change follows.
        if is_pull_work && was == is {
            return affected;
        }
        self.with_application_sets(affected)
    }

    /// Interns a list, or drops it if reports are disabled.
    fn keep(&mut self, list: &mut Arc<[Resource]>) {
        *list = match &mut self.resources {
            Some(resources) => resources.keep(std::mem::take(list)),
            None => Arc::default(),
        };
    }

    /// Adds the ApplicationSets of the Applications.
    fn with_application_sets(&self, mut affected: Vec<ReconcileRequest>) -> Vec<ReconcileRequest> {
        let applications = affected.iter().filter(|it| it.kind == ReconcileKind::Application);
        let sets = applications.filter_map(|it| self.application(&it.object_ref)?.set(&it.object_ref));
        let sets: BTreeSet<_> = sets.collect();
        affected.extend(sets.into_iter().map(ReconcileRequest::set));
        affected
    }

    fn put_decision(&mut self, object_ref: &ObjectRef, decision: Option<PlacementDecision>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.decisions.put(object_ref, decision);
        if !has_changed {
            return Vec::new();
        }
        let concerned = self.pull_applications.of(&object_ref.namespace).cloned();
        let mut affected: Vec<_> = concerned.map(ReconcileRequest::application).collect();
        affected.extend(self.map(
            Kind::Decisions,
            object_ref,
            before.as_ref().map(Before::PlacementDecision),
        ));
        affected
    }

    fn put_placement(&mut self, object_ref: &ObjectRef, placement: Option<Placement>) -> Vec<ReconcileRequest> {
        if !self.gitops.put_placement(object_ref, placement) {
            return Vec::new();
        }
        self.map(Kind::Placements, object_ref, None)
    }

    fn put_gitops_cluster(&mut self, object_ref: &ObjectRef, it: Option<Box<GitOpsCluster>>) -> Vec<ReconcileRequest> {
        let before = self.gitops.put(object_ref, it);
        self.map(
            Kind::GitOpsClusters,
            object_ref,
            before.as_deref().map(Before::GitOpsCluster),
        )
    }

    fn put_allows_other_namespaces(&mut self, open: Option<bool>) -> Vec<ReconcileRequest> {
        if !self.gitops.put_allows_other_namespaces(open.unwrap_or_default()) {
            return Vec::new();
        }
        let object_ref = ReconcileRequest::argocd(&self.argocd).object_ref;
        self.map(Kind::Namespace, &object_ref, None)
    }

    fn put_secret(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.secrets.put(name, secret);
        if !has_changed {
            return Vec::new();
        }
        self.map(
            Kind::Secrets,
            &self.of_argocd(name),
            before.as_ref().map(Before::Secret),
        )
    }

    fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> Vec<ReconcileRequest> {
        if !self.agents.put_certificate(name, secret) {
            return Vec::new();
        }
        self.map(Kind::Certificates, &self.of_argocd(name), None)
    }

    fn put_object(
        &mut self,
        kind: AgentResource,
        object_ref: &ObjectRef,
        object: Option<Object>,
    ) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.agents.put(kind, object_ref, object);
        if !has_changed {
            return Vec::new();
        }
        self.map(
            Kind::AgentResource(kind),
            object_ref,
            before.as_ref().map(Before::Object),
        )
    }

    /// Returns the GitOpsClusters that select any of these managed clusters.
    pub(crate) fn gitops_selecting<'c>(
        &self,
        clusters: impl IntoIterator<Item = &'c Arc<str>>,
    ) -> BTreeSet<&ObjectRef> {
        self.gitops.of_clusters(clusters, &self.decisions)
    }

    /// Returns the GitOpsClusters that select a managed cluster, have registered it, or have a decision for it.
    #[must_use]
    pub(crate) fn gitops_of(&self, cluster: &Arc<str>) -> BTreeSet<ObjectRef> {
        let owners = self.secrets.of(cluster).filter_map(|(_, secret)| secret.owner());
        let owners = owners.filter_map(|owner| owner.split_once('/'));
        let owners = owners.map(|(namespace, name)| ObjectRef::new(namespace, name));
        let selecting = self.gitops_selecting([cluster]).into_iter().cloned();
        let all = owners.chain(selecting).chain(self.gitops_with_decision(cluster));
        all.filter(|object_ref| self.gitops.get(object_ref).is_some()).collect()
    }

    fn put_project(&mut self, name: &Arc<str>, project: Option<Value>) -> Vec<ReconcileRequest> {
        let before = self.projects.put(name, project);
        if self.projects.get(name) == before.as_ref() {
            return Vec::new();
        }
        self.map(Kind::Projects, &self.of_argocd(name), None)
    }

    fn put_namespaces(&mut self, namespaces: Option<Namespaces>) -> Vec<ReconcileRequest> {
        let namespaces = namespaces.unwrap_or_default();
        if self.namespaces == namespaces {
            return Vec::new();
        }
        self.namespaces = namespaces;
        self.map(Kind::Parameters, &self.of_argocd(&tenancy::CONFIG_MAP.into()), None)
    }

    fn set_tracking(&mut self, tracking: Tracking) -> Vec<ReconcileRequest> {
        let label = self.tracking().label().to_owned();
        let mut affected = self.works.set_tracking(tracking);
        if label != self.tracking().label() {
            affected.extend(self.clusters.keys().map(ReconcileRequest::cluster));
        }
        self.with_application_sets(affected)
    }

    fn put_cluster(&mut self, name: &Arc<str>, cluster: Option<Cluster>) -> Vec<ReconcileRequest> {
        let availability = self.availability(name);
        let mut affected = Vec::new();
        if cluster.is_some() && self.lists_no_cluster {
            self.lists_no_cluster = false;
            affected.extend(self.secrets.clusters().map(ReconcileRequest::cluster));
        }
        let before = self.clusters.put(name, cluster);
        let after = self.clusters.get(name);
        if let Some(before) = &before {
            let count = &mut self.cluster_counts[before.availability as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(after) = after {
            let count = &mut self.cluster_counts[after.availability as usize];
            *count = count.saturating_add(1);
        }
        if after != before.as_ref() {
            affected.push(ReconcileRequest::cluster(name));
        }
        let stays = |cluster: &Cluster| !cluster.deleting;
        if after.is_some_and(stays) != before.as_ref().is_some_and(stays) {
            affected.extend(ReconcileRequest::gitops_all(self.gitops_selecting([name])));
        }
        let has_availability_changed = self.availability(name) != availability;
        if has_availability_changed {
            // A cluster that is reachable again may have left a Placement meanwhile.
            affected.extend(ReconcileRequest::gitops_all(&self.gitops_of(name)));
        }
        let was_created_or_deleted = self.clusters.get(name).is_some() != before.is_some();
        let mut concerned = BTreeSet::new();
        if has_availability_changed {
            concerned.extend(self.works.on(name));
        }
        let is_the_hub = |cluster: &Cluster| is_hub(name, &cluster.labels);
        let has_hub_changed = after.is_some_and(is_the_hub) != before.as_ref().is_some_and(is_the_hub);
        if has_availability_changed || was_created_or_deleted || has_hub_changed {
            concerned.extend(self.pull_applications.to(name).cloned());
        }
        if was_created_or_deleted {
            concerned.extend(self.pull_applications.of(name).cloned());
        }
        affected.extend(concerned.into_iter().map(ReconcileRequest::application));
        let mut affected = self.with_application_sets(affected);
        if has_availability_changed || was_created_or_deleted {
            let set_of = |object_ref: &ObjectRef| self.application(object_ref)?.set(object_ref);
            let sets: BTreeSet<_> = self.application_sets.on(name).filter_map(set_of).collect();
            affected.extend(sets.into_iter().map(ReconcileRequest::set));
        }
        affected
    }
}

/// Returns the fields of an Application that the report of its ApplicationSet contains.
fn report_fields(application: &Application) -> (Option<&Generated>, Option<&str>, &[Condition]) {
    let cluster = application.cluster();
    (application.generated.as_deref(), cluster, &application.conditions)
}

#[cfg(test)]
pub(super) mod tests;
