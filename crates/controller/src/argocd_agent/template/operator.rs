//! argocd-operator, which creates Argo CD and the agent from an ArgoCD resource, for one namespace.

mod rights;

use super::agent::{CA_FOLDER, watched};
use super::context::{TemplateContext, deployment_of};
use super::pod::{container, env, field_env, mount, probe, template};
use crate::argocd_agent::works;
use ocm::argocd_agent as names;
use rights::{NAME, agent};
use serde_json::{Value, json};

/// The port of the operator's health endpoint.
const HEALTH_PORT: u16 = 8081;

/// Returns the manifests of the operator, its permissions, and those of the workloads that it creates from the ArgoCD resource of
/// that name.
pub(super) fn all(context: &TemplateContext<'_>, argocd: &str) -> Vec<Value> {
    let mut all = rights::all(context, argocd);
    all.push(works::argocd_permission());
    all.push(deployment(context, argocd));
    all
}

/// Returns the Deployment of the operator. OCM lets it start once the agent's certificate exists, and reports the add-on as
/// available when it is ready. It never has two Pods, so it needs no leader election.
///
/// The agent reads its certificates only at start, and the operator watches neither them nor the annotations of the agent's Pods.
/// So a sidecar with our program restarts the agent's Pods when the certificates change.
fn deployment(context: &TemplateContext<'_>, argocd: &str) -> Value {
    let mut operator = container(NAME, context.images.operator.as_deref(), ("50m", "128Mi"));
    operator["env"] = settings(context).into();
    operator["ports"] = json!([{"name": "healthz", "containerPort": HEALTH_PORT}]);
    operator["readinessProbe"] = probe("/readyz", HEALTH_PORT, 10);
    operator["livenessProbe"] = probe("/healthz", HEALTH_PORT, 30);
    let mut pod = template(NAME, true, &[], &operator, &[]);
    if let Some(ours) = context.images.ours.as_deref() {
        pod["spec"]["containers"] = json!([operator, restarter(ours, context.namespace, &agent(argocd))]);
        pod["spec"]["volumes"] = json!([{"name": "ca", "secret": {"secretName": names::CA_SECRET}}]);
    }
    deployment_of(context, NAME, &pod)
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

/// Returns the environment of the operator: its namespace, and the default images for an ArgoCD resource without images.
fn settings(context: &TemplateContext<'_>) -> Vec<Value> {
    let images = [
        ("ARGOCD_IMAGE", &context.images.argocd),
        ("ARGOCD_REDIS_IMAGE", &context.images.redis),
        ("ARGOCD_AGENT_IMAGE", &context.images.agent),
    ];
    let mut settings = vec![
        // Do not watch Secrets of other namespaces.
        field_env("WATCH_NAMESPACE", "metadata.namespace"),
        // Make the Argo CD in this namespace cluster-scoped.
        field_env("ARGOCD_CLUSTER_CONFIG_NAMESPACES", "metadata.namespace"),
        // Otherwise it gives the application-controller all permissions in its namespace.
        env("CONTROLLER_CLUSTER_ROLE", rights::CONTROLLER_ROLE),
    ];
    settings.extend(images.map(|(name, image)| env(name, image.as_deref().unwrap_or_default())));
    settings
}
