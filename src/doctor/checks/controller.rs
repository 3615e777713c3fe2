//! Checks that the controller runs, and has what its enabled controllers need.

use super::plugin::is_of;
use crate::doctor::controller::ControllerPod;
use crate::doctor::hub_state::{GRACE, HubState};
use crate::doctor::message::{Finding, check};
use crate::workload::named;
use controller::LEASE;
use jiff::{SignedDuration, Timestamp};
use ocm::hold::renewed_at;
use ocm::resources::{GITOPS_CLUSTERS, REPORTS};
use serde_json::Value;

check! {
    "controller"
    warning NOT_INSTALLED "controller-missing":
        "Deployment {namespace}/argocd-ocm-cmp-controller does not exist, so Applications do not show what is wrong with their works",
        "install it with argocd-ocm-cmp install --features controller; the plugin also works without it";
    error UNKNOWN "controller-unknown-controllers":
        "unknown controllers in ARGOCD_OCM_CMP_CONTROLLERS, so the controller does not start: {names}",
        "use names that `argocd-ocm-cmp controller --help` lists";
    error NO_CRD "controller-crd-missing":
        "controller {controller} is enabled, but the hub does not serve {kind}",
        "apply {file} with kubectl apply --server-side";
    warning NO_PODS "controller-no-pods":
        "Deployment {namespace}/argocd-ocm-cmp-controller has no Pods",
        "see the reason with `kubectl describe` of the Deployment and its ReplicaSet";
    error NOT_READY "controller-not-ready":
        "no Pod of Deployment {namespace}/argocd-ocm-cmp-controller is ready",
        "see their logs with `kubectl logs`";
    warning SOME_READY "controller-some-not-ready":
        "{ready} of {wanted} Pods of Deployment {namespace}/argocd-ocm-cmp-controller are ready",
        "see the logs of the others with `kubectl logs`";
    error NO_LEASE "controller-lease-missing":
        "no replica holds Lease {namespace}/argocd-ocm-cmp-controller, so the controller is idle",
        "check that its Pods run, and may write Leases there";
    error NOT_RENEWED "controller-lease-not-renewed":
        "the holder of Lease {namespace}/argocd-ocm-cmp-controller does not renew it, so the controller is idle",
        "check that its Pods run, and that the clocks of the hub's nodes and of this machine agree";
    warning OTHER_VERSION "controller-version-differs":
        "the controller runs {image}, but this program is version {version}",
        "run the doctor of that version, or deploy the image of this one";
    ok OK "controller":
        "enabled controllers: {names}";
}

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    if !hub_state.has_argo_cd() {
        return Vec::new();
    }
    let namespace = &hub_state.namespace;
    // Another check reports Deployments that cannot be read.
    let Some(deployment) = hub_state.controller() else {
        let is_missing = hub_state.deployments.found().is_some();
        return is_missing
            .then(|| NOT_INSTALLED.finding(&[("namespace", namespace)]))
            .into_iter()
            .collect();
    };
    let Some(pod) = ControllerPod::from_state(hub_state) else {
        return Vec::new();
    };
    let what = format!("ConfigMap {namespace}/argocd-ocm-cmp-controller");
    let mut findings = hub_state.settings.refusal(&what);
    findings.extend(UNKNOWN.about(("controllers", "controller"), &pod.unknown, &[]));
    for (controller, resource, file) in [
        ("application-set-report", &REPORTS, "deploy/report_crd.yaml"),
        ("gitopscluster", &GITOPS_CLUSTERS, "deploy/gitopscluster_crd.yaml"),
        ("argocd-agent", &GITOPS_CLUSTERS, "deploy/gitopscluster_crd.yaml"),
    ] {
        if pod.is_enabled(controller) && hub_state.serves(resource) == Some(false) {
            findings.push(NO_CRD.finding(&[("controller", &controller), ("kind", &resource.kind), ("file", &file)]));
        }
    }
    findings.extend(pods(hub_state, deployment));
    if pod.elects {
        findings.extend(lease(hub_state, now));
    }
    let version = env!("CARGO_PKG_VERSION");
    if !is_of(&pod.image, version) {
        findings.push(OTHER_VERSION.finding(&[("image", &pod.image), ("version", &version)]));
    }
    OK.if_none(findings, &[("names", &pod.names().join(", "))])
}

/// Checks that its Pods are ready.
fn pods(hub_state: &HubState, deployment: &Value) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let refusal = hub_state.pods.refusal(&format!("the Pods in namespace {namespace}"));
    if !refusal.is_empty() {
        return refusal;
    }
    let pods = hub_state.pods_of(deployment).unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let ready = deployment["status"]["readyReplicas"].as_u64().unwrap_or_default();
    let finding = match (pods.len(), ready) {
        (0, _) => NO_PODS.finding(&[("namespace", namespace)]),
        (_, 0) => NOT_READY.finding(&[("namespace", namespace)]),
        (_, ready) if ready < wanted => {
            SOME_READY.finding(&[("ready", &ready), ("wanted", &wanted), ("namespace", namespace)])
        }
        _ => return Vec::new(),
    };
    vec![finding]
}

/// Reports a Lease without a holder, or one that its holder does not renew.
fn lease(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let refusal = hub_state
        .leases
        .refusal(&format!("the Leases in namespace {namespace}"));
    if !refusal.is_empty() {
        return refusal;
    }
    let is_held = |lease: &&Value| !lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty();
    let lease = hub_state.leases.found().and_then(|all| named(all, LEASE));
    match lease.filter(is_held) {
        None => vec![NO_LEASE.finding(&[("namespace", namespace)])],
        Some(lease) if !is_renewed(lease, now) => vec![NOT_RENEWED.finding(&[("namespace", namespace)])],
        Some(_) => Vec::new(),
    }
}

/// Returns true if the holder of a Lease renews it.
pub(crate) fn is_renewed(lease: &Value, now: Timestamp) -> bool {
    let lasts = SignedDuration::from_secs(lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or_default());
    renewed_at(lease).is_some_and(|at| now.duration_since(at) <= lasts.saturating_add(GRACE))
}
