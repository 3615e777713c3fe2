//! The cache of hub objects, kept by watch events: maps each change to the objects to reconcile. It does no I/O: changes and the
//! time are arguments.

mod agents;
mod application_works;
mod applications;
mod apply;
mod change;
mod decisions;
mod interned;
mod kind;
mod refusals;
mod request;
mod secrets;
mod shared_objects;
mod store;
mod works;

use crate::cluster_secret::ClusterSecret;
use crate::model::{
    Application, Assignment, Availability, Cluster, GitOpsCluster, Kind, Object, PlacementDecision, TlsSecret, Work,
};
use crate::pull::namespaces::Namespaces;
use crate::pull::work_name;
use crate::pull::{self, PullWork};
use crate::report::{ExistingReport, Resource};
pub use change::{Cached, Change, Changed, Mapper, Mappers, ObjectKey, Setting, owners};
pub use decisions::Selection;
use interned::Interned;
use jiff::Timestamp;
pub use kind::WatchedKind;
use ocm::argocd_agent as names;
use ocm::global_projects::GlobalProjects;
use ocm::hold::Hold;
use primitives::object_ref::ObjectRef;
pub use refusals::{Refusal, Refusals};
pub use request::ReconcileRequest;
use runtime::fair_queue::FlowKey;
use runtime::memo::Memo;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub use store::{Indexed, Store, Update};
pub use works::WorkBefore;
use works::{Works, claimed};

/// The value of the setting that declares that no managed cluster is the hub.
const NO_HUB: &str = "none";

#[derive(Clone, Copy, Debug)]
pub struct PullWorkRef<'i> {
    pub object_ref: &'i ObjectRef,
    /// The Application that it carries.
    pub pull_work: &'i PullWork,
    /// True if the name of the work says that it carries the Application. All else in it can be written by the cluster's agent.
    pub is_named: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent state")]
pub struct Cache {
    applications: Store<Application>,
    /// True if a watch event has reported the deletion of an Application since the last complete list.
    has_seen_deletion: bool,
    /// The namespaces in which Argo CD reads Applications, besides its own.
    namespaces: Namespaces,
    global_projects: GlobalProjects,
    works: Works,
    clusters: Store<Cluster>,
    holds: Store<Hold>,
    decisions: Store<PlacementDecision>,
    /// The Placements that have changed, or whose decisions have, and the managed clusters that became selectable, a short time ago,
    /// with the time of the change.
    unsettled: BTreeMap<(Kind, ObjectRef), Timestamp>,
    /// True if the complete list of ManagedClusters was empty.
    lists_no_cluster: bool,
    secrets: Store<ClusterSecret>,
    reports: Store<ExistingReport>,
    /// True if the reports have been listed, so that the hub serves their kind.
    are_reports_served: bool,
    gitops: Store<GitOpsCluster>,
    /// The GitOpsClusters whose deletion a watch event has reported.
    deleted_gitops: BTreeSet<ObjectRef>,
    /// The objects of kinds without a model, by kind.
    objects: BTreeMap<Kind, Store<Object>>,
    certificates: Store<TlsSecret>,
    /// The assignments of managed clusters to GitOpsClusters, as far as they were needed since their inputs changed.
    assignments: Memo<String, Assignment>,
    template_names: Memo<ObjectRef, Box<str>>,
    /// The resources of Applications that ApplicationSets generated, kept only if reports are enabled.
    resources: Option<Interned<Resource>>,
    unreadable_works: BTreeMap<ObjectRef, Box<str>>,
    refusals: Refusals,
    argocd: Arc<str>,
    /// The managed cluster that is the hub itself, according to the administrator, or [`NO_HUB`].
    hub_cluster: Option<Box<str>>,
    /// True if the controller of argocd-agent is disabled.
    is_without_agents: bool,
    mappers: Mappers,
    /// The time of the last change that came with a time, or of the last tick.
    time: Timestamp,
}

