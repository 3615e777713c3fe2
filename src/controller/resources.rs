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
pub static APPLICATIONS: Resource = Resource {
    group: "argoproj.io",
    version: "v1alpha1",
    plural: "applications",
    kind: "Application",
    secret: false,
    part: None,
};

/// ManifestWorks.
pub static WORKS: Resource = Resource {
    group: "work.open-cluster-management.io",
    version: "v1",
    plural: "manifestworks",
    kind: "ManifestWork",
    secret: false,
    part: None,
};

/// ApplicationSets, which are only told about.
pub static APPLICATION_SETS: Resource = Resource {
    group: "argoproj.io",
    version: "v1alpha1",
    plural: "applicationsets",
    kind: "ApplicationSet",
    secret: false,
    part: None,
};

/// The reports of ApplicationSets.
pub static REPORTS: Resource = Resource {
    group: report::GROUP,
    version: report::VERSION,
    plural: report::PLURAL,
    kind: report::KIND,
    secret: false,
    part: None,
};

/// Managed clusters, which are only told about.
pub static CLUSTERS: Resource = Resource {
    group: "cluster.open-cluster-management.io",
    version: "v1",
    plural: "managedclusters",
    kind: "ManagedCluster",
    secret: false,
    part: None,
};

/// Secrets, of which nothing is shown.
pub static SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "secrets",
    kind: "Secret",
    secret: true,
    part: None,
};

/// GitOpsClusters.
pub static GITOPS_CLUSTERS: Resource = Resource {
    group: "apps.open-cluster-management.io",
    version: "v1beta1",
    plural: "gitopsclusters",
    kind: "GitOpsCluster",
    secret: false,
    part: None,
};

/// The status of GitOpsClusters.
pub static GITOPS_CLUSTER_STATUSES: Resource = Resource {
    group: "apps.open-cluster-management.io",
    version: "v1beta1",
    plural: "gitopsclusters",
    kind: "GitOpsCluster",
    secret: false,
    part: Some("status"),
};

impl Resource {
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
