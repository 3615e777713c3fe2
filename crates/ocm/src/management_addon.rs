//! Reads the install strategy of a ClusterManagementAddOn of argocd-agent.

use crate::argocd_agent as names;
use serde_json::Value;

/// Returns true if a ClusterManagementAddOn installs the add-on for a GitOpsCluster, with any AddOnTemplate.
#[must_use]
pub fn is_named((namespace, name): (&str, &str), existing: &Value) -> bool {
    let placements = [names::placement(name), names::next_placement(name)];
    placements
        .iter()
        .any(|placement| strategy_at((namespace, placement), existing).is_some())
}

/// Returns the install strategy entry of a Placement.
#[must_use]
pub fn strategy_at<'v>((namespace, placement): (&str, &str), existing: &'v Value) -> Option<&'v Value> {
    let placements = existing.pointer("/spec/installStrategy/placements")?.as_array()?;
    let is_its = |it: &&Value| it["namespace"] == namespace && it["name"] == placement;
    placements.iter().find(is_its)
}
