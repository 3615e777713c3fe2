//! Reads the install strategy of a ClusterManagementAddOn of argocd-agent.

use crate::argocd_agent::AddonPlacement;
use primitives::object_ref::ObjectRef;
use serde_json::Value;

/// Returns true if a ClusterManagementAddOn installs the add-on for a GitOpsCluster, with any AddOnTemplate.
pub fn is_named(gitops_cluster: &ObjectRef, existing: &Value) -> bool {
    [AddonPlacement::All, AddonPlacement::Next]
        .into_iter()
        .any(|placement| strategy_at(gitops_cluster, placement, existing).is_some())
}

/// Returns the install strategy entry of a Placement of a GitOpsCluster.
pub fn strategy_at<'v>(gitops: &ObjectRef, placement: AddonPlacement, existing: &'v Value) -> Option<&'v Value> {
    let name = placement.name(&gitops.name);
    let placements = existing.pointer("/spec/installStrategy/placements")?.as_array()?;
    let is_its = |entry: &&Value| entry["namespace"] == *gitops.namespace && entry["name"] == *name;
    placements.iter().find(is_its)
}
