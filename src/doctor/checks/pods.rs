//! Checks that the plugin answers. Its socket is inside the Pod and not visible from outside: visible are the state of its
//! container, and the errors of Applications that do not find it.

use crate::diagnosis::{ProblemCause, problems};
use crate::doctor::hub_state::{HubState, PLUGIN};
use crate::doctor::message::{APPLICATIONS, Finding, PODS, check};
use crate::workload::{item, name};
use jiff::Timestamp;
use manifest::text::count;
use serde_json::Value;

check! {
    "socket"
    warning NO_PODS "socket-no-pods":
        "Deployment {deployment} has no Pods, so the state of the plugin is unknown",
        "see the reason with `kubectl describe` of the Deployment and its ReplicaSet";
    error NOT_IN_PODS "socket-pods-without-plugin":
        "Pods of Deployment {deployment} run without container argocd-ocm-cmp: {names}",
        "wait until its rollout ends, or see its progress with `kubectl rollout status`";
    error NOT_READY "socket-not-ready":
        "container argocd-ocm-cmp is not ready in {names}: {why}",
        "see its log with `kubectl logs` and the options -c argocd-ocm-cmp --previous";
    warning RESTARTED "socket-restarts":
        "container argocd-ocm-cmp restarts repeatedly in {names}",
        "see its log with `kubectl logs` and the options -c argocd-ocm-cmp --previous";
    error NOT_FOUND "socket-not-found":
        "Argo CD does not find the plugin for {applications}: {names}",
        "check that container argocd-ocm-cmp runs in every Pod of the repo-server with plugin.yaml mounted, and that \
         spec.source.plugin.name of the Applications is argocd-ocm-cmp";
    ok OK "socket":
        "container argocd-ocm-cmp is ready in {pods}; the plugin is used by {applications}";
}

/// The number of restarts from which on a finding is reported.
const RESTARTS: u64 = 3;

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let applications = hub_state.applications.items();
    let lost = applications.iter().filter(|application| {
        let mut problems = problems(application, None).into_iter();
        problems.any(|diagnosis| diagnosis.cause == ProblemCause::PluginMissing)
    });
    let lost = lost.map(|application| &application.qualified_name);
    let mut findings: Vec<_> = NOT_FOUND.about(APPLICATIONS, lost, &[]).into_iter().collect();
    // Another check reports a missing sidecar.
    let Some(repo_server) = hub_state.repo_server().filter(|_| hub_state.sidecar().is_some()) else {
        return findings;
    };
    let deployment = format!("{}/{}", hub_state.namespace, name(repo_server));
    let refusal = hub_state
        .pods
        .refusal(&format!("the Pods in namespace {}", hub_state.namespace));
    if !refusal.is_empty() {
        return [findings, refusal].concat();
    }
    let pods = hub_state.pods_of(repo_server).unwrap_or_default();
    if pods.is_empty() {
        findings.push(NO_PODS.finding(&[("deployment", &deployment)]));
        return findings;
    }
    let (with, without): (Vec<&Value>, Vec<&Value>) = pods
        .into_iter()
        .partition(|pod| item(&pod["spec"]["containers"], PLUGIN).is_some());
    let without = without.into_iter().map(name);
    findings.extend(NOT_IN_PODS.about(PODS, without, &[("deployment", &deployment)]));
    let status = |pod: &Value| {
        item(&pod["status"]["containerStatuses"], PLUGIN)
            .cloned()
            .unwrap_or_default()
    };
    let unready: Vec<_> = with.iter().filter(|pod| status(pod)["ready"] != true).collect();
    if let Some(first) = unready.first() {
        let why = reason(&status(first));
        findings.extend(NOT_READY.about(PODS, unready.iter().map(|pod| name(pod)), &[("why", &why)]));
    }
    let restarted = with
        .iter()
        .filter(|pod| status(pod)["restartCount"].as_u64() >= Some(RESTARTS));
    findings.extend(RESTARTED.about(PODS, restarted.map(|pod| name(pod)), &[]));
    let (pods, applications) = (count(with.len(), "pod"), count(applications.len(), "Application"));
    OK.if_none(findings, &[("pods", &pods), ("applications", &applications)])
}

/// Returns the reason why a container is not ready, as Kubernetes words it.
fn reason(status: &Value) -> String {
    let state = &status["state"];
    let words = [&state["waiting"]["reason"], &state["terminated"]["reason"]];
    let word = words.into_iter().find_map(Value::as_str);
    word.unwrap_or("it has not started yet").to_owned()
}