impl Cache {
    pub fn new(argocd: &str) -> Self {
        Self {
            works: Works::new(argocd),
            argocd: argocd.into(),
            ..Self::default()
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn serve(&mut self, argocd: &str) {
        self.argocd = argocd.into();
        self.assignments.forget_all();
    }

    pub fn name_hub(&mut self, hub_cluster: Option<&str>) {
        self.hub_cluster = hub_cluster.map(Into::into);
        self.assignments.forget_all();
    }

    pub fn serve_agents(&mut self, serves_agents: bool) {
        self.is_without_agents = !serves_agents;
        self.assignments.forget_all();
    }

    pub fn serves_agents(&self) -> bool {
        !self.is_without_agents
    }

    /// Keeps the fields of Applications that the reports of ApplicationSets need.
    pub fn with_reports(mut self) -> Self {
        self.resources = Some(Interned::default());
        self
    }

    pub fn with_mappers(mut self, mappers: Mappers) -> Self {
        self.mappers = mappers;
        self
    }

    pub fn argocd(&self) -> &Arc<str> {
        &self.argocd
    }

    pub fn hub_cluster(&self) -> Option<&str> {
        self.hub_cluster.as_deref().filter(|cluster| *cluster != NO_HUB)
    }

    pub fn is_hub(&self, cluster: &str) -> bool {
        self.hub_cluster() == Some(cluster)
    }

    /// Returns true if a managed cluster may be the hub itself: it is marked so, and the administrator has named no hub, or one that
    /// does not exist, such as a misspelled one. Its agent can write the mark, so this is no reason to change or remove anything.
    pub fn may_be_hub(&self, cluster: &str) -> bool {
        let is_marked = |existing: &Cluster| existing.has_hub_mark(cluster);
        let is_hub_known = || {
            let name = self.hub_cluster.as_deref();
            name.is_some_and(|name| name == NO_HUB || self.accepted_cluster(name).is_some())
        };
        self.cluster(cluster).is_some_and(is_marked) && !is_hub_known()
    }

    pub fn pull_applications_in(&self, namespace: &Arc<str>) -> impl Iterator<Item = &ObjectRef> {
        of_the_pull_model(self.applications.in_namespace(namespace))
    }

    pub fn pull_applications_to(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.applications.indices().pulled_to.get(cluster)
    }

    pub fn pull_applications_by_work_name(&self, work: &str) -> impl Iterator<Item = &ObjectRef> {
        let may_be_named = self.applications.indices().by_stem.get(work_name::stem(work));
        may_be_named.filter(move |application| {
            self.pull_application(application)
                .is_some_and(|pull| work_name::is_name(work, pull))
        })
    }

    /// Returns the works of this name that contain an Application of the basic pull model or claim it.
    pub fn works_with_application(&self, name: &str) -> impl Iterator<Item = (&ObjectRef, &PullWork)> {
        let may_have_it = self.works.with_stem(work_name::stem(name));
        may_have_it.filter(move |(object_ref, _)| *object_ref.name == *name)
    }

    /// Returns the generated Applications that may run on a managed cluster according to their own destination or namespace.
    pub fn generated_on(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.applications.indices().generated_on.get(cluster)
    }

    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.clusters.keys()
    }

    pub fn all_pull_applications(&self) -> impl Iterator<Item = &ObjectRef> {
        of_the_pull_model(self.applications.iter())
    }

    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Forgets the refused writes, as a restart does: another replica has written since.
    pub fn forget_refusals(&mut self) {
        self.refusals = Refusals::default();
    }

    pub fn application(&self, object_ref: &ObjectRef) -> Option<&Application> {
        self.applications.get(object_ref)
    }

    pub fn pull_application(&self, object_ref: &ObjectRef) -> Option<&pull::Application> {
        self.application(object_ref)?.pull.as_deref()
    }

    /// Returns true if an Application that is not in the cache does not exist. An empty list of all Applications is no proof.
    pub fn is_application_list_certain(&self) -> bool {
        self.has_seen_deletion || !self.applications.is_empty()
    }

    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    pub fn global_projects(&self) -> &GlobalProjects {
        &self.global_projects
    }

    /// Returns an AppProject with the rules of its global projects.
    pub fn project(&self, name: &str) -> Option<Cow<'_, Value>> {
        let find = |name: &str| {
            let project = self.object(Kind::Projects, &ObjectRef::new(&self.argocd, name));
            project.map(|project| &project.object)
        };
        Some(self.global_projects.extend(find(name)?, find))
    }

