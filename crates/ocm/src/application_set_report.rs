//! The API names of the MulticlusterApplicationSetReport, a resource of Red Hat ACM.

/// The API group.
pub const GROUP: &str = "apps.open-cluster-management.io";

/// The version that the controller writes.
pub const VERSION: &str = "v1alpha1";

/// The kind.
pub const KIND: &str = "MulticlusterApplicationSetReport";

/// The plural in API paths.
pub const PLURAL: &str = "multiclusterapplicationsetreports";
