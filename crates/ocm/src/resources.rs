//! The API resources that the program reads or writes.

use crate::application_set_report;
use crate::object_ref::ObjectRef;

/// An API resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version that the program writes.
    pub version: &'static str,
    /// The plural in API paths.
    pub plural: &'static str,
    /// The kind in objects.
    pub kind: &'static str,
    /// True if written objects must not be shown.
    pub secret: bool,
    /// The subresource to patch, or `None` for the object itself.
    pub subresource: Option<&'static str>,
}

/// Applications.
pub static APPLICATIONS: Resource = plain("argoproj.io", "v1alpha1", "applications", "Application");

/// ManifestWorks.
pub static WORKS: Resource = plain("work.open-cluster-management.io", "v1", "manifestworks", "ManifestWork");

/// ApplicationSets, which only receive Events.
pub static APPLICATION_SETS: Resource = plain("argoproj.io", "v1alpha1", "applicationsets", "ApplicationSet");

/// MulticlusterApplicationSetReports.
pub static REPORTS: Resource = plain(
    application_set_report::GROUP,
    application_set_report::VERSION,
    application_set_report::PLURAL,
    application_set_report::KIND,
);

/// ManagedClusters, which only receive Events.
pub static CLUSTERS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1",
    "managedclusters",
    "ManagedCluster",
);

/// Secrets, whose content is never shown.
pub static SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "secrets",
    kind: "Secret",
    secret: true,
    subresource: None,
};

/// Placements.
pub static PLACEMENTS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placements",
    "Placement",
);
/// PlacementDecisions, without their status.
pub static DECISIONS: Resource = plain(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placementdecisions",
    "PlacementDecision",
);
/// The status of PlacementDecisions, which contains the decisions.
pub static DECISION_STATUSES: Resource = DECISIONS.subresource("status");
/// AddOnDeploymentConfigs.
pub static ADDON_CONFIGS: Resource = plain(
    ADDONS_GROUP,
    "v1alpha1",
    "addondeploymentconfigs",
    "AddOnDeploymentConfig",
);
/// AddOnTemplates.
pub static TEMPLATES: Resource = plain(ADDONS_GROUP, "v1alpha1", "addontemplates", "AddOnTemplate");
/// ClusterManagementAddOns.
pub static MANAGEMENTS: Resource = plain(
    ADDONS_GROUP,
    "v1alpha1",
    "clustermanagementaddons",
    "ClusterManagementAddOn",
);
/// ManagedClusterAddOns.
pub static ADDONS: Resource = plain(ADDONS_GROUP, "v1alpha1", "managedclusteraddons", "ManagedClusterAddOn");
/// CertificateSigningRequests, which only receive Events.
pub static REQUESTS: Resource = plain(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    "CertificateSigningRequest",
);
/// The approval of CertificateSigningRequests.
pub static REQUEST_APPROVALS: Resource = REQUESTS.subresource("approval");
/// The status of CertificateSigningRequests.
pub static REQUEST_STATUSES: Resource = REQUESTS.subresource("status");
/// ConfigMaps.
pub static CONFIG_MAPS: Resource = plain("", "v1", "configmaps", "ConfigMap");
/// Deployments.
pub static DEPLOYMENTS: Resource = plain("apps", "v1", "deployments", "Deployment");
/// Services, read only.
pub static SERVICES: Resource = plain("", "v1", "services", "Service");
/// Routes, read only.
pub static ROUTES: Resource = plain("route.openshift.io", "v1", "routes", "Route");
/// Nodes, read only.
pub static NODES: Resource = plain("", "v1", "nodes", "Node");
/// AppProjects, read only.
pub static PROJECTS: Resource = plain("argoproj.io", "v1alpha1", "appprojects", "AppProject");
/// ManifestWorkReplicaSets, read only.
pub static WORK_SETS: Resource = plain(
    "work.open-cluster-management.io",
    "v1alpha1",
    "manifestworkreplicasets",
    "ManifestWorkReplicaSet",
);
/// Namespaces, read only.
pub static NAMESPACES: Resource = plain("", "v1", "namespaces", "Namespace");

/// GitOpsClusters.
pub static GITOPS_CLUSTERS: Resource = plain(
    "apps.open-cluster-management.io",
    "v1beta1",
    "gitopsclusters",
    "GitOpsCluster",
);

/// The status of GitOpsClusters.
pub static GITOPS_CLUSTER_STATUSES: Resource = GITOPS_CLUSTERS.subresource("status");

/// The API group of OCM's add-ons.
const ADDONS_GROUP: &str = "addon.open-cluster-management.io";

/// Returns a resource whose objects may be shown.
const fn plain(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group,
        version,
        plural,
        kind,
        secret: false,
        subresource: None,
    }
}

impl Resource {
    /// Returns a subresource of the resource.
    const fn subresource(&self, subresource: &'static str) -> Self {
        Self {
            subresource: Some(subresource),
            ..plain(self.group, self.version, self.plural, self.kind)
        }
    }

    /// Returns the `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the API path of the resource in the namespace of an object.
    #[must_use]
    pub fn path(&self, object_ref: &ObjectRef) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let (api_version, plural) = (self.api_version(), self.plural);
        match &*object_ref.namespace {
            "" => format!("/{root}/{api_version}/{plural}"),
            namespace => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        }
    }
}