    /// Returns the works of the basic pull model that carry an Application: those with the name of its works, and those that
    /// claim it and do not have the name of another Application's works.
    pub fn pull_works(&self, application: &ObjectRef) -> Vec<PullWorkRef<'_>> {
        let pull = self.pull_application(application);
        let has_its_name = |work: &str| pull.is_some_and(|pull| work_name::is_name(work, pull));
        let may_carry_it = self.works.with_stem(work_name::stem_of(&application.name));
        let all = may_carry_it.filter_map(|(object_ref, pull_work)| {
            let claims = claimed(object_ref, pull_work) == Some(application);
            if !claims && !has_its_name(&object_ref.name) {
                return None;
            }
            let named = self.application_by_work_name(object_ref, pull_work);
            let is_named = named == Some(application);
            let carries_it = is_named || claims && named.is_none();
            carries_it.then_some(PullWorkRef {
                object_ref,
                pull_work,
                is_named,
            })
        });
        all.collect()
    }

    /// Returns the Application whose works have the name of this work. If several do, because their UIDs have the same prefix,
    /// returns the Application whose destination is that cluster, and among several of these the one that the work claims.
    fn application_by_work_name(&self, object_ref: &ObjectRef, pull_work: &PullWork) -> Option<&ObjectRef> {
        let named = self.pull_applications_by_work_name(&object_ref.name);
        let named = named.filter(|application| application.name == pull_work.name);
        named.min_by_key(|application| {
            let pull = self.pull_application(application);
            let goes_there = pull.is_some_and(|pull| pull.cluster.as_deref() == Some(&*object_ref.namespace));
            let claim = pull_work.claim.as_ref();
            let is_claimed = claim.is_some_and(|claim| claim.namespace == application.namespace);
            (!goes_there, !is_claimed)
        })
    }

    /// Returns a work, for any managed cluster, that has the name of an Application's works and cannot be read, with the reason. What
    /// it carries is unknown.
    pub fn unreadable_work(&self, pull: &pull::Application) -> Option<(&ObjectRef, &str)> {
        let mut unreadable = self.unreadable_works.iter();
        let work = unreadable.find(|(object_ref, _)| work_name::is_name(&object_ref.name, pull));
        work.map(|(object_ref, why)| (object_ref, &**why))
    }

    pub fn is_others_name(&self, work: &str, application: &ObjectRef) -> bool {
        self.pull_applications_by_work_name(work)
            .any(|other| other != application)
    }

    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }

    /// Returns a ManagedCluster that the hub has accepted: anyone with a token to join can create others, of any name and labels.
    pub fn accepted_cluster(&self, name: &str) -> Option<&Cluster> {
        self.cluster(name).filter(|cluster| cluster.is_accepted)
    }

    pub fn availability(&self, cluster: &str) -> Availability {
        Availability::from_cluster(self.cluster(cluster))
    }

    /// Returns why a work has waited too long for the agent of an available cluster. An unavailable cluster is itself the reason.
    pub fn overdue<'w>(&self, object_ref: &ObjectRef, work: &'w Work) -> Option<&'w str> {
        let why = work.state.overdue.as_deref();
        why.filter(|_| self.availability(&object_ref.namespace) == Availability::Available)
    }

    /// Returns the hold of a managed cluster, if there is one that has not ended.
    pub fn hold(&self, cluster: &str, now: Timestamp) -> Option<&Hold> {
        self.holds.get(cluster).filter(|hold| !hold.is_over(now))
    }

    /// Returns the next time at which a hold of one of these managed clusters ends by itself.
    pub fn end_of_hold<'c>(&self, clusters: impl IntoIterator<Item = &'c str>, now: Timestamp) -> Option<Timestamp> {
        if self.holds.is_empty() {
            return None;
        }
        let ends = clusters
            .into_iter()
            .filter_map(|cluster| self.hold(cluster, now)?.end());
        ends.min()
    }

    pub fn cluster_count(&self, availability: Availability) -> usize {
        self.clusters.indices()[availability as usize]
    }

    /// Returns true if a ManagedCluster was deleted. An empty list of all ManagedClusters is no proof of that: the hub may be in
    /// the middle of a restore from a backup.
    pub fn is_deleted(&self, cluster: &str) -> bool {
        !self.lists_no_cluster && self.clusters.get(cluster).is_none()
    }

    pub fn is_in_deletion(&self, cluster: &str) -> bool {
        self.cluster(cluster).is_some_and(|existing| existing.deleting)
    }

    /// Returns true if a ManagedCluster was deleted or is being deleted.
    pub fn is_leaving(&self, cluster: &str) -> bool {
        self.is_in_deletion(cluster) || self.is_deleted(cluster)
    }

    pub fn gitops_cluster(&self, object_ref: &ObjectRef) -> Option<&GitOpsCluster> {
        self.gitops.get(object_ref)
    }

    pub fn gitops_cluster_entry(&self, object_ref: &ObjectRef) -> Option<(&ObjectRef, &GitOpsCluster)> {
        self.gitops.entry(object_ref)
    }

    pub fn assignment(&self, cluster: &str, compute: fn(&Self, &str) -> Assignment) -> Arc<Assignment> {
        self.assignments.get(cluster, || compute(self, cluster))
    }

    pub fn template_name(&self, object_ref: &ObjectRef, compute: impl FnOnce() -> Box<str>) -> Arc<Box<str>> {
        self.template_names.get(object_ref, compute)
    }

    pub fn gitops_clusters(&self) -> impl Iterator<Item = (&ObjectRef, &GitOpsCluster)> {
        self.gitops.iter()
    }

    /// Returns true if a watch event has reported the deletion of a GitOpsCluster. Its absence from a list is no proof.
    pub fn is_gitops_cluster_deleted(&self, object_ref: &ObjectRef) -> bool {
        self.deleted_gitops.contains(object_ref)
    }

    /// Returns true if GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
    pub fn allows_other_namespaces(&self) -> bool {
        let namespace = ReconcileRequest::argocd(&self.argocd).object_ref;
        self.object(Kind::Namespace, &namespace)
            .is_some_and(|namespace| namespace.object == true)
    }

    pub fn applications_of(&self, set: &ObjectRef) -> impl Iterator<Item = (&ObjectRef, &Application)> {
        let members = self.applications.indices().by_set.get(set);
        members.filter_map(|object_ref| Some((object_ref, self.application(object_ref)?)))
    }

    /// Returns the reports of ApplicationSets, if the hub serves their kind.
    pub fn reports(&self) -> Option<&Store<ExistingReport>> {
        self.are_reports_served.then_some(&self.reports)
    }

    /// Returns the next time at which the health of a work, or the certainty of a selection, changes by time alone.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let health_deadline = self.works.next_health_deadline();
        health_deadline.into_iter().chain(self.next_settled()).min()
    }

    /// Returns the share that the work for an object counts against: the share of its namespace and, within it, of the managed
    /// cluster that the object is about. A CertificateSigningRequest counts against the user who created it, as the API server
    /// records it.
    pub fn flow(&self, kind: Kind, object_ref: &ObjectRef) -> FlowKey {
        let by_cluster = |cluster: Arc<str>| FlowKey {
            namespace: Arc::clone(&object_ref.namespace),
            cluster,
        };
        match kind {
            Kind::Applications => {
                let pull = self.pull_application(object_ref);
                let named = pull.and_then(|pull| pull.cluster.as_deref()).map(Arc::from);
                let applied = || {
                    self.works_of(object_ref)
                        .next()
                        .map(|(_, work, _)| Arc::clone(&work.namespace))
                };
                named.or_else(applied).map(by_cluster)
            }
            Kind::Clusters => Some(by_cluster(Arc::clone(&object_ref.name))),
            Kind::Requests => {
                let request = self.object(Kind::Requests, object_ref);
                let request = request.and_then(|object| object.request.as_deref());
                request.map(|request| by_cluster((*request.spec.requester.user).into()))
            }
            _ => None,
        }
        .unwrap_or_else(|| FlowKey::of_namespace(&object_ref.namespace))
    }

    /// Returns the GitOpsClusters that select a managed cluster, have registered it, have a decision for it, or have installed or
    /// revoke its agent.
    pub fn gitops_of(&self, cluster: &Arc<str>) -> BTreeSet<ObjectRef> {
        let owners = self.secrets_of(cluster).filter_map(|(_, secret)| secret.owner());
        let owners = owners.filter_map(ObjectRef::parse);
        let record = ObjectRef::new(&self.argocd, &names::issued(cluster));
        let record = self.object(Kind::IssuedCertificates, &record);
        let owners = owners.chain(self.gitops_with_decision(cluster));
        let owners = owners.chain(record.and_then(Object::owner));
        let owners = owners.filter(|object_ref| self.gitops.get(object_ref).is_some());
        let naming = self.gitops.iter().filter(|(object_ref, gitops)| {
            let agent = gitops.spec.agent.as_ref();
            let is_revoked = agent.is_some_and(|agent| agent.revoked.contains(&**cluster));
            is_revoked || self.is_selected_by(&gitops.placement(object_ref), cluster)
        });
        owners.chain(naming.map(|(object_ref, _)| object_ref.clone())).collect()
    }
}

fn of_the_pull_model<'i>(
    all: impl Iterator<Item = (&'i ObjectRef, &'i Application)>,
) -> impl Iterator<Item = &'i ObjectRef> {
    all.filter(|(_, application)| application.pull.is_some())
        .map(|(object_ref, _)| object_ref)
}
