//! argocd-operator, which makes Argo CD and the agent of an ArgoCD resource, for one namespace.

mod rights;

use super::Place;
use super::agent::{CA_FOLDER, watched};
use super::pod::{container, env, field_env, mount, probe, template};
use crate::agent::{names, works};
use serde_json::{Value, json};

/// What it is called, and its ServiceAccount.
const NAME: &str = "argocd-operator";

/// Where it says how it fares.
const HEALTH_PORT: u16 = 8081;

/// It, and the rights of it and of what it makes of the ArgoCD of that name.
pub(super) fn all(place: &Place<'_>, argocd: &str) -> Vec<Value> {
    let mut all = rights::all(place, argocd);
    all.push(works::right());
    all.push(deployment(place, argocd));
    all
}

/// The Deployment. OCM lets it start when the agent's certificate is there, and calls the add-on available when it is ready. There is
/// never a second pod beside the first, so that none needs to lead.
///
/// The agent reads its certificates once, and the operator does not look at them, nor at what is annotated to the agent's Pods.
/// So our program is beside it, which has others started when the certificates have changed.
fn deployment(place: &Place<'_>, argocd: &str) -> Value {
    let mut operator = container(NAME, place.images.operator.as_deref(), ("50m", "128Mi"));
    operator["env"] = settings(place).into();
    operator["ports"] = json!([{"name": "healthz", "containerPort": HEALTH_PORT}]);
    operator["readinessProbe"] = probe("/readyz", HEALTH_PORT, 10);
    operator["livenessProbe"] = probe("/healthz", HEALTH_PORT, 30);
    let mut pod = template(NAME, true, &[], &operator, &[]);
    if let Some(ours) = place.images.ours.as_deref() {
        pod["spec"]["containers"] = json!([operator, restarter(ours, place.namespace, &agent(argocd))]);
        pod["spec"]["volumes"] = json!([{"name": "ca", "secret": {"secretName": names::CA_SECRET}}]);
    }
    super::deployment_of(place, NAME, &pod)
}

/// What the operator calls the agent that it makes of the ArgoCD of that name, and its ServiceAccount.
fn agent(argocd: &str) -> String {
    format!("{argocd}-agent-agent")
}

fn restarter(ours: &str, namespace: &str, agent: &str) -> Value {
    let mut restarter = container("restart", Some(ours), ("10m", "16Mi"));
    let mut command = ["argocd-ocm-cmp", "agent", "restart", agent, "--namespace", namespace]
        .map(str::to_owned)
        .to_vec();
    for file in watched() {
        command.extend(["--when-changed".to_owned(), file]);
    }
    restarter["command"] = command.into();
    restarter["volumeMounts"] = json!([mount("ca", CA_FOLDER)]);
    restarter
}

/// Its environment: where it works, and which images it takes where an ArgoCD does not say.
fn settings(place: &Place<'_>) -> Vec<Value> {
    let images = [
        ("ARGOCD_IMAGE", &place.images.argocd),
        ("ARGOCD_REDIS_IMAGE", &place.images.redis),
        ("ARGOCD_AGENT_IMAGE", &place.images.agent),
    ];
    let mut settings = vec![
        // No other namespace's Secrets are its business.
        field_env("WATCH_NAMESPACE", "metadata.namespace"),
        // The Argo CD there is for the whole cluster.
        field_env("ARGOCD_CLUSTER_CONFIG_NAMESPACES", "metadata.namespace"),
        // Otherwise it gives the application-controller everything in its namespace.
        env("CONTROLLER_CLUSTER_ROLE", rights::CONTROLLER_ROLE),
    ];
    settings.extend(images.map(|(name, image)| env(name, image.as_deref().unwrap_or_default())));
    settings
}
