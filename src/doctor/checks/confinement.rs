//! Checks that the kernel confines helm and kustomize. Only the plugin can test that; it logs missing confinement.

use super::{Check, refused};
use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, Message, list_names};
use jiff::Timestamp;
use std::collections::BTreeSet;

pub(super) static CHECK: Check = Check {
    name: "confinement",
    messages: &[&UNCONFINED],
    run,
};

static UNCONFINED: Message = Message::warning(
    "confinement-missing",
    "charts and kustomizations are refused in {pods}, because the kernel does not confine helm and kustomize, which could reach {reached}",
    "see the reason with `kubectl exec` of `argocd-ocm-cmp confinement` in container argocd-ocm-cmp, and run these Pods where the kernel \
     has Landlock or user namespaces",
);

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    match &hub_state.unconfined {
        Lookup::Refused(why) => refused(&format!("the logs of Pods in namespace {}", hub_state.namespace), why),
        Lookup::NotFound => Vec::new(),
        Lookup::Found(pods) if pods.is_empty() => Vec::new(),
        Lookup::Found(pods) => {
            let reached: BTreeSet<&String> = pods.values().collect();
            vec![UNCONFINED.finding(&[("pods", &list_names(pods.keys())), ("reached", &list_names(reached))])]
        }
    }
}
