//! What is on the hub, as the watches tell it, and whom a change concerns. No I/O: every change is a value, and time is one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod agents;
mod decisions;
mod gitops;
mod interned;
mod pulled;
mod refusals;
mod secrets;
mod sets;
mod works;

use super::seen::{
    Application, ApplicationSet, Cluster, Condition, Decision, Generated, GitOpsCluster, Object, Place, Placement,
    Reach, TlsSecret, Work, WorkKind,
};
use super::turns::Share;
use super::watches::Kept;
use crate::agent::names;
use crate::cluster_secret::{ClusterSecret, MANAGED_BY, is_hub};
use crate::pull::tenancy::Namespaces;
use crate::pull::{self, Carried};
use crate::report::{Found, Resource};
use crate::status::Verdict;
use crate::tracking::Tracking;
use agents::Agents;
use decisions::Decisions;
pub use gitops::Selection;
use gitops::{GitOps, Seen};
use interned::Interned;
use k8s_openapi::jiff::Timestamp;
use pulled::Pulled;
pub use refusals::Refusal;
use refusals::Refusals;
use secrets::Secrets;
use serde_json::Value;
use sets::Sets;
use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use works::Works;

/// What a watch tells.
#[derive(Debug)]
pub enum Change {
    /// An Application is so, or is gone.
    Application(Place, Option<Application>),
    /// A work is so, or is gone.
    Work(WorkKind, Place, Option<Work>),
    /// A managed cluster is so, or is gone.
    Cluster(Arc<str>, Option<Cluster>),
    /// A PlacementDecision is so, or is gone.
    Decision(Place, Option<Decision>),
    /// A Placement is so, or is gone.
    Placement(Place, Option<Placement>),
    /// A GitOpsCluster is so, or is gone.
    GitOpsCluster(Place, Option<Box<GitOpsCluster>>),
    /// Whether GitOpsClusters of other namespaces may have Secrets in Argo CD's.
    Open(bool),
    /// Whether Argo CD's namespace is there at all.
    NamespaceIsThere(bool),
    /// An AppProject is so, or is gone.
    Project(Arc<str>, Option<Value>),
    /// A cluster Secret of Argo CD's is so, or is gone.
    Secret(Arc<str>, Option<ClusterSecret>),
    /// An ApplicationSet is so, or is gone.
    ApplicationSet(Place, Option<ApplicationSet>),
    /// The report of an ApplicationSet is so, or is gone.
    Report(Place, Option<Found>),
    /// Argo CD tracks so.
    Tracking(Tracking),
    /// Whether Argo CD's configuration is there at all.
    ConfigIsThere(bool),
    /// A Secret with certificates of argocd-agent's is so, or is gone.
    Certificate(Arc<str>, Option<TlsSecret>),
    /// A part of argocd-agent or of its add-on is so, or is gone.
    Object(Kept, Place, Option<Object>),
    /// Applications of these namespaces count.
    Namespaces(Namespaces),
    /// Whether Argo CD's ConfigMap of parameters is there at all.
    ParametersAreThere(bool),
    /// The last write of this part of a controller for an object was refused, or was not.
    Refused(&'static str, usize, Touched, Option<Refusal>),
    /// These Applications are all that there are.
    OnlyApplications(HashSet<Place>),
    /// These works are all of their kind.
    OnlyWorks(WorkKind, HashSet<Place>),
    /// These managed clusters are all.
    OnlyClusters(HashSet<Arc<str>>),
    /// These PlacementDecisions are all.
    OnlyDecisions(HashSet<Place>),
    /// These Placements are all.
    OnlyPlacements(HashSet<Place>),
    /// These GitOpsClusters are all.
    OnlyGitOpsClusters(HashSet<Place>),
    /// These AppProjects are all.
    OnlyProjects(HashSet<Arc<str>>),
    /// These cluster Secrets are all.
    OnlySecrets(HashSet<Arc<str>>),
    /// These ApplicationSets are all.
    OnlyApplicationSets(HashSet<Place>),
    /// These reports are all, and the hub knows reports.
    OnlyReports(HashSet<Place>),
    /// These Secrets with certificates are all.
    OnlyCertificates(HashSet<Arc<str>>),
    /// These parts of argocd-agent and of its add-on are all of their kind.
    OnlyObjects(Kept, HashSet<Place>),
    /// A defect of ours.
    #[cfg(test)]
    Panic,
}

impl Change {
    /// Returns the name of the object that it is about, for the log; those that are about all of a kind have none.
    #[must_use]
    pub fn object(&self) -> Option<String> {
        Some(match self {
            Self::Application(place, _)
            | Self::Work(_, place, _)
            | Self::Decision(place, _)
            | Self::Placement(place, _)
            | Self::GitOpsCluster(place, _)
            | Self::ApplicationSet(place, _)
            | Self::Report(place, _)
            | Self::Object(_, place, _) => place.to_string(),
            Self::Cluster(name, _) | Self::Project(name, _) | Self::Secret(name, _) | Self::Certificate(name, _) => {
                name.to_string()
            }
            _ => return None,
        })
    }
}

/// A work of the basic pull model.
#[derive(Clone, Copy, Debug)]
pub struct Carrying<'i> {
    /// Where it is.
    pub place: &'i Place,
    /// What it carries.
    pub carried: &'i Carried,
    /// Whether its name says that it carries the Application, and not only what the cluster's agent may write.
    pub is_named: bool,
}

