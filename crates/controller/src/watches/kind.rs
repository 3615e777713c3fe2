//! The watched kinds: their resources, selectors, and the changes that their objects cause.

use crate::application_set_report::ExistingReport;
use crate::cache::Change;
use crate::cluster_secrets::{CLUSTER, ClusterSecret, MANAGED_BY, OURS, SECRET_TYPE};
use crate::model;
use crate::model::{
    AgentResource, Application, ApplicationSet, Cluster, GitOpsCluster, Kind, Object, Placement, PlacementDecision,
    TlsSecret, Work, WorkKind,
};
use crate::pull::tenancy;
use crate::runtime::invalid_object::InvalidObject;
use crate::runtime::table::Update;
use jiff::Timestamp;
use kube::runtime::watcher::Config;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources;
use ocm::resources::Resource;
use ocm::tracking::CONFIG_MAP;
use std::sync::Arc;

/// The number of objects in one page of a list: works contain all their manifests.
const PAGE: u32 = 50;
/// The number of objects in one page for kinds with objects of up to a megabyte.
const SMALL_PAGE: u32 = 5;

impl Kind {
    /// Returns the API resource.
    #[must_use]
    pub fn resource(self) -> &'static Resource {
        match self {
            Self::Applications => &resources::APPLICATIONS,
            Self::Works | Self::AgentResource(AgentResource::AgentWorks) => &resources::WORKS,
            Self::ReplicaSets => &resources::WORK_SETS,
            Self::Clusters => &resources::CLUSTERS,
            Self::Config | Self::Parameters | Self::AgentResource(AgentResource::Bundle | AgentResource::Blocklist) => {
                &resources::CONFIG_MAPS
            }
            Self::Decisions | Self::AgentResource(AgentResource::OwnDecisions) => &resources::DECISIONS,
            Self::Projects => &resources::PROJECTS,
            Self::Secrets
            | Self::Certificates
            | Self::AgentResource(AgentResource::TokenKey | AgentResource::IssuedCertificates) => &resources::SECRETS,
            Self::ApplicationSets => &resources::APPLICATION_SETS,
            Self::Reports => &resources::REPORTS,
            Self::GitOpsClusters => &resources::GITOPS_CLUSTERS,
            Self::Placements | Self::AgentResource(AgentResource::OwnPlacements) => &resources::PLACEMENTS,
            Self::Namespace => &resources::NAMESPACES,
            Self::AgentResource(AgentResource::Services) => &resources::SERVICES,
            Self::AgentResource(AgentResource::Routes) => &resources::ROUTES,
            Self::AgentResource(AgentResource::Nodes) => &resources::NODES,
            Self::AgentResource(AgentResource::Deployments) => &resources::DEPLOYMENTS,
            Self::AgentResource(AgentResource::Templates) => &resources::TEMPLATES,
            Self::AgentResource(AgentResource::ManagementAddOn) => &resources::MANAGEMENTS,
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
            Self::ReplicaSets
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
                    | AgentResource::IssuedCertificates
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
    pub(crate) fn watch_config(self, argocd: &str) -> Config {
        let all = Config::default();
        let named = |name| Config::default().fields(&format!("metadata.name={name}"));
        match self {
            Self::Config => named(CONFIG_MAP),
            Self::Parameters => named(tenancy::CONFIG_MAP),
            Self::Namespace => named(argocd),
            Self::Secrets => all.labels(&format!("{SECRET_TYPE}={CLUSTER}")),
            Self::Certificates => all.fields("type=kubernetes.io/tls"),
            // Exclude our own decisions, which have a separate watch.
            Self::Decisions => all.labels(&format!("{MANAGED_BY}!={OURS}")),
            Self::AgentResource(kept) => match kept {
                AgentResource::TokenKey => named(names::JWT_SECRET),
                AgentResource::Bundle => named(names::CA_BUNDLE),
                AgentResource::Blocklist => named(names::BLOCKLIST),
                // The type of a Secret is immutable.
                AgentResource::IssuedCertificates => all.fields(&format!("type={}", names::ISSUED_TYPE)),
                AgentResource::Services | AgentResource::Routes | AgentResource::Nodes | AgentResource::Deployments => {
                    all
                }
                AgentResource::Templates
                | AgentResource::AddOnConfigs
                | AgentResource::OwnPlacements
                | AgentResource::OwnDecisions => all.labels(&format!("{MANAGED_BY}={OURS}")),
                AgentResource::ManagementAddOn | AgentResource::AddOns => named(names::ADDON),
                AgentResource::AgentWorks => all.labels(&format!("{}=true", names::WORK_LABEL)),
                AgentResource::Requests => all.fields(&format!("spec.signerName={}", names::SIGNER)),
            },
            _ => all,
        }
    }

    /// Returns the change that an update causes; the values are the JSON of objects.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON or a field is invalid.
    pub(crate) fn change(self, update: Update<ObjectRef, &str>, now: Timestamp) -> Result<Change, InvalidObject> {
        Ok(match self {
            Self::Applications => Change::Application(read(update, Application::read)?),
            Self::Works => Change::Work(WorkKind::Work, update.try_filter_map(|_, text| Work::read(text, now))?),
            Self::ReplicaSets => Change::Work(WorkKind::Set, update.try_filter_map(|_, text| Work::read(text, now))?),
            Self::Clusters => Change::Cluster(read(by_name(update), Cluster::read)?),
            Self::Config => Change::Tracking(read(single(update), model::tracking)?),
            Self::Parameters => Change::Namespaces(read(single(update), model::namespaces)?),
            Self::Decisions => Change::PlacementDecision(read(update, PlacementDecision::read)?),
            Self::Placements => Change::Placement(read(update, Placement::read)?),
            Self::GitOpsClusters => {
                Change::GitOpsCluster(read(update, |text| GitOpsCluster::read(text).map(Box::new))?)
            }
            Self::Namespace => Change::AllowOtherNamespaces(read(single(update), model::is_open)?),
            Self::Projects => Change::Project(read(by_name(update), model::project)?),
            Self::Secrets => Change::Secret(read(by_name(update), ClusterSecret::read)?),
            Self::Certificates => Change::Certificate(by_name(update).try_filter_map(|name, text| {
                let is_known = names::CERTIFICATES.contains(&&**name);
                is_known.then(|| TlsSecret::read(text)).transpose()
            })?),
            Self::ApplicationSets => Change::ApplicationSet(read(update, ApplicationSet::read)?),
            Self::Reports => Change::Report(read(update, ExistingReport::read)?),
            Self::AgentResource(kept) => Change::Object(kept, read(update, |text| Object::read(kept, text))?),
        })
    }
}

/// Reads the object of an update.
fn read<K, V>(
    update: Update<K, &str>,
    read: impl FnOnce(&str) -> Result<V, InvalidObject>,
) -> Result<Update<K, V>, InvalidObject> {
    update.try_filter_map(|_, text| read(text).map(Some))
}

/// Returns the update of objects that have no namespace, or all the same.
fn by_name<V>(update: Update<ObjectRef, V>) -> Update<Arc<str>, V> {
    update.map_keys(|object_ref| object_ref.name)
}

/// Returns the update of the only object of a kind.
fn single<V>(update: Update<ObjectRef, V>) -> Update<(), V> {
    update.map_keys(|_| ())
}
