//! Finds out if the hub enforces an admission policy that a command relies on.

use super::install::InstallHub;
use crate::doctor::denies;

pub(super) const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Returns the reason why the hub does not enforce a policy through this binding; `None` if it does.
pub(super) async fn why_unenforced(hub: &InstallHub, policy: &str, binding: &str) -> Result<Option<String>, String> {
    if hub.get(POLICIES, policy).await?.is_none() {
        return Ok(Some(format!("ValidatingAdmissionPolicy {policy} does not exist")));
    }
    Ok(match hub.get(BINDINGS, binding).await? {
        None => Some(format!("ValidatingAdmissionPolicyBinding {binding} does not exist")),
        Some(live) if !(denies(&live) && live["spec"]["policyName"] == policy) => {
            Some(format!("ValidatingAdmissionPolicyBinding {binding} denies nothing"))
        }
        Some(_) => None,
    })
}
