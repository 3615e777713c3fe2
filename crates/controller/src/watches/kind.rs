//! The watched kinds: their resources, selectors, and the changes that their objects cause.

use crate::application_set_report::Found;
use crate::cache::Change;
use crate::cluster_secrets::{CLUSTER, ClusterSecret, MANAGED_BY, OURS, SECRET_TYPE};
use crate::model;
use crate::model::{
    AgentResource, Application, ApplicationSet, Cluster, Decision, GitOpsCluster, Object, Placement, TlsSecret, Work,
    WorkKind,
};
use crate::pull::tenancy;
use jiff::Timestamp;
use kube::runtime::watcher::Config;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources;
use ocm::resources::Resource;
use ocm::tracking::{CONFIG_MAP, Tracking};
use std::collections::HashSet;
use std::sync::Arc;

/// The number of objects in one page of a list: works contain all their manifests.
const PAGE: u32 = 50;
/// The number of objects in one page for kinds with objects of up to a megabyte.
const SMALL_PAGE: u32 = 5;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Applications.
    Applications,
    /// ManifestWorks.
    Works,
    /// ManifestWorkReplicaSets, which older versions of OCM do not have.
    Sets,
    /// ManagedClusters.
    Clusters,
    /// The ConfigMap `argocd-cm`, which configures resource tracking.
    Config,
    /// The ConfigMap with the parameters of Argo CD.
    Parameters,
    /// PlacementDecisions.
    Decisions,
    /// AppProjects.
    Projects,
    /// The cluster Secrets of Argo CD.
    Secrets,
    /// ApplicationSets, which not every Argo CD installs.
    ApplicationSets,
    /// The reports of ApplicationSets, if installed.
    Reports,
    /// GitOpsClusters, if installed.
    GitOpsClusters,
    /// Placements.
    Placements,
    /// The namespace of Argo CD.
    Namespace,
    /// The TLS Secrets in the namespace of Argo CD.
    Certificates,
    /// Objects that are cached without a model of their own.
    AgentResource(AgentResource),
}

