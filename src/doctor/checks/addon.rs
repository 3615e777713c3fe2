//! Checks that argocd-agent is on the managed clusters, and that the principal accepts it, if the controller is set to install it.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, check, list_names};
use crate::install::{WrongSetting, find_redis_proxy, is_our_principal, wrong_settings};
use crate::workload::{is_ready, name};
use controller::controllers::AGENTS;
use jiff::Timestamp;
use manifest::text::count;

check! {
    "argocd-agent"
    warning NO_ADDON "argocd-agent-missing":
        "ClusterManagementAddOn argocd-agent-addon does not exist; the controller creates it for a GitOpsCluster with agents",
        "see the status with `argocd-ocm-cmp gitopscluster status --all-namespaces`";
    error WRONG_SETTING "argocd-agent-principal-setting":
        "principal {principal}: {problem}",
        "{remediation}";
    warning DIRECT_REDIS "argocd-agent-redis-direct":
        "Argo CD's pages show no live objects of argocd-agent's clusters, because its Redis is not behind the principal, which is ready",
        "run `argocd-ocm-cmp install --features argocd-agent` again, or add the fields of the Helm release again";
    error OTHER_VERSION "argocd-agent-other-version":
        "the principal rejects the agents of {gitops_clusters}, which have another version: {names}",
        "see both versions in the condition AgentVersionMatches with `argocd-ocm-cmp gitopscluster status --all-namespaces`";
    error NOT_AVAILABLE "argocd-agent-not-available":
        "argocd-agent is not available on {clusters} of {all}: {names}",
        "see the reason with `argocd-ocm-cmp gitopscluster status --all-namespaces`";
    ok OK "argocd-agent":
        "argocd-agent is available on {all}";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !hub_state.is_enabled(AGENTS) {
        return Vec::new();
    }
    let mut findings = wrong_principals(hub_state);
    findings.extend(direct_redis(hub_state));
    findings.extend(other_versions(hub_state));
    findings.extend(availability(hub_state));
    findings
}

/// Returns the wrong settings of the principal.
fn wrong_principals(hub_state: &HubState) -> Vec<Finding> {
    // Another check reports that Deployments cannot be read.
    let findings = hub_state.principals().flat_map(|principal| {
        let wrong = wrong_settings(principal, hub_state.agent_params.found());
        wrong.into_iter().map(move |WrongSetting { problem, remediation }| {
            let principal = name(principal);
            WRONG_SETTING.finding(&[
                ("principal", &principal),
                ("problem", &problem),
                ("remediation", &remediation),
            ])
        })
    });
    findings.collect()
}

/// Returns the finding about an Argo CD that reaches its Redis without our principal, as after the first installation.
fn direct_redis(hub_state: &HubState) -> Option<Finding> {
    // Another check reports that the ConfigMap cannot be read.
    let config = hub_state.cmd_params.found()?;
    let has_ours = hub_state
        .principals()
        .any(|live| is_our_principal(live) && is_ready(live));
    (has_ours && find_redis_proxy(config).is_none()).then(|| DIRECT_REDIS.finding(&[]))
}

/// Returns the finding about GitOpsClusters whose agents have another version than the principal.
fn other_versions(hub_state: &HubState) -> Vec<Finding> {
    // Another check reports that they are not served.
    let mut findings = hub_state.other_versions.refusal("GitOpsClusters");
    let names = hub_state.other_versions.found().into_iter().flatten();
    findings.extend(OTHER_VERSION.about(("gitops_clusters", "GitOpsCluster"), names, &[]));
    findings
}

/// Returns the findings about the add-on on the managed clusters.
fn availability(hub_state: &HubState) -> Vec<Finding> {
    match &hub_state.management {
        // Another check reports that add-ons are not served.
        Lookup::NotFound => return vec![NO_ADDON.finding(&[])],
        refused @ Lookup::Refused(_) => return refused.refusal("ClusterManagementAddOns"),
        Lookup::Found(_) => {}
    }
    let Some(addons) = hub_state.addons.found() else {
        return hub_state.addons.refusal("ManagedClusterAddOns");
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
