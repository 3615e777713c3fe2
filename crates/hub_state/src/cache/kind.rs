//! The watched kinds: their resources and selectors, and the readers of their objects.

use super::apply::ArgoCdConfig;
use super::change::ObjectKey;
use super::store::Update;
use super::{Cache, Cached, Change, ReconcileRequest, Setting};
use crate::cluster_secret::{CLUSTER, ClusterSecret, SECRET_TYPE};
use crate::model::{Application, Cluster, GitOpsCluster, Kind, Object, PlacementDecision, TlsSecret, Work};
use crate::pull::namespaces::{self, Namespaces};
use crate::report::ExistingReport;
use jiff::Timestamp;
use kube::runtime::watcher::Config;
use ocm::argocd_agent as names;
use ocm::hold::{self, Hold};
use ocm::resources;
use ocm::tracking::CONFIG_MAP;
use ocm::work::{MANAGED_BY, OURS};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use std::sync::Arc;

/// The number of objects in one page of a list: works contain all their manifests.
const PAGE: u32 = 50;
/// The number of objects in one page for kinds with objects of up to a megabyte.
const SMALL_PAGE: u32 = 5;

type Reader = fn(Kind, Update<ObjectRef, &str>, Timestamp) -> Result<Change, String>;

#[derive(Clone, Copy)]
struct CachedKind {
    read: Reader,
    object_refs: fn(&mut Cache, Kind) -> Vec<ObjectRef>,
    affected_by: fn(&Cache, Kind, ObjectRef) -> Vec<ReconcileRequest>,
}

const fn objects<V: Cached>() -> CachedKind {
    CachedKind {
        read: Change::read_objects::<V>,
        object_refs: |cache, kind| {
            let argocd = Arc::clone(cache.argocd());
            let keys = V::store(cache, kind).keys();
            keys.map(|key| key.to_object_ref(&argocd)).collect()
        },
        affected_by: |cache, kind, object_ref| V::affected_by(cache, kind, &V::Key::from_object_ref(object_ref)),
    }
}

/// A setting affects only objects of other kinds.
const fn setting<S: Setting>() -> CachedKind {
    CachedKind {
        read: Change::read_setting::<S>,
        object_refs: |_, _| Vec::new(),
        affected_by: |_, _, _| Vec::new(),
    }
}