impl Kind {
    /// Returns the API resource.
    #[must_use]
    pub fn resource(self) -> &'static Resource {
        match self {
            Self::Applications => &resources::APPLICATIONS,
            Self::Works | Self::AgentResource(AgentResource::Works) => &resources::WORKS,
            Self::Sets => &resources::WORK_SETS,
            Self::Clusters => &resources::CLUSTERS,
            Self::Config | Self::Parameters | Self::AgentResource(AgentResource::Bundle | AgentResource::Blocklist) => {
                &resources::CONFIG_MAPS
            }
            Self::Decisions | Self::AgentResource(AgentResource::Decisions) => &resources::DECISIONS,
            Self::Projects => &resources::PROJECTS,
            Self::Secrets
            | Self::Certificates
            | Self::AgentResource(AgentResource::TokenKey | AgentResource::Issued) => &resources::SECRETS,
            Self::ApplicationSets => &resources::APPLICATION_SETS,
            Self::Reports => &resources::REPORTS,
            Self::GitOpsClusters => &resources::GITOPS_CLUSTERS,
            Self::Placements | Self::AgentResource(AgentResource::Placements) => &resources::PLACEMENTS,
            Self::Namespace => &resources::NAMESPACES,
            Self::AgentResource(AgentResource::Services) => &resources::SERVICES,
            Self::AgentResource(AgentResource::Routes) => &resources::ROUTES,
            Self::AgentResource(AgentResource::Nodes) => &resources::NODES,
            Self::AgentResource(AgentResource::Deployments) => &resources::DEPLOYMENTS,
            Self::AgentResource(AgentResource::Templates) => &resources::TEMPLATES,
            Self::AgentResource(AgentResource::Management) => &resources::MANAGEMENTS,
            Self::AgentResource(AgentResource::AddOnConfigs) => &resources::ADDON_CONFIGS,
            Self::AgentResource(AgentResource::AddOns) => &resources::ADDONS,
            Self::AgentResource(AgentResource::Requests) => &resources::REQUESTS,
        }
    }

    /// Returns true if a hub may not serve the kind. OCM installs ManifestWorkReplicaSets since its version 0.8.
    #[must_use]
    pub fn may_be_missing(self) -> bool {
        matches!(
            self,
            Self::Sets
                | Self::ApplicationSets
                | Self::Reports
                | Self::GitOpsClusters
                | Self::AgentResource(AgentResource::Routes)
        )
    }

    /// Returns true if the controller works without the right to read the kind, as if no object existed.
    #[must_use]
    pub fn may_be_forbidden(self) -> bool {
        self == Self::Parameters
    }

    /// Returns true if only objects in the namespace of Argo CD are watched.
    pub(super) fn is_of_argocd(self) -> bool {
        match self {
            Self::Config | Self::Parameters | Self::Projects | Self::Secrets | Self::Certificates => true,
            Self::AgentResource(kept) => matches!(
                kept,
                AgentResource::TokenKey
                    | AgentResource::Bundle
                    | AgentResource::Blocklist
                    | AgentResource::Issued
                    | AgentResource::Services
                    | AgentResource::Routes
                    | AgentResource::Deployments
            ),
            _ => false,
        }
    }

    /// Returns the number of objects in one page of a list.
    pub(super) fn page(self) -> u32 {
        match self {
            Self::Reports | Self::AgentResource(AgentResource::Templates) => SMALL_PAGE,
            _ => PAGE,
        }
    }

    /// Returns the selectors of the watch; `argocd` is the namespace of Argo CD.
    pub(crate) fn which(self, argocd: &str) -> Config {
        let all = Config::default();
        let named = |name| Config::default().fields(&format!("metadata.name={name}"));
        match self {
            Self::Config => named(CONFIG_MAP),
            Self::Parameters => named(tenancy::CONFIG_MAP),
            Self::Namespace => named(argocd),
            Self::Secrets => all.labels(&format!("{SECRET_TYPE}={CLUSTER}")),
            Self::Certificates => all.fields("type=kubernetes.io/tls"),
            // Our own decisions follow from the others.
            Self::Decisions => all.labels(&format!("{MANAGED_BY}!={OURS}")),
            Self::AgentResource(kept) => match kept {
                AgentResource::TokenKey => named(names::JWT_SECRET),
                AgentResource::Bundle => named(names::CA_BUNDLE),
                AgentResource::Blocklist => named(names::BLOCKLIST),
                // The type of a Secret is immutable.
                AgentResource::Issued => all.fields(&format!("type={}", names::ISSUED_TYPE)),
                AgentResource::Services | AgentResource::Routes | AgentResource::Nodes | AgentResource::Deployments => {
                    all
                }
                AgentResource::Templates
                | AgentResource::AddOnConfigs
                | AgentResource::Placements
                | AgentResource::Decisions => all.labels(&format!("{MANAGED_BY}={OURS}")),
                AgentResource::Management | AgentResource::AddOns => named(names::ADDON),
                AgentResource::Works => all.labels(&format!("{}=true", names::WORK_LABEL)),
                AgentResource::Requests => all.fields(&format!("spec.signerName={}", names::SIGNER)),
            },
            _ => all,
        }
    }

    /// Returns the change that an object causes; `text` is its JSON, or none if it was deleted.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the invalid JSON or field; the API server accepts no such object.
    pub(crate) fn change(self, place: ObjectRef, text: Option<&str>, now: Timestamp) -> Result<Change, String> {
        let work = |kind, place| {
            let work = text.map(|text| Work::read(text, now)).transpose()?;
            Ok(Change::Work(kind, place, work.flatten()))
        };
        Ok(match self {
            Self::Applications => Change::Application(place, text.map(Application::read).transpose()?),
            Self::Works => return work(WorkKind::Work, place),
            Self::Sets => return work(WorkKind::Set, place),
            Self::Clusters => Change::Cluster(place.name, text.map(Cluster::read).transpose()?),
            Self::Config => Change::Tracking(match text {
                Some(text) => model::tracking(text)?,
                None => Tracking::configured(|_| None),
            }),
            Self::Parameters => Change::Namespaces(text.map(model::namespaces).transpose()?.unwrap_or_default()),
            Self::Decisions => Change::Decision(place, text.map(Decision::read).transpose()?),
            Self::Placements => Change::Placement(place, text.map(Placement::read).transpose()?),
            Self::GitOpsClusters => {
                let it = text.map(GitOpsCluster::read).transpose()?;
                Change::GitOpsCluster(place, it.map(Box::new))
            }
            Self::Namespace => Change::Open(text.map_or(Ok(false), model::is_open)?),
            Self::Projects => Change::Project(place.name, text.map(model::project).transpose()?),
            Self::Secrets => Change::Secret(place.name, text.map(ClusterSecret::read).transpose()?),
            Self::Certificates => {
                let text = text.filter(|_| names::CERTIFICATES.contains(&&*place.name));
                Change::Certificate(place.name, text.map(TlsSecret::read).transpose()?)
            }
            Self::ApplicationSets => Change::ApplicationSet(place, text.map(ApplicationSet::read).transpose()?),
            Self::Reports => Change::Report(place, text.map(Found::read).transpose()?),
            Self::AgentResource(kept) => {
                Change::Object(kept, place, text.map(|text| Object::read(kept, text)).transpose()?)
            }
        })
    }

    /// Returns the change that a complete list of objects causes.
    pub(super) fn only(self, all: HashSet<ObjectRef>) -> Change {
        match self {
            Self::Applications => Change::OnlyApplications(all),
            Self::Works => Change::OnlyWorks(WorkKind::Work, all),
            Self::Sets => Change::OnlyWorks(WorkKind::Set, all),
            Self::Clusters => Change::OnlyClusters(names_of(all)),
            Self::Config => Change::ConfigIsThere(!all.is_empty()),
            Self::Parameters => Change::ParametersAreThere(!all.is_empty()),
            Self::Decisions => Change::OnlyDecisions(all),
            Self::Placements => Change::OnlyPlacements(all),
            Self::GitOpsClusters => Change::OnlyGitOpsClusters(all),
            Self::Namespace => Change::NamespaceIsThere(!all.is_empty()),
            Self::Projects => Change::OnlyProjects(names_of(all)),
            Self::Secrets => Change::OnlySecrets(names_of(all)),
            Self::Certificates => Change::OnlyCertificates(names_of(all)),
            Self::ApplicationSets => Change::OnlyApplicationSets(all),
            Self::Reports => Change::OnlyReports(all),
            Self::AgentResource(kept) => Change::OnlyObjects(kept, all),
        }
    }
}

/// Returns the names of objects that have no namespace, or all the same.
fn names_of(all: HashSet<ObjectRef>) -> HashSet<Arc<str>> {
    all.into_iter().map(|place| place.name).collect()
}
