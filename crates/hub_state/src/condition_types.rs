//! The conditions of an Application that the controllers write, by type, and the message for a cluster that does not report.

use crate::model::Availability;

/// An object on a cluster could not be applied.
pub const APPLY_ERROR: &str = ocm::pull_model::APPLY_ERROR;
/// An object on a cluster is degraded or missing.
pub const DEGRADED: &str = "ManifestWorkDegradedWarning";
/// The hub does not receive updates from a cluster.
pub const UNREACHABLE: &str = "ManagedClusterUnreachableWarning";
/// A cluster is on hold, so its works do not change.
pub const ON_HOLD: &str = "ManagedClusterOnHoldWarning";
/// A Placement selects no cluster.
pub const NO_CLUSTER: &str = "ManifestWorkNoClusterWarning";
/// The agent of an available cluster has not done for minutes what it usually does in seconds.
pub const OVERDUE: &str = "ManifestWorkOverdueWarning";
/// Another Application delivers the same object to a cluster.
pub const SHARED: &str = "ManifestWorkSharedObjectWarning";
/// The totals over all clusters.
pub const INFO: &str = ocm::pull_model::INFO;

/// Returns the message for a cluster that the hub does not hear from, or `None` for a reachable one.
pub fn unreachable(availability: Availability) -> Option<&'static str> {
    match availability {
        Availability::Available => None,
        Availability::Unknown => Some("its agent does not report to the hub; showing the last reported state"),
        Availability::Unavailable => Some("its agent reports that the API server of the cluster is unhealthy"),
    }
}
