//! What is watched: which objects, and what a change of one means.

use crate::agent::names;
use crate::cluster_secret::{CLUSTER, ClusterSecret, MANAGED_BY, OURS, SECRET_TYPE};
use crate::controller::index::Change;
use crate::controller::resources::{self, Resource};
use crate::controller::seen::{
    self, Application, ApplicationSet, Cluster, Decision, GitOpsCluster, Object, Place, Placement, TlsSecret, Work,
    WorkKind,
};
use crate::pull::tenancy;
use crate::report::Found;
use crate::tracking::{CONFIG_MAP, Tracking};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::Config;
use std::collections::HashSet;
use std::sync::Arc;

/// How many objects are listed by one request: works carry all their manifests.
const PAGE: u32 = 50;
/// How many where each may have a megabyte.
const SMALL_PAGE: u32 = 5;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Applications.
    Applications,
    /// ManifestWorks.
    Works,
    /// ManifestWorkReplicaSets, which older OCMs do not have.
    Sets,
    /// ManagedClusters.
    Clusters,
    /// The ConfigMap of Argo CD that says how it tracks.
    Config,
    /// The ConfigMap of Argo CD that has its parameters.
    Parameters,
    /// PlacementDecisions.
    Decisions,
    /// AppProjects.
    Projects,
    /// The Secrets by which Argo CD knows clusters.
    Secrets,
    /// ApplicationSets, which an Argo CD may be without.
    ApplicationSets,
    /// The reports of ApplicationSets, where they are installed.
    Reports,
    /// GitOpsClusters, where they are installed.
    GitOpsClusters,
    /// Placements.
    Placements,
    /// The namespace of Argo CD.
    Namespace,
    /// The Secrets of Argo CD's namespace that are certificates with their keys.
    Certificates,
    /// What is looked at as it is.
    Kept(Kept),
}

/// What is looked at as it is: the parts of argocd-agent, and of the add-on that brings it to managed clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// The Secret with the key by which the principal signs tokens.
    TokenKey,
    /// The ConfigMap with the certificates of the authorities.
    Bundle,
    /// The ConfigMap with the certificates that the principal refuses.
    Blocklist,
    /// The Secrets that list the certificates of agents.
    Issued,
    /// The Services in Argo CD's namespace.
    Services,
    /// The Routes in Argo CD's namespace, which only OpenShift has.
    Routes,
    /// The nodes of the hub, which have the addresses of what listens at ports of nodes.
    Nodes,
    /// The Deployments in Argo CD's namespace.
    Deployments,
    /// AddOnTemplates of ours.
    Templates,
    /// The ClusterManagementAddOn of argocd-agent.
    Management,
    /// AddOnDeploymentConfigs of ours.
    AddOnConfigs,
    /// The ManagedClusterAddOns of argocd-agent.
    AddOns,
    /// Placements of ours.
    Placements,
    /// PlacementDecisions of ours.
    Decisions,
    /// ManifestWorks that bring something to the agents.
    Works,
    /// Requests for certificates of agents.
    Requests,
}

