//! Checks that the plugin answers. Its socket is inside the Pod and not visible from outside: visible are the state of its
//! container, and the errors of Applications that do not find it.

use super::{Check, refused};
use crate::diagnosis::{ProblemCause, problems};
use crate::doctor::hub_state::{HubState, Lookup, PLUGIN, items, name};
use crate::doctor::message::{Finding, Message, list_names};
use jiff::Timestamp;
use manifest::text::count;
use serde_json::Value;

pub(super) static CHECK: Check = Check {
    name: "socket",
    messages: &[&NO_PODS, &NOT_IN_PODS, &NOT_READY, &RESTARTED, &NOT_FOUND, &OK],
    run,
};

static NO_PODS: Message = Message::warning(
    "socket-no-pods",
    "Deployment {deployment} has no Pods, so the state of the plugin is unknown",
    "see the reason with `kubectl describe` of the Deployment and its ReplicaSet",
);
static NOT_IN_PODS: Message = Message::error(
    "socket-pods-without-plugin",
    "Pods of Deployment {deployment} run without container argocd-ocm-cmp: {names}",
    "wait until its rollout ends, or see its progress with `kubectl rollout status`",
);
static NOT_READY: Message = Message::error(
    "socket-not-ready",
    "container argocd-ocm-cmp is not ready in {names}: {why}",
    "see its log with `kubectl logs` and the options -c argocd-ocm-cmp --previous",
);
static RESTARTED: Message = Message::warning(
    "socket-restarts",
    "container argocd-ocm-cmp restarts repeatedly in {names}",
    "see its log with `kubectl logs` and the options -c argocd-ocm-cmp --previous",
);
static NOT_FOUND: Message = Message::error(
    "socket-not-found",
    "Argo CD does not find the plugin for {applications}: {names}",
    "check that container argocd-ocm-cmp runs in every Pod of the repo-server with plugin.yaml mounted, and that \
     spec.source.plugin.name of the Applications is argocd-ocm-cmp",
);
static OK: Message = Message::ok(
    "socket",
    "container argocd-ocm-cmp is ready in {pods}; the plugin is used by {applications}",
);

/// The number of restarts from which on a finding is reported.
const RESTARTS: u64 = 3;

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let applications = hub_state.applications.found();
    let lost = applications.into_iter().flatten().filter(|application| {
        let mut problems = problems(application, None).into_iter();
        problems.any(|diagnosis| diagnosis.cause == ProblemCause::PluginMissing)
    });
    let lost: Vec<_> = lost.map(|application| &application.qualified_name).collect();
    if !lost.is_empty() {
        let number = count(lost.len(), "Application");
        findings.push(NOT_FOUND.finding(&[("applications", &number), ("names", &list_names(lost))]));
    }
    // Another check reports a missing sidecar.
    let Some(repo_server) = hub_state.repo_server().filter(|_| hub_state.sidecar().is_some()) else {
        return findings;
    };
    let deployment = format!("{}/{}", hub_state.namespace, name(repo_server));
    if let Lookup::Refused(why) = &hub_state.pods {
        findings.extend(refused(&format!("the Pods in namespace {}", hub_state.namespace), why));
        return findings;
    }
    let pods = hub_state.pods_of(repo_server).unwrap_or_default();
    if pods.is_empty() {
        findings.push(NO_PODS.finding(&[("deployment", &deployment)]));
        return findings;
    }
    let (with, without): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
        items(&pod["spec"]["containers"])
            .iter()
            .any(|container| container["name"] == PLUGIN)
    });
    if !without.is_empty() {
        let names = list_names(without.into_iter().copied().map(name));
        findings.push(NOT_IN_PODS.finding(&[("deployment", &deployment), ("names", &names)]));
    }
    let status = |pod: &Value| {
        let mut containers = items(&pod["status"]["containerStatuses"]).iter();
        containers
            .find(|container| container["name"] == PLUGIN)
            .cloned()
            .unwrap_or_default()
    };
    let unready: Vec<_> = with.iter().filter(|pod| status(pod)["ready"] != true).collect();
    if let Some(first) = unready.first() {
        let why = reason(&status(first));
        let names = list_names(unready.iter().map(|pod| name(pod)));
        findings.push(NOT_READY.finding(&[("names", &names), ("why", &why)]));
    }
    let restarted = with
        .iter()
        .filter(|pod| status(pod)["restartCount"].as_u64() >= Some(RESTARTS));
    let restarted: Vec<_> = restarted.map(|pod| name(pod)).collect();
    if !restarted.is_empty() {
        findings.push(RESTARTED.finding(&[("names", &list_names(restarted))]));
    }
    if findings.is_empty() {
        let applications = applications.map_or(0, Vec::len);
        let (pods, applications) = (count(with.len(), "pod"), count(applications, "Application"));
        findings.push(OK.finding(&[("pods", &pods), ("applications", &applications)]));
    }
    findings
}

/// Returns the reason why a container is not ready, as Kubernetes words it.
fn reason(status: &Value) -> String {
    let state = &status["state"];
    let words = [&state["waiting"]["reason"], &state["terminated"]["reason"]];
    let word = words.into_iter().find_map(Value::as_str);
    word.unwrap_or("it has not started yet").to_owned()
}
