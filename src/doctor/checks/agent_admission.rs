//! Checks that an admission policy limits what the agents of managed clusters may change on the hub.

use crate::doctor::hub_state::{HubState, Lookup, items};
use crate::doctor::message::{Finding, check};
use jiff::Timestamp;
use serde_json::Value;

check! {
    "agent-admission"
    warning MISSING "agent-admission-missing":
        "a managed cluster's agent may change the labels of its ManagedCluster, and all fields of its ManifestWorks",
        "run `argocd-ocm-cmp install --features agent-admission`, which requires Kubernetes 1.30";
    warning NOT_ENFORCED "agent-admission-not-enforced":
        "ValidatingAdmissionPolicyBinding {name} denies nothing",
        "add Deny to its validationActions";
    ok OK "agent-admission":
        "an admission policy limits what the agents of managed clusters may change";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let is_installed = hub_state.controller().is_some() || hub_state.plugin.found().is_some();
    match &hub_state.agent_admission {
        refused @ Lookup::Refused(_) => refused.refusal("ValidatingAdmissionPolicyBindings"),
        Lookup::NotFound if !is_installed => Vec::new(),
        Lookup::NotFound => vec![MISSING.finding(&[])],
        Lookup::Found(binding) if denies(binding) => vec![OK.finding(&[])],
        Lookup::Found(_) => vec![NOT_ENFORCED.finding(&[("name", &agent_policy(&hub_state.namespace))])],
    }
}

/// Returns true if the binding of an admission policy denies requests.
pub(crate) fn denies(binding: &Value) -> bool {
    items(&binding["spec"]["validationActions"]).contains(&"Deny".into())
}

/// Returns the name of the admission policy and of its binding.
pub(crate) fn agent_policy(namespace: &str) -> String {
    format!("argocd-ocm-cmp-clusters.{namespace}")
}