impl Kind {
    /// What it is.
    #[must_use]
    pub fn resource(self) -> &'static Resource {
        match self {
            Self::Applications => &resources::APPLICATIONS,
            Self::Works | Self::Kept(Kept::Works) => &resources::WORKS,
            Self::Sets => &resources::WORK_SETS,
            Self::Clusters => &resources::CLUSTERS,
            Self::Config | Self::Parameters | Self::Kept(Kept::Bundle | Kept::Blocklist) => &resources::CONFIG_MAPS,
            Self::Decisions | Self::Kept(Kept::Decisions) => &resources::DECISIONS,
            Self::Projects => &resources::PROJECTS,
            Self::Secrets | Self::Certificates | Self::Kept(Kept::TokenKey | Kept::Issued) => &resources::SECRETS,
            Self::ApplicationSets => &resources::APPLICATION_SETS,
            Self::Reports => &resources::REPORTS,
            Self::GitOpsClusters => &resources::GITOPS_CLUSTERS,
            Self::Placements | Self::Kept(Kept::Placements) => &resources::PLACEMENTS,
            Self::Namespace => &resources::NAMESPACES,
            Self::Kept(Kept::Services) => &resources::SERVICES,
            Self::Kept(Kept::Routes) => &resources::ROUTES,
            Self::Kept(Kept::Nodes) => &resources::NODES,
            Self::Kept(Kept::Deployments) => &resources::DEPLOYMENTS,
            Self::Kept(Kept::Templates) => &resources::TEMPLATES,
            Self::Kept(Kept::Management) => &resources::MANAGEMENTS,
            Self::Kept(Kept::AddOnConfigs) => &resources::ADDON_CONFIGS,
            Self::Kept(Kept::AddOns) => &resources::ADDONS,
            Self::Kept(Kept::Requests) => &resources::REQUESTS,
        }
    }

    /// Whether a hub may do without. OCM installs ManifestWorkReplicaSets since its version 0.8.
    #[must_use]
    pub fn may_be_missing(self) -> bool {
        matches!(
            self,
            Self::Sets | Self::ApplicationSets | Self::Reports | Self::GitOpsClusters | Self::Kept(Kept::Routes)
        )
    }

    /// Returns true if the controller goes on without the right to read it, as if there were none.
    #[must_use]
    pub fn may_be_forbidden(self) -> bool {
        self == Self::Parameters
    }

    /// Whether it is looked for in Argo CD's namespace only.
    pub(super) fn is_of_argocd(self) -> bool {
        match self {
            Self::Config | Self::Parameters | Self::Projects | Self::Secrets | Self::Certificates => true,
            Self::Kept(kept) => matches!(
                kept,
                Kept::TokenKey
                    | Kept::Bundle
                    | Kept::Blocklist
                    | Kept::Issued
                    | Kept::Services
                    | Kept::Routes
                    | Kept::Deployments
            ),
            _ => false,
        }
    }

    /// How many are listed by one request.
    pub(super) fn page(self) -> u32 {
        match self {
            Self::Reports | Self::Kept(Kept::Templates) => SMALL_PAGE,
            _ => PAGE,
        }
    }

    /// Which of its kind; `argocd` is Argo CD's namespace.
    pub(in crate::controller) fn which(self, argocd: &str) -> Config {
        let all = Config::default();
        let named = |name| Config::default().fields(&format!("metadata.name={name}"));
        match self {
            Self::Config => named(CONFIG_MAP),
            Self::Parameters => named(tenancy::CONFIG_MAP),
            Self::Namespace => named(argocd),
            Self::Secrets => all.labels(&format!("{SECRET_TYPE}={CLUSTER}")),
            Self::Certificates => all.fields("type=kubernetes.io/tls"),
            // Those of ours say what follows from the others.
            Self::Decisions => all.labels(&format!("{MANAGED_BY}!={OURS}")),
            Self::Kept(kept) => match kept {
                Kept::TokenKey => named(names::JWT_SECRET),
                Kept::Bundle => named(names::CA_BUNDLE),
                Kept::Blocklist => named(names::BLOCKLIST),
                // Nobody can change the type of a Secret.
                Kept::Issued => all.fields(&format!("type={}", names::ISSUED_TYPE)),
                Kept::Services | Kept::Routes | Kept::Nodes | Kept::Deployments => all,
                Kept::Templates | Kept::AddOnConfigs | Kept::Placements | Kept::Decisions => {
                    all.labels(&format!("{MANAGED_BY}={OURS}"))
                }
                Kept::Management | Kept::AddOns => named(names::ADDON),
                Kept::Works => all.labels(&format!("{}=true", names::WORK_LABEL)),
                Kept::Requests => all.fields(&format!("spec.signerName={}", names::SIGNER)),
            },
            _ => all,
        }
    }

    /// What it means that an object is so, or is gone.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub(in crate::controller) fn change(
        self,
        place: Place,
        text: Option<&str>,
        now: Timestamp,
    ) -> Result<Change, String> {
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
                Some(text) => seen::tracking(text)?,
                None => Tracking::configured(|_| None),
            }),
            Self::Parameters => Change::Namespaces(text.map(seen::namespaces).transpose()?.unwrap_or_default()),
            Self::Decisions => Change::Decision(place, text.map(Decision::read).transpose()?),
            Self::Placements => Change::Placement(place, text.map(Placement::read).transpose()?),
            Self::GitOpsClusters => {
                let it = text.map(GitOpsCluster::read).transpose()?;
                Change::GitOpsCluster(place, it.map(Box::new))
            }
            Self::Namespace => Change::Open(text.map_or(Ok(false), seen::is_open)?),
            Self::Projects => Change::Project(place.name, text.map(seen::project).transpose()?),
            Self::Secrets => Change::Secret(place.name, text.map(ClusterSecret::read).transpose()?),
            Self::Certificates => {
                let text = text.filter(|_| names::CERTIFICATES.contains(&&*place.name));
                Change::Certificate(place.name, text.map(TlsSecret::read).transpose()?)
            }
            Self::ApplicationSets => Change::ApplicationSet(place, text.map(ApplicationSet::read).transpose()?),
            Self::Reports => Change::Report(place, text.map(Found::read).transpose()?),
            Self::Kept(kept) => Change::Object(kept, place, text.map(|text| Object::read(kept, text)).transpose()?),
        })
    }

    /// What it means that these objects are all.
    pub(super) fn only(self, all: HashSet<Place>) -> Change {
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
            Self::Kept(kept) => Change::OnlyObjects(kept, all),
        }
    }
}

/// The names of objects that have no namespace, or all the same.
fn names_of(all: HashSet<Place>) -> HashSet<Arc<str>> {
    all.into_iter().map(|place| place.name).collect()
}