#[derive(Clone, Copy)]
enum Selector {
    All,
    Named(&'static str),
    NamespaceOfArgoCd,
    Field(&'static str, &'static str),
    Label(&'static str, &'static str),
    /// The objects with a label of this key.
    Labelled(&'static str),
    WithoutLabel(&'static str, &'static str),
}

#[derive(Clone, Copy)]
pub struct WatchedKind {
    resource: &'static Resource,
    cached: CachedKind,
    selector: Selector,
    /// True if only objects in the namespace of Argo CD are watched.
    pub is_of_argocd: bool,
    /// True if a hub may not serve the kind.
    pub may_be_missing: bool,
    /// True if the controller works without the right to read the kind, as if no object existed.
    pub may_be_forbidden: bool,
    page: u32,
}

/// Watches the objects of a resource in all namespaces.
const fn watched(resource: &'static Resource, cached: CachedKind) -> WatchedKind {
    WatchedKind {
        resource,
        cached,
        selector: Selector::All,
        is_of_argocd: false,
        may_be_missing: false,
        may_be_forbidden: false,
        page: PAGE,
    }
}

impl WatchedKind {
    const fn only(self, selector: Selector) -> Self {
        Self { selector, ..self }
    }

    const fn in_argocd(self) -> Self {
        Self {
            is_of_argocd: true,
            ..self
        }
    }

    const fn if_served(self) -> Self {
        Self {
            may_be_missing: true,
            ..self
        }
    }

    const fn if_allowed(self) -> Self {
        Self {
            may_be_forbidden: true,
            ..self
        }
    }

    const fn in_small_pages(self) -> Self {
        Self {
            page: SMALL_PAGE,
            ..self
        }
    }
}

impl Kind {
    /// Returns how the kind is watched and read: the only table of kinds.
    pub const fn watched(self) -> WatchedKind {
        use Selector::{Field, Label, Labelled, Named, NamespaceOfArgoCd, WithoutLabel};
        let object = objects::<Object>();
        let ours = Label(MANAGED_BY, OURS);
        match self {
            Self::Applications => watched(&resources::APPLICATIONS, objects::<Application>()),
            Self::Works => watched(&resources::WORKS, objects::<Work>()),
            // OCM installs ManifestWorkReplicaSets since its version 0.8.
            Self::ReplicaSets => watched(&resources::WORK_SETS, objects::<Work>()).if_served(),
            Self::Clusters => watched(&resources::CLUSTERS, objects::<Cluster>()),
            Self::Config => watched(&resources::CONFIG_MAPS, setting::<ArgoCdConfig>())
                .in_argocd()
                .only(Named(CONFIG_MAP)),
            Self::Parameters => watched(&resources::CONFIG_MAPS, setting::<Namespaces>())
                .in_argocd()
                .only(Named(namespaces::CONFIG_MAP))
                .if_allowed(),
            // The controller of an older installation has no right to read them.
            Self::Holds => watched(&resources::NAMESPACES, objects::<Hold>())
                .only(Labelled(hold::LABEL))
                .if_allowed(),
            // Our own decisions have a separate watch.
            Self::Decisions => {
                watched(&resources::DECISIONS, objects::<PlacementDecision>()).only(WithoutLabel(MANAGED_BY, OURS))
            }
            Self::Projects => watched(&resources::PROJECTS, object).in_argocd(),
            Self::Secrets => watched(&resources::SECRETS, objects::<ClusterSecret>())
                .in_argocd()
                .only(Label(SECRET_TYPE, CLUSTER)),
            Self::ApplicationSets => watched(&resources::APPLICATION_SETS, object).if_served(),
            Self::Reports => watched(&resources::REPORTS, objects::<ExistingReport>())
                .if_served()
                .in_small_pages(),
            Self::GitOpsClusters => watched(&resources::GITOPS_CLUSTERS, objects::<GitOpsCluster>()).if_served(),
            Self::Placements => watched(&resources::PLACEMENTS, object),
            Self::Namespace => watched(&resources::NAMESPACES, object).only(NamespaceOfArgoCd),
            Self::Certificates => watched(&resources::SECRETS, objects::<TlsSecret>())
                .in_argocd()
                .only(Field("type", "kubernetes.io/tls")),
            Self::TokenKey => watched(&resources::SECRETS, object)
                .in_argocd()
                .only(Named(names::JWT_SECRET)),
            Self::Bundle => watched(&resources::CONFIG_MAPS, object)
                .in_argocd()
                .only(Named(names::CA_BUNDLE)),
            Self::Blocklist => watched(&resources::CONFIG_MAPS, object)
                .in_argocd()
                .only(Named(names::BLOCKLIST)),
            // The type of a Secret is immutable.
            Self::IssuedCertificates => watched(&resources::SECRETS, object)
                .in_argocd()
                .only(Field("type", names::ISSUED_TYPE)),
            Self::Services => watched(&resources::SERVICES, object).in_argocd(),
            Self::Routes => watched(&resources::ROUTES, object).in_argocd().if_served(),
            Self::Nodes => watched(&resources::NODES, object),
            Self::Deployments => watched(&resources::DEPLOYMENTS, object).in_argocd(),
            Self::Templates => watched(&resources::TEMPLATES, object).only(ours).in_small_pages(),
            Self::ManagementAddOn => watched(&resources::MANAGEMENTS, object).only(Named(names::ADDON)),
            Self::AddOnConfigs => watched(&resources::ADDON_CONFIGS, object).only(ours),
            Self::AddOns => watched(&resources::ADDONS, object).only(Named(names::ADDON)),
            Self::OwnPlacements => watched(&resources::PLACEMENTS, object).only(ours),
            Self::OwnDecisions => watched(&resources::DECISIONS, object).only(ours),
            Self::AgentWorks => watched(&resources::WORKS, object).only(Label(names::WORK_LABEL, "true")),
            Self::Requests => watched(&resources::REQUESTS, object).only(Field("spec.signerName", names::SIGNER)),
        }
    }

    pub fn resource(self) -> &'static Resource {
        self.watched().resource
    }

    /// Returns the selectors of the watch, and its page size; `argocd` is the namespace of Argo CD.
    pub fn watch_config(self, argocd: &str) -> Config {
        let WatchedKind { selector, page, .. } = self.watched();
        let all = Config::default().page_size(page);
        match selector {
            Selector::All => all,
            Selector::Named(name) => all.fields(&format!("metadata.name={name}")),
            Selector::NamespaceOfArgoCd => all.fields(&format!("metadata.name={argocd}")),
            Selector::Field(path, value) => all.fields(&format!("{path}={value}")),
            Selector::Labelled(key) => all.labels(key),
            Selector::Label(key, value) => all.labels(&format!("{key}={value}")),
            Selector::WithoutLabel(key, value) => all.labels(&format!("{key}!={value}")),
        }
    }

    /// Returns the change that an update causes; the values are the JSON of objects.
    pub fn change(self, update: Update<ObjectRef, &str>, now: Timestamp) -> Result<Change, String> {
        (self.watched().cached.read)(self, update, now)
    }

    pub fn object_refs(self, cache: &mut Cache) -> Vec<ObjectRef> {
        (self.watched().cached.object_refs)(cache, self)
    }

    /// Returns the objects to reconcile for an object in the cache, as if it were new.
    pub fn affected_by(self, cache: &Cache, object_ref: ObjectRef) -> Vec<ReconcileRequest> {
        (self.watched().cached.affected_by)(cache, self, object_ref)
    }
}
