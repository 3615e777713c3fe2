//! Checks that argocd-agent is on the managed clusters, if the controller is set to install it.

use super::{Check, refused};
use crate::doctor::controller::ControllerPod;
use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, Message, count, some};
use controller::controllers::AGENTS;
use jiff::Timestamp;

pub(super) static CHECK: Check = Check {
    name: "argocd-agent",
    messages: &[&NO_ADDON, &NOT_AVAILABLE, &FINE],
    run,
};

static NO_ADDON: Message = Message::warning(
    "argocd-agent-missing",
    "ClusterManagementAddOn argocd-agent-addon does not exist; the controller creates it for a GitOpsCluster with agents",
    "see the status with `argocd-ocm-cmp gitopscluster status --all-namespaces`",
);
static NOT_AVAILABLE: Message = Message::error(
    "argocd-agent-not-available",
    "argocd-agent is not available on {clusters} of {all}: {names}",
    "see the reason with `argocd-ocm-cmp gitopscluster status --all-namespaces`",
);
static FINE: Message = Message::fine("argocd-agent", "argocd-agent is available on {all}");

fn run(seen: &HubState, _: Timestamp) -> Vec<Finding> {
    if !ControllerPod::of(seen).is_some_and(|it| it.does(AGENTS)) {
        return Vec::new();
    }
    match &seen.management {
        // Another check reports that add-ons are not served.
        Lookup::Absent => return vec![NO_ADDON.of(&[])],
        Lookup::Refused(why) => return refused("ClusterManagementAddOns", why),
        Lookup::There(_) => {}
    }
    let addons = match &seen.addons {
        Lookup::Refused(why) => return refused("ManagedClusterAddOns", why),
        Lookup::Absent => return Vec::new(),
        Lookup::There(addons) => addons,
    };
    let all = count(addons.len(), "managed cluster");
    let bad: Vec<_> = addons
        .iter()
        .filter(|(_, is_available)| !**is_available)
        .map(|(name, _)| name)
        .collect();
    if bad.is_empty() {
        return vec![FINE.of(&[("all", &all)])];
    }
    vec![NOT_AVAILABLE.of(&[("clusters", &bad.len()), ("all", &all), ("names", &some(bad))])]
}