/// What promises are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// Applications.
    Application,
    /// Managed clusters, which have no namespace.
    Cluster,
    /// ApplicationSets.
    ApplicationSet,
    /// GitOpsClusters.
    GitOpsCluster,
    /// The Argo CD of the hub, which is called by its namespace.
    ArgoCd,
    /// Requests for certificates, which have no namespace.
    Request,
}

impl Sort {
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

/// An object that a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What it is.
    pub sort: Sort,
    /// Where it is.
    pub place: Place,
    /// What Argo CD makes of the change by itself.
    pub noticed: Noticed,
}

impl Touched {
    /// An Application, of which Argo CD shows what it would show if it looked again.
    fn application(place: Place) -> Self {
        Self {
            sort: Sort::Application,
            place,
            noticed: Noticed::Nothing,
        }
    }

    /// The Argo CD of the hub.
    fn argocd(namespace: &Arc<str>) -> Self {
        Self {
            sort: Sort::ArgoCd,
            place: Place {
                namespace: "".into(),
                name: Arc::clone(namespace),
            },
            noticed: Noticed::Nothing,
        }
    }

    /// A request for a certificate.
    fn request(place: Place) -> Self {
        Self {
            sort: Sort::Request,
            ..Self::application(place)
        }
    }

    /// A managed cluster.
    fn cluster(name: &Arc<str>) -> Self {
        Self {
            sort: Sort::Cluster,
            place: Place {
                namespace: "".into(),
                name: Arc::clone(name),
            },
            noticed: Noticed::Nothing,
        }
    }
}

/// What Argo CD makes of a change by itself. It looks at an Application again when the health of one of its objects has another
/// word; when only the message is another it does not (`skipResourceUpdate` in its `controller/cache`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// It shows what it would show if it looked again.
    Nothing,
    /// It looks again, at the whole Application.
    Yes,
    /// It goes on to show what is no longer so.
    No,
}

/// What is on the hub.
#[derive(Debug)]
pub struct Index {
    applications: HashMap<Place, Application>,
    /// Whether a watch has told of an Application that it is gone, since all were listed.
    told_gone: bool,
    pulled: Pulled,
    /// The namespaces whose Applications count, besides Argo CD's.
    namespaces: Namespaces,
    works: Works,
    clusters: HashMap<Arc<str>, Cluster>,
    /// How many of them are heard so, in the order of [`Reach::ALL`].
    heard: [usize; 3],
    decisions: Decisions,
    projects: HashMap<Arc<str>, Value>,
    /// Whether the hub, when it was asked for all managed clusters, has named none.
    lists_no_cluster: bool,
    secrets: Secrets,
    sets: Sets,
    gitops: GitOps,
    agents: Agents,
    /// What Applications of ApplicationSets consist of, which is only kept where it is asked for.
    parts: Option<Interned<Resource>>,
    /// The last writes that were refused.
    refusals: Refusals,
    /// Argo CD's namespace.
    argocd: Arc<str>,
}

impl Index {
    /// Nothing yet of the hub whose Argo CD is in this namespace.
    #[must_use]
    pub fn new(argocd: &str) -> Self {
        Self {
            applications: HashMap::new(),
            told_gone: false,
            pulled: Pulled::default(),
            namespaces: Namespaces::default(),
            works: Works::new(argocd),
            clusters: HashMap::new(),
            heard: [0; 3],
            decisions: Decisions::default(),
            projects: HashMap::new(),
            lists_no_cluster: false,
            secrets: Secrets::default(),
            sets: Sets::default(),
            gitops: GitOps::default(),
            agents: Agents::default(),
            refusals: Refusals::default(),
            argocd: argocd.into(),
            parts: None,
        }
    }

    /// Keeps what the reports of ApplicationSets say of their Applications.
    #[must_use]
    pub fn with_reports(mut self) -> Self {
        self.parts = Some(Interned::default());
        self
    }

    /// Returns why the last write of a promise for an object was refused.
    #[must_use]
    pub fn refused(&self, promise: &'static str, sort: Sort, place: &Place) -> Option<&str> {
        let refusal = self.refusals.get(&(promise, sort, place.clone()));
        refusal.map(|refusal| &*refusal.why)
    }

    /// Returns why the last write of this part of a promise for an object was refused.
    #[must_use]
    pub fn refused_of_part(&self, promise: &'static str, part: usize, sort: Sort, place: &Place) -> Option<&str> {
        let refusal = self.refusals.of_part(&(promise, sort, place.clone()), part);
        refusal.map(|refusal| &*refusal.why)
    }

