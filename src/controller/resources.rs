//! The kinds of objects that are written.

use super::seen::Place;
use crate::report;

/// A kind of object.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its API group; the core group has none.
    pub group: &'static str,
    /// The version that is written.
    pub version: &'static str,
    /// What it is called in paths.
    pub plural: &'static str,
    /// What it is called in objects.
    pub kind: &'static str,
    /// Whether what is written of it must not be shown.
    pub secret: bool,
    /// Which part of an object is patched, where not the object itself.
    pub part: Option<&'static str>,
}

/// Applications.
pub static APPLICATIONS: Resource = plain("argoproj.io", "v1alpha1", "applications", "Application");

/// ManifestWorks.
pub static WORKS: Resource = plain("work.open-cluster-management.io", "v1", "manifestworks", "ManifestWork");

/// ApplicationSets, which are only told about.
pub static APPLICATION_SETS: Resource = plain("argoproj.io", "v1alpha1", "applicationsets", "ApplicationSet");

/// The reports of ApplicationSets.
pub static REPORTS: Resource = plain(report::GROUP, report::VERSION, report::PLURAL, report::KIND);

/// Managed clusters, which are only told about.
pub static CLUSTERS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1",
    "managedclusters",
    "ManagedCluster",
);

/// Secrets, of which nothing is shown.
pub static SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "secrets",
    kind: "Secret",
    secret: true,
    part: None,
};

/// Placements.
pub static PLACEMENTS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placements",
    "Placement",
);
/// PlacementDecisions, without what they decide.
pub static DECISIONS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placementdecisions",
    "PlacementDecision",
);
/// What PlacementDecisions decide.
pub static DECISION_STATUSES: Resource = DECISIONS.part("status");
/// The configuration of add-ons on their clusters.
pub static ADDON_CONFIGS: Resource = plain(
    ADDONS_GROUP,
    "v1alpha1",
    "addondeploymentconfigs",
    "AddOnDeploymentConfig",
);
/// What add-ons consist of.
pub static TEMPLATES: Resource = plain(ADDONS_GROUP, "v1alpha1", "addontemplates", "AddOnTemplate");
/// Add-ons of the hub.
pub static MANAGEMENTS: Resource = plain(
    ADDONS_GROUP,
    "v1alpha1",
    "clustermanagementaddons",
    "ClusterManagementAddOn",
);
/// Add-ons of managed clusters.
pub static ADDONS: Resource = plain(ADDONS_GROUP, "v1alpha1", "managedclusteraddons", "ManagedClusterAddOn");
/// Requests for certificates, which are only told about.
pub static REQUESTS: Resource = plain(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
);
/// Whether requests for certificates are approved.
pub static REQUEST_APPROVALS: Resource = REQUESTS.part("approval");
/// What becomes of requests for certificates.
pub static REQUEST_STATUSES: Resource = REQUESTS.part("status");
/// ConfigMaps.
pub static CONFIG_MAPS: Resource = plain("", "v1", "configmaps", "ConfigMap");
/// Deployments.
pub static DEPLOYMENTS: Resource = plain("apps", "v1", "deployments", "Deployment");
/// Services, which are only looked at.
pub static SERVICES: Resource = plain("", "v1", "services", "Service");
/// Routes, which are only looked at.
pub static ROUTES: Resource = plain("route.openshift.io", "v1", "routes", "Route");
/// Nodes, which are only looked at.
pub static NODES: Resource = plain("", "v1", "nodes", "Node");
/// AppProjects, which are only looked at.
pub static PROJECTS: Resource = plain("argoproj.io", "v1alpha1", "appprojects", "AppProject");
/// ManifestWorkReplicaSets, which are only looked at.
pub static WORK_SETS: Resource = plain(
    "work.open-cluster-management.io",
    "v1alpha1",
    "manifestworkreplicasets",
    "ManifestWorkReplicaSet",
);
/// Namespaces, which are only looked at.
pub static NAMESPACES: Resource = plain("", "v1", "namespaces", "Namespace");

/// GitOpsClusters.
pub static GITOPS_CLUSTERS: Resource = plain(
    "apps.open-cluster-management.io",
    "v1beta1",
    "gitopsclusters",
    "GitOpsCluster",
);

/// The status of GitOpsClusters.
pub static GITOPS_CLUSTER_STATUSES: Resource = GITOPS_CLUSTERS.part("status");

/// The API group of OCM's add-ons.
const ADDONS_GROUP: &str = "addon.open-cluster-management.io";

/// A kind of which nothing is to be hidden.
const fn plain(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group,
        version,
        plural,
        kind,
        secret: false,
        part: None,
    }
}

impl Resource {
    /// This part of it.
    const fn part(&self, part: &'static str) -> Self {
        Self {
            part: Some(part),
            ..plain(self.group, self.version, self.plural, self.kind)
        }
    }

    /// Its `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of all its objects where this one is.
    #[must_use]
    pub fn path(&self, place: &Place) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let (api_version, plural) = (self.api_version(), self.plural);
        match &*place.namespace {
            "" => format!("/{root}/{api_version}/{plural}"),
            namespace => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        }
    }
}
