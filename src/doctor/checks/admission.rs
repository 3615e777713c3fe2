//! Checks that the hub enforces the admission policies of this version, which limit the controller and the agents of managed clusters.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, Message, check, list_names};
use crate::install::{admission_policies, maps_by_destination};
use crate::workload::{items, named};
use controller::controllers::AGENTS;
use jiff::Timestamp;
use serde_json::{Map, Value};

check! {
    "admission"
    warning NOT_SERVED "admission-not-served":
        "the hub has no ValidatingAdmissionPolicies, so only roles limit the controller and the agents of managed clusters",
        "upgrade it to Kubernetes 1.30, and install again";
    error MISSING "admission-missing":
        "admission policies of feature {feature} do not exist: {names}",
        "run `argocd-ocm-cmp install --features {feature}`, or upgrade the Helm release";
    error NOT_ENFORCED "admission-not-enforced":
        "bindings of feature {feature} do not deny with their policy: {names}",
        "run `argocd-ocm-cmp install --features {feature}`, or upgrade the Helm release";
    warning DIFFERS "admission-differs":
        "admission policies of feature {feature} differ from those of this version: {names}",
        "run `argocd-ocm-cmp install --features {feature}`, or upgrade the Helm release";
    warning AGENTS_MISSING "agent-admission-missing":
        "a managed cluster's agent may change the labels of its ManagedCluster, and all fields of its ManifestWorks",
        "run `argocd-ocm-cmp install --features agent-admission`, which requires Kubernetes 1.30";
    ok OK "admission":
        "the hub enforces the admission policies of this version";
}

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let has_controller = hub_state.controller().is_some();
    let params = hub_state.agent_params.found();
    let needs_limits =
        hub_state.is_enabled(AGENTS) && hub_state.principals().any(|live| maps_by_destination(live, params));
    let is_installed = has_controller || hub_state.plugin.found().is_some();
    let (policies, bindings) = match (&hub_state.policies, &hub_state.bindings) {
        (Lookup::Found(policies), Lookup::Found(bindings)) => (policies, bindings),
        (Lookup::NotFound, Lookup::NotFound) if is_installed => return vec![NOT_SERVED.finding(&[])],
        (policies, bindings) => {
            let mut findings = policies.refusal("ValidatingAdmissionPolicies");
            findings.extend(bindings.refusal("ValidatingAdmissionPolicyBindings"));
            return findings;
        }
    };
    // An administrator may leave out holds and the limits on agents.
    let files = [
        ("plugin", "deploy/plugin_sources.yaml", hub_state.sidecar().is_some()),
        ("controller", "deploy/admission_policy.yaml", has_controller),
        ("controller", "deploy/holds.yaml", false),
        ("agent-admission", "deploy/agent_admission.yaml", false),
        ("argocd-agent", "deploy/principal_admission.yaml", needs_limits),
        ("live", "deploy/live_admission.yaml", hub_state.has_live()),
    ];
    let mut findings = Vec::new();
    for (feature, file, is_required) in files {
        let shipped = admission_policies(file, &hub_state.namespace);
        let pairs = shipped.iter().map(|object| {
            let all = if is_binding(&object.value) { bindings } else { policies };
            (object, named(all, object.name()))
        });
        let pairs: Vec<_> = pairs.collect();
        if !is_required && pairs.iter().all(|(_, live)| live.is_none()) {
            let is_missed = is_installed && feature == "agent-admission";
            findings.extend(is_missed.then(|| AGENTS_MISSING.finding(&[])));
            continue;
        }
        let problems = pairs.iter().filter_map(|(object, live)| {
            let problem = problem(*live, &object.value)?;
            Some((problem.id, format!("{} {}", object.kind(), object.name())))
        });
        let problems: Vec<_> = problems.collect();
        for message in [&MISSING, &NOT_ENFORCED, &DIFFERS] {
            let of_message = problems.iter().filter(|(id, _)| *id == message.id);
            let names: Vec<_> = of_message.map(|(_, name)| name).collect();
            if !names.is_empty() {
                findings.push(message.finding(&[("feature", &feature), ("names", &list_names(names))]));
            }
        }
    }
    if findings.is_empty() && is_installed {
        findings.push(OK.finding(&[]));
    }
    findings
}

/// Returns the message about a live policy or binding that has another effect than the shipped one, or none.
fn problem(live: Option<&Value>, shipped: &Value) -> Option<&'static Message> {
    let Some(live) = live else { return Some(&MISSING) };
    let (live_spec, spec) = (&live["spec"], &shipped["spec"]);
    if is_binding(shipped) && !(denies(live) && live_spec["policyName"] == spec["policyName"]) {
        return Some(&NOT_ENFORCED);
    }
    (!is_as_shipped(live_spec, spec)).then_some(&DIFFERS)
}

fn is_binding(object: &Value) -> bool {
    object["spec"]["policyName"].is_string()
}

/// Returns true if the binding of an admission policy denies requests.
pub(crate) fn denies(binding: &Value) -> bool {
    items(&binding["spec"]["validationActions"]).contains(&"Deny".into())
}

/// Returns true if a live value is the shipped one with defaults of the API server. Any other addition may narrow it.
fn is_as_shipped(live: &Value, shipped: &Value) -> bool {
    match (live, shipped) {
        (Value::Object(live), Value::Object(shipped)) => {
            let has = |(key, value)| live.get(key).is_some_and(|live| is_as_shipped(live, value));
            shipped.iter().all(has)
                && live
                    .iter()
                    .all(|(key, value)| shipped.contains_key(key) || is_default(key, value))
        }
        (Value::Array(live), Value::Array(shipped)) => {
            live.len() == shipped.len()
                && live
                    .iter()
                    .zip(shipped)
                    .all(|(live, shipped)| is_as_shipped(live, shipped))
        }
        _ => live == shipped,
    }
}

/// Returns true if the API server adds this field. An empty selector selects everything.
fn is_default(key: &str, value: &Value) -> bool {
    match key {
        "namespaceSelector" | "objectSelector" => value.as_object().is_some_and(Map::is_empty),
        "matchPolicy" => value == "Equivalent",
        "scope" => value == "*",
        _ => false,
    }
}