    /// Returns why writes for a GitOpsCluster were refused, each reason once.
    #[must_use]
    pub fn refused_of_gitops(&self, place: &Place) -> BTreeSet<&str> {
        self.refusals.of_gitops(place)
    }

    /// An Application.
    #[must_use]
    pub fn application(&self, place: &Place) -> Option<&Application> {
        self.applications.get(place)
    }

    /// Whether an Application that is not known is really none: that the hub shows no Application at all is no reason to think so.
    #[must_use]
    pub fn is_sure_of_applications(&self) -> bool {
        self.told_gone || !self.applications.is_empty()
    }

    /// Returns the namespaces besides Argo CD's own whose Applications count.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Whether a Placement of this namespace selects this managed cluster.
    #[must_use]
    pub fn is_selected(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        self.decisions.select(namespace, cluster)
    }

    /// An AppProject of Argo CD's namespace.
    #[must_use]
    pub fn project(&self, name: &str) -> Option<&Value> {
        self.projects.get(name)
    }

    /// The works of an Application: those that Argo CD has applied, and those that OCM has made of them.
    pub fn works_of(&self, application: &Place) -> impl Iterator<Item = (WorkKind, &Place, &Work)> {
        self.works.of(application)
    }

    /// Returns the works of the basic pull model that carry an Application: those with a name that its works have, and those that
    /// claim it and have no name of another Application's works.
    #[must_use]
    pub fn carrying(&self, application: &Place) -> Vec<Carrying<'_>> {
        let pull = self.application(application).and_then(|it| it.pull.as_deref());
        let own: BTreeSet<String> = pull.map(pull::work::names).into_iter().flatten().collect();
        let by_name = own.iter().flat_map(|name| self.works.with_application(name));
        let by_name = by_name.filter(|(place, carried)| self.carries(place, carried) == Some(application));
        let claiming = self.works.claiming(application);
        let claiming = claiming.filter(|(place, carried)| self.carries(place, carried).is_none());
        let all = by_name.map(|(place, carried)| (place, carried, true));
        let all = all.chain(claiming.map(|(place, carried)| (place, carried, false)));
        let all = all.map(|(place, carried, is_named)| Carrying {
            place,
            carried,
            is_named,
        });
        all.collect()
    }

    /// Returns the Application whose works have the name of this one. Where there are several, the beginning of the UIDs being the
    /// same, it is the one that goes to that cluster, and of several of these the one that the work claims.
    fn carries(&self, place: &Place, carried: &Carried) -> Option<&Place> {
        let pull = |application: &Place| self.application(application).and_then(|it| it.pull.as_deref());
        let named = self.pulled.named(&place.name);
        let named = named.filter(|it| pull(it).is_some_and(|pull| pull.name == carried.name));
        named.min_by_key(|it| {
            let goes_there = pull(it).is_some_and(|pull| pull.cluster.as_deref() == Some(&*place.namespace));
            let claim = carried.claim.as_ref();
            let is_claimed = claim.is_some_and(|(namespace, _)| **namespace == *it.namespace);
            (!goes_there, !is_claimed)
        })
    }

    /// Returns true if works of another Application of the basic pull model have this name.
    #[must_use]
    pub fn is_others_name(&self, work: &str, application: &Place) -> bool {
        self.pulled.named(work).any(|other| other != application)
    }

    /// A work, if it may be somebody's.
    #[must_use]
    pub fn work(&self, kind: WorkKind, place: &Place) -> Option<&Work> {
        self.works.get(kind, place)
    }

    /// A managed cluster.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }

    /// Whether the hub hears from a managed cluster; one that is not known has not joined.
    #[must_use]
    pub fn reach(&self, cluster: &str) -> Reach {
        self.cluster(cluster).map_or(Reach::Heard, |cluster| cluster.reach)
    }

    /// How many managed clusters are heard so.
    #[must_use]
    pub fn heard(&self, reach: Reach) -> usize {
        self.heard[reach as usize]
    }

    /// Whether a managed cluster has gone. A hub that, asked for all, names none at all is no reason to say so of any: it may be
    /// coming back from a backup.
    #[must_use]
    pub fn has_gone(&self, cluster: &str) -> bool {
        !self.lists_no_cluster && !self.clusters.contains_key(cluster)
    }

    /// The cluster Secrets of Argo CD's that concern a managed cluster, by their names.
    pub fn secrets_of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        self.secrets.of(cluster)
    }

    /// The cluster Secrets of a GitOpsCluster, which is told as `NAMESPACE/NAME`.
    pub fn secrets_owned_by(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        self.secrets.owned(owner)
    }

    /// A GitOpsCluster.
    #[must_use]
    pub fn gitops_cluster(&self, place: &Place) -> Option<&GitOpsCluster> {
        self.gitops.get(place)
    }

    /// All GitOpsClusters, by their places.
    pub fn gitops_clusters(&self) -> impl Iterator<Item = (&Place, &GitOpsCluster)> {
        self.gitops.all()
    }

    /// Whether a watch has told of a GitOpsCluster that it is gone: that it is not listed is no reason to think so.
    #[must_use]
    pub fn has_gitops_cluster_gone(&self, place: &Place) -> bool {
        self.gitops.has_gone(place)
    }

    /// Whether GitOpsClusters of other namespaces may have Secrets in Argo CD's.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.gitops.is_open()
    }

    /// What a Placement selects.
    #[must_use]
    pub fn selection(&self, placement: &Place) -> Selection {
        self.gitops.selection(&self.decisions, placement)
    }

    /// The managed clusters that the decisions of a Placement name.
    pub fn decided(&self, placement: &Place) -> impl Iterator<Item = &Arc<str>> + use<'_> {
        self.decisions.of(placement).flatten()
    }

    /// Whether the decisions of a Placement name a managed cluster.
    #[must_use]
    pub fn is_decided(&self, placement: &Place, cluster: &str) -> bool {
        self.decisions.of(placement).any(|named| named.contains(cluster))
    }

    /// A part of argocd-agent or of its add-on.
    #[must_use]
    pub fn object(&self, kind: Kept, place: &Place) -> Option<&Object> {
        self.agents.get(kind, place)
    }

    /// All parts of a kind of argocd-agent and of its add-on.
    pub fn objects(&self, kind: Kept) -> impl Iterator<Item = (&Place, &Object)> {
        self.agents.all(kind)
    }

    /// The GitOpsClusters for which decisions were written that name a managed cluster.
    pub fn listing(&self, cluster: &str) -> impl Iterator<Item = Place> + use<'_> {
        let naming = self.agents.naming(Kept::Decisions, cluster);
        naming.filter_map(|(_, it)| it.owner())
    }

    /// Whether a decision that was written for a GitOpsCluster names a managed cluster.
    #[must_use]
    pub fn is_listed(&self, gitops: &Place, cluster: &str) -> bool {
        self.listing(cluster).any(|owner| owner == *gitops)
    }

    /// The requests for certificates that the agent of a managed cluster has made.
    pub fn requests_of(&self, cluster: &str) -> impl Iterator<Item = &Place> + use<'_> {
        self.agents.naming(Kept::Requests, cluster).map(|(place, _)| place)
    }

    /// A Secret with certificates of argocd-agent's, by its name.
    #[must_use]
    pub fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.agents.certificate(name)
    }

    /// Until when the certificates of argocd-agent on the hub are good, by the names of their Secrets.
    pub fn certificates_until(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let all = names::CERTIFICATES.into_iter();
        all.filter_map(|name| Some((name, self.certificate(name)?.certificates.first()?.not_after)))
    }

    /// How Argo CD tracks what it has applied.
    #[must_use]
    pub fn tracking(&self) -> &Tracking {
        self.works.tracking()
    }

    /// An ApplicationSet.
    #[must_use]
    pub fn application_set(&self, place: &Place) -> Option<&ApplicationSet> {
        self.sets.get(place)
    }

    /// The Applications that an ApplicationSet has made.
    pub fn applications_of(&self, set: &Place) -> impl Iterator<Item = (&Place, &Application)> {
        let members = self.sets.members(set);
        members.filter_map(|place| Some((place, self.application(place)?)))
    }

    /// The reports of ApplicationSets, where the hub knows them.
    #[must_use]
    pub fn reports(&self) -> Option<&HashMap<Place, Found>> {
        self.sets.reports()
    }

    /// How many works fare so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.works.count(verdict)
    }

    /// When works next fare otherwise, though nothing happens.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.works.next()
    }

    /// Returns whose turn the work for an object is: its namespace's, and within that the managed cluster's that it is about. A request
    /// for a certificate counts for the user who made it, as the API server names them.
    #[must_use]
    pub fn share(&self, sort: Sort, place: &Place) -> Share {
        let by_cluster = |cluster: Arc<str>| Share {
            namespace: Arc::clone(&place.namespace),
            cluster,
        };
        match sort {
            Sort::Application => {
                let pull = self.application(place).and_then(|it| it.pull.as_ref());
                let named = pull.and_then(|pull| pull.cluster.as_deref()).map(Arc::from);
                let applied = || {
                    self.works_of(place)
                        .next()
                        .map(|(_, work, _)| Arc::clone(&work.namespace))
                };
                named.or_else(applied).map(by_cluster)
            }
            Sort::Cluster => Some(by_cluster(Arc::clone(&place.name))),
            Sort::Request => {
                let request = self.object(Kept::Requests, place);
                let user = request.and_then(|it| it.object["spec"]["username"].as_str());
                user.map(|user| by_cluster(user.into()))
            }
            Sort::ApplicationSet | Sort::GitOpsCluster | Sort::ArgoCd => None,
        }
        .unwrap_or_else(|| Share::of(&place.namespace))
    }

    /// Lets it be this late.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Touched> {
        let touched = self.works.tick(now);
        self.with_sets(touched)
    }

    /// Takes in what a watch tells.
    pub fn apply(&mut self, change: Change) -> Vec<Touched> {
        match change {
            Change::Application(place, application) => {
                self.told_gone |= application.is_none();
                self.put_application(place, application)
            }
            Change::Work(kind, place, work) => self.put_work(kind, &place, work),
            Change::Cluster(name, cluster) => self.put_cluster(&name, cluster),
            Change::Decision(place, decision) => self.put_decision(&place, decision),
            Change::Placement(place, placement) => self.put_placement(&place, placement),
            Change::GitOpsCluster(place, it) => {
                if it.is_none() {
                    self.gitops.told_gone(&place);
                }
                self.put_gitops_cluster(&place, it.map(|it| *it))
            }
            Change::Open(open) => self.put_open(open),
            Change::NamespaceIsThere(false) => self.put_open(false),
            Change::Project(name, project) => self.put_project(&name, project),
            Change::Secret(name, secret) => self.put_secret(&name, secret),
            Change::ApplicationSet(place, set) => self.sets.put(place, set),
            Change::Report(place, report) => self.sets.put_report(place, report),
            Change::Tracking(tracking) => self.track(tracking),
            Change::Namespaces(namespaces) => self.put_namespaces(namespaces),
            Change::ParametersAreThere(false) => self.put_namespaces(Namespaces::default()),
            Change::NamespaceIsThere(true) | Change::ConfigIsThere(true) | Change::ParametersAreThere(true) => {
                Vec::new()
            }
            Change::ConfigIsThere(false) => self.track(Tracking::configured(|_| None)),
            Change::Refused(promise, part, touched, refusal) => {
                let object = (promise, touched.sort, touched.place.clone());
                let mut changed = self.refusals.put(&object, part, refusal);
                if touched.sort == Sort::ArgoCd {
                    // Every GitOpsCluster with agents needs what is written there.
                    let with_agents = self.gitops.all().filter(|(_, it)| it.spec.agent.is_some());
                    changed.extend(with_agents.map(|(place, _)| place.clone()));
                }
                let is_another = |it: &Touched| (it.sort, &it.place) != (touched.sort, &touched.place);
                let mut all: Vec<_> = Touched::gitops_all(&changed).filter(is_another).collect();
                all.push(touched);
                all
            }
            Change::OnlyApplications(all) => {
                self.told_gone = false;
                let gone = missing(self.applications.keys(), &all).into_iter();
                gone.flat_map(|place| self.put_application(place, None)).collect()
            }
            Change::OnlyWorks(kind, all) => {
                let gone = self.works.missing(kind, &all).into_iter();
                gone.flat_map(|place| self.put_work(kind, &place, None)).collect()
            }
            Change::OnlyClusters(all) => {
                self.lists_no_cluster = all.is_empty();
                let gone = missing(self.clusters.keys(), &all).into_iter();
                gone.flat_map(|name| self.put_cluster(&name, None)).collect()
            }
            Change::OnlyDecisions(all) => {
                let gone = self.decisions.missing(&all).into_iter();
                gone.flat_map(|place| self.put_decision(&place, None)).collect()
            }
            Change::OnlyProjects(all) => {
                let gone = missing(self.projects.keys(), &all).into_iter();
                gone.flat_map(|name| self.put_project(&name, None)).collect()
            }
            Change::OnlyPlacements(all) => {
                let gone = self.gitops.missing_placements(&all).into_iter();
                gone.flat_map(|place| self.put_placement(&place, None)).collect()
            }
            Change::OnlyGitOpsClusters(all) => {
                let gone = self.gitops.missing(&all).into_iter();
                gone.flat_map(|place| self.put_gitops_cluster(&place, None)).collect()
            }
            Change::OnlySecrets(all) => {
                let gone = self.secrets.missing(&all).into_iter();
                gone.flat_map(|name| self.put_secret(&name, None)).collect()
            }
            Change::OnlyApplicationSets(all) => self.sets.only(&all),
            Change::OnlyReports(all) => self.sets.only_reports(&all),
            Change::Certificate(name, secret) => self.put_certificate(&name, secret),
            Change::Object(kind, place, object) => self.put_object(kind, &place, object),
            Change::OnlyCertificates(all) => {
                let gone = self.agents.missing_certificates(&all).into_iter();
                gone.flat_map(|name| self.put_certificate(&name, None)).collect()
            }
            Change::OnlyObjects(kind, all) => {
                let gone = self.agents.missing(kind, &all).into_iter();
                gone.flat_map(|place| self.put_object(kind, &place, None)).collect()
            }
            #[cfg(test)]
            Change::Panic => panic!("as asked for"),
        }
    }

    fn put_application(&mut self, place: Place, mut application: Option<Application>) -> Vec<Touched> {
        if let Some(application) = &mut application {
            match &mut application.generated {
                Some(generated) if self.parts.is_some() => self.keep(&mut generated.parts),
                generated => *generated = None,
            }
        }
        let before = match application {
            Some(application) => self.applications.insert(place.clone(), application),
            None => self.applications.remove(&place),
        };
        let after = self.applications.get(&place);
        self.pulled.note(&place, before.as_ref(), after);
        self.sets.note(&place, before.as_ref(), after);
        let mut sets = BTreeSet::new();
        if before.as_ref().map(told) != after.map(told) {
            let both = before.iter().chain(after);
            sets.extend(both.filter_map(|it| it.set(&place)));
        }
        let mut concerned = BTreeSet::from([place]);
        if after.is_none_or(|it| it.pull.is_none())
            && let Some(pull) = before.as_ref().and_then(|it| it.pull.as_deref())
        {
            // What its works claim counts now.
            let names = pull::work::names(pull);
            let works = names.iter().flat_map(|name| self.works.with_application(name));
            let claims = works.filter_map(|(_, carried)| carried.claim.as_ref());
            concerned.extend(claims.map(|(namespace, name)| Place::new(namespace, name)));
        }
        let mut touched: Vec<_> = concerned.into_iter().map(Touched::application).collect();
        touched.extend(sets.into_iter().map(Touched::set));
        touched
    }

    fn put_work(&mut self, kind: WorkKind, place: &Place, mut work: Option<Work>) -> Vec<Touched> {
        if let Some(work) = &mut work {
            self.keep(&mut work.parts);
        }
        let (was, is) = (self.works.get(kind, place).is_some(), work.is_some());
        let carries = work.as_ref().is_some_and(|work| work.carried.is_some());
        let mut touched = self.works.put(kind, place, work);
        if kind == WorkKind::Work {
            let named = self.pulled.named(&place.name);
            let new = named.filter(|it| touched.iter().all(|known| known.place != **it));
            let new: Vec<_> = new.cloned().map(Touched::application).collect();
            touched.extend(new);
        }
        // What a work that carries an Application says is said by that one then.
        if carries && was == is {
            return touched;
        }
        self.with_sets(touched)
    }

    /// Keeps a list once, or not at all where nobody asks for it.
    fn keep(&mut self, list: &mut Arc<[Resource]>) {
        *list = match &mut self.parts {
            Some(parts) => parts.keep(std::mem::take(list)),
            None => Arc::default(),
        };
    }

    /// What concerns an Application concerns its ApplicationSet.
    fn with_sets(&self, mut touched: Vec<Touched>) -> Vec<Touched> {
        let applications = touched.iter().filter(|it| it.sort == Sort::Application);
        let sets = applications.filter_map(|it| self.application(&it.place)?.set(&it.place));
        let sets: BTreeSet<_> = sets.collect();
        touched.extend(sets.into_iter().map(Touched::set));
        touched
    }

    fn put_decision(&mut self, place: &Place, decision: Option<Decision>) -> Vec<Touched> {
        let (before, is_news) = self.decisions.put(place, decision);
        if !is_news {
            return Vec::new();
        }
        let concerned = self.pulled.of(&place.namespace).cloned();
        let mut touched: Vec<_> = concerned.map(Touched::application).collect();
        let seen = Seen {
            decisions: &self.decisions,
            secrets: &self.secrets,
        };
        touched.extend(self.gitops.decided(place, before.as_ref(), &seen));
        touched
    }

    fn put_placement(&mut self, place: &Place, placement: Option<Placement>) -> Vec<Touched> {
        let seen = Seen {
            decisions: &self.decisions,
            secrets: &self.secrets,
        };
        self.gitops.put_placement(place, placement, &seen)
    }

    fn put_gitops_cluster(&mut self, place: &Place, it: Option<GitOpsCluster>) -> Vec<Touched> {
        let seen = Seen {
            decisions: &self.decisions,
            secrets: &self.secrets,
        };
        let mut touched = self.gitops.put(place, it, &seen);
        touched.push(Touched::argocd(&self.argocd));
        touched
    }

    fn put_open(&mut self, open: bool) -> Vec<Touched> {
        let seen = Seen {
            decisions: &self.decisions,
            secrets: &self.secrets,
        };
        self.gitops.put_open(open, &seen)
    }

    fn put_secret(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> Vec<Touched> {
        let owner = |secrets: &Secrets| {
            let owner = secrets.owner(name).and_then(|owner| owner.split_once('/'));
            owner.map(|(namespace, name)| Place::new(namespace, name))
        };
        let before = owner(&self.secrets);
        let concerned = self.secrets.put(name, secret);
        if concerned.is_empty() {
            return Vec::new();
        }
        let mut touched = clusters(&concerned);
        let owners = before.into_iter().chain(owner(&self.secrets));
        let mut gitops: BTreeSet<_> = owners.filter(|place| self.gitops.get(place).is_some()).collect();
        gitops.extend(
            self.gitops
                .of_clusters(&concerned, &self.decisions)
                .into_iter()
                .cloned(),
        );
        touched.extend(Touched::gitops_all(&gitops));
        touched
    }

    fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> Vec<Touched> {
        if !self.agents.put_certificate(name, secret) {
            return Vec::new();
        }
        let mut touched = self.with_agents();
        if **name == *names::CA_SECRET {
            touched.extend(self.registered());
        }
        touched
    }

    fn put_object(&mut self, kind: Kept, place: &Place, object: Option<Object>) -> Vec<Touched> {
        let (before, is_news) = self.agents.put(kind, place, object);
        if !is_news {
            return Vec::new();
        }
        match kind {
            Kept::TokenKey | Kept::Bundle | Kept::Blocklist | Kept::Deployments => self.with_agents(),
            Kept::Management => {
                let mut touched = self.with_agents();
                // What argocd-pull-integration has installed is taken over after it; OCM labels none.
                let labelled = self.agents.all(Kept::AddOns).filter(|(_, it)| {
                    let labels = &it.object["metadata"]["labels"];
                    labels[MANAGED_BY].is_string()
                });
                touched.extend(labelled.map(|(place, _)| Touched::cluster(&place.namespace)));
                touched
            }
            // Where the resource proxy listens is in every cluster Secret, what the principal is called in every configuration.
            Kept::Services | Kept::Routes | Kept::Nodes => {
                let mut touched = self.with_agents();
                touched.extend(self.registered());
                touched
            }
            Kept::Templates | Kept::AddOnConfigs | Kept::Placements | Kept::Decisions => {
                let both = before.as_ref().into_iter().chain(self.agents.get(kind, place));
                let owners: BTreeSet<_> = both.filter_map(Object::owner).collect();
                let mut touched = match kind {
                    // What one names another need not name any more.
                    Kept::Decisions => self.with_agents(),
                    _ => vec![Touched::argocd(&self.argocd)],
                };
                touched.extend(Touched::gitops_all(&owners));
                touched
            }
            Kept::AddOns | Kept::Works => {
                let cluster = Arc::clone(&place.namespace);
                let mut touched = vec![Touched::argocd(&self.argocd), Touched::cluster(&cluster)];
                // Whoever has had it brought may select the cluster no more, and wait for it to be gone.
                let both = before.as_ref().into_iter().chain(self.agents.get(kind, place));
                let mut of_it: BTreeSet<_> = both.filter_map(Object::owner).collect();
                of_it.extend(self.gitops_of(&cluster));
                touched.extend(Touched::gitops_all(&of_it));
                touched
            }
            Kept::Requests => {
                vec![Touched::request(place.clone())]
            }
            Kept::Issued => {
                let Some(cluster) = names::cluster_of_issued(&place.name) else {
                    return Vec::new();
                };
                let cluster: Arc<str> = cluster.into();
                let mut touched = vec![Touched::argocd(&self.argocd), Touched::cluster(&cluster)];
                touched.extend(self.requests_of(&cluster).cloned().map(Touched::request));
                let both = before.as_ref().into_iter().chain(self.agents.get(kind, place));
                let mut of_it: BTreeSet<_> = both.filter_map(Object::owner).collect();
                of_it.extend(self.gitops_of(&cluster));
                touched.extend(Touched::gitops_all(&of_it));
                touched
            }
        }
    }

    /// What concerns the Argo CD of the hub concerns every GitOpsCluster that brings agents to it, or has brought and waits.
    fn with_agents(&self) -> Vec<Touched> {
        let asking = self.gitops.all().filter(|(_, it)| it.spec.may_have_agent());
        let mut all: BTreeSet<_> = asking.map(|(place, _)| place.clone()).collect();
        all.extend(self.agents.all(Kept::Decisions).filter_map(|(_, it)| it.owner()));
        let mut touched = vec![Touched::argocd(&self.argocd)];
        touched.extend(Touched::gitops_all(&all));
        touched
    }

    /// The managed clusters that Argo CD knows by a Secret of a GitOpsCluster's, or shall know by that of their agent.
    fn registered(&self) -> Vec<Touched> {
        let owners = self.gitops.all().map(|(place, _)| place.to_string());
        let secrets = owners.flat_map(|owner| self.secrets.owned(&owner));
        let mut clusters: BTreeSet<Arc<str>> = secrets.map(|secret| secret.cluster().into()).collect();
        let asking = self.gitops.all().filter(|(_, it)| it.spec.agent.is_some());
        let selected = asking.flat_map(|(place, it)| self.decided(&it.placement(place)));
        clusters.extend(selected.cloned());
        self::clusters(&clusters)
    }

    /// The GitOpsClusters that select a managed cluster, have registered it, or have named it to OCM.
    fn gitops_of(&self, cluster: &Arc<str>) -> BTreeSet<Place> {
        let owners = self.secrets.of(cluster).filter_map(|(_, secret)| secret.owner());
        let owners = owners.filter_map(|owner| owner.split_once('/'));
        let owners = owners.map(|(namespace, name)| Place::new(namespace, name));
        let selecting = self.gitops.of_clusters([cluster], &self.decisions).into_iter().cloned();
        let all = owners.chain(selecting).chain(self.listing(cluster));
        all.filter(|place| self.gitops.get(place).is_some()).collect()
    }

    fn put_project(&mut self, name: &Arc<str>, project: Option<Value>) -> Vec<Touched> {
        let before = match project {
            Some(project) => self.projects.insert(Arc::clone(name), project),
            None => self.projects.remove(name),
        };
        if self.projects.get(name) == before.as_ref() {
            return Vec::new();
        }
        let is_of_it = |place: &&Place| {
            let pull = self.applications.get(place).and_then(|it| it.pull.as_ref());
            pull.is_some_and(|pull| *pull.project_name() == **name)
        };
        let concerned = self.pulled.all().filter(is_of_it).cloned();
        concerned.map(Touched::application).collect()
    }

    fn put_namespaces(&mut self, namespaces: Namespaces) -> Vec<Touched> {
        if self.namespaces == namespaces {
            return Vec::new();
        }
        self.namespaces = namespaces;
        self.pulled.all().cloned().map(Touched::application).collect()
    }

    fn track(&mut self, tracking: Tracking) -> Vec<Touched> {
        let label = self.tracking().label().to_owned();
        let mut touched = self.works.track(tracking);
        if label != self.tracking().label() {
            touched.extend(self.clusters.keys().map(Touched::cluster));
        }
        self.with_sets(touched)
    }

    fn put_cluster(&mut self, name: &Arc<str>, cluster: Option<Cluster>) -> Vec<Touched> {
        let reach = self.reach(name);
        let mut touched = Vec::new();
        if cluster.is_some() && self.lists_no_cluster {
            self.lists_no_cluster = false;
            touched.extend(self.secrets.clusters().map(Touched::cluster));
        }
        let before = match cluster {
            Some(cluster) => self.clusters.insert(Arc::clone(name), cluster),
            None => self.clusters.remove(name),
        };
        let after = self.clusters.get(name);
        if let Some(before) = &before {
            let count = &mut self.heard[before.reach as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(after) = after {
            let count = &mut self.heard[after.reach as usize];
            *count = count.saturating_add(1);
        }
        if after != before.as_ref() {
            touched.push(Touched::cluster(name));
        }
        let stays = |cluster: &Cluster| !cluster.deleting;
        if after.is_some_and(stays) != before.as_ref().is_some_and(stays) {
            touched.extend(Touched::gitops_all(self.gitops.of_clusters([name], &self.decisions)));
        }
        let is_reached_otherwise = self.reach(name) != reach;
        if is_reached_otherwise {
            // One that is heard again may have left a Placement meanwhile.
            touched.extend(Touched::gitops_all(&self.gitops_of(name)));
        }
        let is_another = self.clusters.contains_key(name) != before.is_some();
        let mut concerned = BTreeSet::new();
        if is_reached_otherwise {
            concerned.extend(self.works.on(name));
        }
        let is_hub = |cluster: &Cluster| is_hub(name, &cluster.labels);
        let is_hub_now = after.is_some_and(is_hub) != before.as_ref().is_some_and(is_hub);
        if is_reached_otherwise || is_another || is_hub_now {
            concerned.extend(self.pulled.to(name).cloned());
        }
        if is_another {
            concerned.extend(self.pulled.of(name).cloned());
        }
        touched.extend(concerned.into_iter().map(Touched::application));
        let mut touched = self.with_sets(touched);
        if is_reached_otherwise || is_another {
            let set_of = |place: &Place| self.application(place)?.set(place);
            let sets: BTreeSet<_> = self.sets.on(name).filter_map(set_of).collect();
            touched.extend(sets.into_iter().map(Touched::set));
        }
        touched
    }
}

/// What the report of its ApplicationSet tells of an Application.
fn told(application: &Application) -> (Option<&Generated>, Option<&str>, &[Condition]) {
    let cluster = application.cluster();
    (application.generated.as_deref(), cluster, &application.conditions)
}

fn clusters(names: &BTreeSet<Arc<str>>) -> Vec<Touched> {
    names.iter().map(Touched::cluster).collect()
}

/// Takes one value of a key away.
fn remove<K, V, Q>(map: &mut HashMap<K, BTreeSet<V>>, key: &Q, value: &V)
where
    K: Borrow<Q> + Eq + Hash,
    V: Ord,
    Q: Eq + Hash + ?Sized,
{
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
}

/// Those that are known, and not among all.
fn missing<'k, K: Clone + Eq + Hash + 'k>(known: impl Iterator<Item = &'k K>, all: &HashSet<K>) -> Vec<K> {
    known.filter(|key| !all.contains(*key)).cloned().collect()
}

#[cfg(test)]
pub(super) mod tests;
