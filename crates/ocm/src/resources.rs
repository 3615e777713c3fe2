//! The API resources that the program reads or writes.

use crate::application_set_report;
use primitives::resource::Resource;

/// Applications.
pub static APPLICATIONS: Resource = Resource::new("argoproj.io", "v1alpha1", "applications", "Application");

/// ManifestWorks.
pub static WORKS: Resource = Resource::new("work.open-cluster-management.io", "v1", "manifestworks", "ManifestWork");

/// ApplicationSets, which only receive Events.
pub static APPLICATION_SETS: Resource = Resource::new("argoproj.io", "v1alpha1", "applicationsets", "ApplicationSet");

/// MulticlusterApplicationSetReports.
pub static REPORTS: Resource = Resource::new(
    application_set_report::GROUP,
    application_set_report::VERSION,
    application_set_report::PLURAL,
    application_set_report::KIND,
);

/// ManagedClusters, which only receive Events.
pub static CLUSTERS: Resource = Resource::new(
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
pub static PLACEMENTS: Resource = Resource::new(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placements",
    "Placement",
);
/// PlacementDecisions, without their status.
pub static DECISIONS: Resource = Resource::new(
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placementdecisions",
    "PlacementDecision",
);
/// The status of PlacementDecisions, which contains the decisions.
pub static DECISION_STATUSES: Resource = DECISIONS.subresource("status");
/// AddOnDeploymentConfigs.
pub static ADDON_CONFIGS: Resource = Resource::new(
    ADDONS_GROUP,
    "v1alpha1",
    "addondeploymentconfigs",
    "AddOnDeploymentConfig",
);
/// AddOnTemplates.
pub static TEMPLATES: Resource = Resource::new(ADDONS_GROUP, "v1alpha1", "addontemplates", "AddOnTemplate");
/// ClusterManagementAddOns.
pub static MANAGEMENTS: Resource = Resource::new(
    ADDONS_GROUP,
    "v1alpha1",
    "clustermanagementaddons",
    "ClusterManagementAddOn",
);
/// ManagedClusterAddOns.
pub static ADDONS: Resource = Resource::new(ADDONS_GROUP, "v1alpha1", "managedclusteraddons", "ManagedClusterAddOn");
/// CertificateSigningRequests, which only receive Events.
pub static REQUESTS: Resource = Resource::new(
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
pub static CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", "ConfigMap");
/// Deployments.
pub static DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
/// Services, read only.
pub static SERVICES: Resource = Resource::new("", "v1", "services", "Service");
/// Routes, read only.
pub static ROUTES: Resource = Resource::new("route.openshift.io", "v1", "routes", "Route");
/// Nodes, read only.
pub static NODES: Resource = Resource::new("", "v1", "nodes", "Node");
/// AppProjects, read only.
pub static PROJECTS: Resource = Resource::new("argoproj.io", "v1alpha1", "appprojects", "AppProject");
/// ManifestWorkReplicaSets, read only.
pub static WORK_SETS: Resource = Resource::new(
    "work.open-cluster-management.io",
    "v1alpha1",
    "manifestworkreplicasets",
    "ManifestWorkReplicaSet",
);
/// Namespaces, read only.
pub static NAMESPACES: Resource = Resource::new("", "v1", "namespaces", "Namespace");

/// Leases, which only the leader election writes.
pub static LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases", "Lease");

/// GitOpsClusters.
pub static GITOPS_CLUSTERS: Resource = Resource::new(
    "apps.open-cluster-management.io",
    "v1beta1",
    "gitopsclusters",
    "GitOpsCluster",
);

/// The status of GitOpsClusters.
pub static GITOPS_CLUSTER_STATUSES: Resource = GITOPS_CLUSTERS.subresource("status");

/// The API group of OCM's add-ons.
const ADDONS_GROUP: &str = "addon.open-cluster-management.io";
