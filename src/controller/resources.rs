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
}

/// Applications.
pub static APPLICATIONS: Resource = Resource {
    group: "argoproj.io",
    version: "v1alpha1",
    plural: "applications",
    kind: "Application",
    secret: false,
};

/// ManifestWorks.
pub static WORKS: Resource = Resource {
    group: "work.open-cluster-management.io",
    version: "v1",
    plural: "manifestworks",
    kind: "ManifestWork",
    secret: false,
};

/// ApplicationSets, which are only told about.
pub static APPLICATION_SETS: Resource = Resource {
    group: "argoproj.io",
    version: "v1alpha1",
    plural: "applicationsets",
    kind: "ApplicationSet",
    secret: false,
};

/// The reports of ApplicationSets.
pub static REPORTS: Resource = Resource {
    group: report::GROUP,
    version: report::VERSION,
    plural: report::PLURAL,
    kind: report::KIND,
    secret: false,
};

/// Managed clusters, which are only told about.
pub static CLUSTERS: Resource = Resource {
    group: "cluster.open-cluster-management.io",
    version: "v1",
    plural: "managedclusters",
    kind: "ManagedCluster",
    secret: false,
};

/// Secrets, of which nothing is shown.
pub static SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "secrets",
    kind: "Secret",
    secret: true,
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
