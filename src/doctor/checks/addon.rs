//! Checks that argocd-agent is on the managed clusters, and that the principal accepts it, if the controller is set to install it.

use super::{Check, refused};
use crate::doctor::controller::ControllerPod;
use crate::doctor::hub_state::{HubState, Lookup, name};
use crate::doctor::message::{Finding, Message, list_names};
use crate::install::{PRINCIPALS, WrongSetting, wrong_settings};
use controller::controllers::AGENTS;
use jiff::Timestamp;
use manifest::text::count;
use std::fmt::Display;

pub(super) static CHECK: Check = Check {
    name: "argocd-agent",
    messages: &[&NO_ADDON, &WRONG_SETTING, &OTHER_VERSION, &NOT_AVAILABLE, &OK],
    run,
};

static NO_ADDON: Message = Message::warning(
    "argocd-agent-missing",
    "ClusterManagementAddOn argocd-agent-addon does not exist; the controller creates it for a GitOpsCluster with agents",
    "see the status with `argocd-ocm-cmp gitopscluster status --all-namespaces`",
);
static WRONG_SETTING: Message = Message::error(
    "argocd-agent-principal-setting",
    "principal {principal}: {problem}",
    "{remediation}",
);
static OTHER_VERSION: Message = Message::error(
    "argocd-agent-other-version",
    "the principal rejects the agents of {gitops_clusters}, which have another version: {names}",
    "see both versions in the condition AgentVersionMatches with `argocd-ocm-cmp gitopscluster status --all-namespaces`",
);
static NOT_AVAILABLE: Message = Message::error(
    "argocd-agent-not-available",
    "argocd-agent is not available on {clusters} of {all}: {names}",
    "see the reason with `argocd-ocm-cmp gitopscluster status --all-namespaces`",
);
static OK: Message = Message::ok("argocd-agent", "argocd-agent is available on {all}");

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !ControllerPod::from_state(hub_state).is_some_and(|pod| pod.is_enabled(AGENTS)) {
        return Vec::new();
    }
    let mut findings = wrong_principals(hub_state);
    findings.extend(other_versions(hub_state));
    findings.extend(availability(hub_state));
    findings
}

/// Returns the wrong settings of the principal.
fn wrong_principals(hub_state: &HubState) -> Vec<Finding> {
    // Another check reports that Deployments cannot be read.
    let deployments = hub_state.deployments.found().into_iter().flatten();
    let principals = deployments.filter(|deployment| PRINCIPALS.contains(&name(deployment)));
    let findings = principals.flat_map(|principal| {
        let wrong = wrong_settings(principal, hub_state.agent_params.found());
        wrong.into_iter().map(move |WrongSetting { problem, remediation }| {
            let values: [(&str, &dyn Display); 3] = [
                ("principal", &name(principal)),
                ("problem", &problem),
                ("remediation", &remediation),
            ];
            WRONG_SETTING.finding(&values)
        })
    });
    findings.collect()
}

/// Returns the finding about GitOpsClusters whose agents have another version than the principal.
fn other_versions(hub_state: &HubState) -> Vec<Finding> {
    match &hub_state.other_versions {
        Lookup::Found(found) if found.is_empty() => Vec::new(),
        Lookup::Found(found) => {
            let gitops_clusters = count(found.len(), "GitOpsCluster");
            vec![OTHER_VERSION.finding(&[("gitops_clusters", &gitops_clusters), ("names", &list_names(found))])]
        }
        Lookup::Refused(why) => refused("GitOpsClusters", why),
        // Another check reports that they are not served.
        Lookup::NotFound => Vec::new(),
    }
}

/// Returns the findings about the add-on on the managed clusters.
fn availability(hub_state: &HubState) -> Vec<Finding> {
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
