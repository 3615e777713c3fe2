//! Whether the kernel confines helm and kustomize. Only the plugin can try that, and it says in its log what is missing.

use super::{Check, refused};
use crate::doctor::message::{Finding, Message, some};
use crate::doctor::seen::{Look, Seen};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;

pub(super) static CHECK: Check = Check {
    name: "confinement",
    messages: &[&UNCONFINED],
    run,
};

static UNCONFINED: Message = Message::warning(
    "confinement-missing",
    "helm and kustomize in {pods} are not confined and can reach {reached}",
    "see why by `kubectl exec` of `argocd-ocm-cmp confinement` in the container argocd-ocm-cmp, and let these pods run where the kernel has \
     Landlock or user namespaces",
);

fn run(seen: &Seen, _: Timestamp) -> Vec<Finding> {
    match &seen.unconfined {
        Look::Refused(why) => refused(&format!("the logs of pods in the namespace {}", seen.namespace), why),
        Look::Absent => Vec::new(),
        Look::There(pods) if pods.is_empty() => Vec::new(),
        Look::There(pods) => {
            let reached: BTreeSet<&String> = pods.values().collect();
            vec![UNCONFINED.of(&[("pods", &some(pods.keys())), ("reached", &some(reached))])]
        }
    }
}
