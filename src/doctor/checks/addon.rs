//! Checks that argocd-agent is on the managed clusters, if the controller is set to install it.

use super::{Check, refused};
use crate::doctor::controller::ControllerPod;
use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, Message, count, list_names};
use controller::controllers::AGENTS;
use jiff::Timestamp;

pub(super) static CHECK: Check = Check {
    name: "argocd-agent",
    messages: &[&NO_ADDON, &NOT_AVAILABLE, &OK],
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
static OK: Message = Message::ok("argocd-agent", "argocd-agent is available on {all}");

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !ControllerPod::from_state(hub_state).is_some_and(|it| it.is_enabled(AGENTS)) {
        return Vec::new();
    }
    match &hub_state.management {
        // Another check reports that add-ons are not served.
        Lookup::NotFound => return vec![NO_ADDON.finding(&[])],
        Lookup::Refused(why) => return refused("ClusterManagementAddOns", why),
        Lookup::Found(_) => {}
    }
    let addons = match &hub_state.addons {
        Lookup::Refused(why) => return refused("ManagedClusterAddOns", why),
        Lookup::NotFound => return Vec::new(),
        Lookup::Found(addons) => addons,
    };
    let all = count(addons.len(), "managed cluster");
    let unavailable: Vec<_> = addons
        .iter()
        .filter(|(_, is_available)| !**is_available)
        .map(|(name, _)| name)
        .collect();
    if unavailable.is_empty() {
        return vec![OK.finding(&[("all", &all)])];
    }
    vec![NOT_AVAILABLE.finding(&[
        ("clusters", &unavailable.len()),
        ("all", &all),
        ("names", &list_names(unavailable)),
    ])]
}
