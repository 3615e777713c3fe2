//! The labels, annotations and conditions of Applications, as literals: they are a contract with Argo CD, OCM and their users.

use serde_json::Value;

/// Marks an Application of the pull model.
pub const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";
/// Names the managed cluster of an Application of the pull model.
pub const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";
/// On a work, the namespace of its Application.
pub const HUB_NAMESPACE: &str = "apps.open-cluster-management.io/hub-application-namespace";
/// On a work, the name of its Application.
pub const HUB_NAME: &str = "apps.open-cluster-management.io/hub-application-name";
/// Keeps an Argo CD from reconciling an Application.
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// The condition with the totals.
pub const INFO: &str = "ManifestWorkInfo";
/// The condition about objects that are not healthy.
pub const DEGRADED: &str = "ManifestWorkDegradedWarning";
/// The condition about objects that an agent cannot apply.
pub const APPLY_ERROR: &str = "ManifestWorkApplyError";

/// Returns the messages of an Application's conditions of this type, in order.
pub fn messages<'a>(application: &'a Value, kind: &str) -> Vec<&'a str> {
    let conditions = application["status"]["conditions"].as_array().into_iter().flatten();
    let of_kind = conditions.filter(|condition| condition["type"] == kind);
    of_kind.filter_map(|condition| condition["message"].as_str()).collect()
}

/// Returns true if an Application has this health.
pub fn has_health(application: &Value, status: &str) -> bool {
    application["status"]["health"]["status"] == status
}

/// Returns true if an Application is as in Git, on the hub and on the clusters.
pub fn is_healthy(application: &Value) -> bool {
    crate::is_synced(application) && has_health(application, "Healthy")
}
