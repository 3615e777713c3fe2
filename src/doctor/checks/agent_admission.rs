//! Checks that an admission policy limits what the agents of managed clusters may change on the hub.

use super::{Check, refused};
use crate::doctor::hub_state::{HubState, Lookup, items};
use crate::doctor::message::{Finding, Message};
use jiff::Timestamp;

pub(super) static CHECK: Check = Check {
    name: "agent-admission",
    messages: &[&MISSING, &NOT_ENFORCED, &OK],
    run,
};

static MISSING: Message = Message::warning(
    "agent-admission-missing",
    "a managed cluster's agent may change the labels of its ManagedCluster, and all fields of its ManifestWorks",
    "run `argocd-ocm-cmp install --features agent-admission`, which requires Kubernetes 1.30",
);
static NOT_ENFORCED: Message = Message::warning(
    "agent-admission-not-enforced",
    "ValidatingAdmissionPolicyBinding {name} denies nothing",
    "add Deny to its validationActions",
);
static OK: Message = Message::ok(
    "agent-admission",
    "an admission policy limits what the agents of managed clusters may change",
);

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let is_installed = hub_state.controller().is_some() || hub_state.plugin.found().is_some();
    match &hub_state.agent_admission {
        Lookup::Refused(why) => refused("ValidatingAdmissionPolicyBindings", why),
        Lookup::NotFound if !is_installed => Vec::new(),
        Lookup::NotFound => vec![MISSING.finding(&[])],
        Lookup::Found(binding) if items(&binding["spec"]["validationActions"]).contains(&"Deny".into()) => {
            vec![OK.finding(&[])]
        }
        Lookup::Found(_) => vec![NOT_ENFORCED.finding(&[("name", &agent_policy(&hub_state.namespace))])],
    }
}

/// Returns the name of the admission policy and of its binding.
#[must_use]
pub fn agent_policy(namespace: &str) -> String {
    format!("argocd-ocm-cmp-clusters.{namespace}")
}
