//! The Deployment of argocd-agent.

use super::argocd::redis_password;
use super::context::{TemplateContext, deployment_of};
use super::pod::{container, env, field_env, given_env, mount, probe, scratch, template};
use super::rights;
use crate::argocd_agent::{HEARTBEAT, Mode};
use ocm::argocd_agent as names;
use serde_json::{Value, json};

/// The port of the agent's health endpoint, which reports whether it is connected.
const HEALTH_PORT: u16 = 8001;

/// The directory with the CA certificates that the agent trusts.
pub(super) const CA_FOLDER: &str = "/etc/argocd-agent/ca";

/// The directory with our program.
const OURS_FOLDER: &str = "/supervisor";

/// The volume of our program.
const OURS_VOLUME: &str = "supervisor";

/// Returns the Deployment. It never has two Pods: the principal accepts one connection per agent.
pub(super) fn deployment(context: &TemplateContext<'_>) -> Value {
    let name = rights::AGENT;
    let mut agent = container(name, context.images.agent.as_deref(), ("50m", "128Mi"));
    agent["env"] = settings(context).into();
    agent["ports"] = json!([{"name": "healthz", "containerPort": HEALTH_PORT}]);
    // No liveness probe: the endpoint fails while the hub is unreachable, and a new Pod would not help.
    agent["readinessProbe"] = probe("/healthz", HEALTH_PORT, 10);
    let mut mounts = vec![mount("ca", CA_FOLDER)];
    let mut volumes = vec![json!({"name": "ca", "secret": {"secretName": names::CA_SECRET}})];
    let mut init = Vec::new();
    if let Some(ours) = context.images.ours.as_deref() {
        agent["command"] = supervised();
        mounts.push(mount(OURS_VOLUME, OURS_FOLDER));
        volumes.push(scratch(OURS_VOLUME));
        init = self::init(ours, context.namespace);
    } else {
        agent["args"] = json!(["agent"]);
    }
    agent["volumeMounts"] = mounts.into();
    deployment_of(context, name, &template(name, true, &init, &agent, &volumes))
}

/// Returns the command that runs the agent under our program, which restarts it when the certificates change: the agent reads
/// them only at start.
fn supervised() -> Value {
    let ours = format!("{OURS_FOLDER}/argocd-ocm-cmp");
    let mut command = vec![ours, "agent".to_owned(), "run".to_owned()];
    for file in watched() {
        command.extend(["--when-changed".to_owned(), file]);
    }
    command.extend(["--", "/bin/argocd-agent", "agent"].map(str::to_owned));
    command.into()
}

/// Returns the paths of the certificate files.
pub(super) fn watched() -> [String; 3] {
    let [certificate, key] = client();
    [certificate, key, ca()]
}

/// Returns the paths of the agent's certificate and key.
fn client() -> [String; 2] {
    ["tls.crt", "tls.key"].map(|file| format!("{}/{file}", names::CLIENT_FOLDER))
}

/// Returns the path of the CA certificates that the agent trusts.
fn ca() -> String {
    format!("{CA_FOLDER}/ca.crt")
}

/// Returns the init containers: one copies our program to a directory of the agent's container, the other creates the Secrets
/// that Argo CD needs, on the managed cluster, so that no other cluster knows them.
fn init(ours: &str, namespace: &str) -> Vec<Value> {
    let step = |name: &str, args: &[&str]| {
        let mut step = container(name, Some(ours), ("10m", "16Mi"));
        step["command"] = json!([&["argocd-ocm-cmp", "agent"], args].concat());
        step
    };
    let mut install = step("install", &["install", OURS_FOLDER]);
    install["volumeMounts"] = json!([mount(OURS_VOLUME, OURS_FOLDER)]);
    vec![install, step("prepare", &["prepare", "--namespace", namespace])]
}

/// Returns the environment. The agent logs an invalid environment variable and continues with the default.
fn settings(context: &TemplateContext<'_>) -> Vec<Value> {
    let [certificate, key] = client();
    let mut settings = vec![
        env("ARGOCD_AGENT_REMOTE_SERVER", "{{PRINCIPAL_ADDRESS}}"),
        env("ARGOCD_AGENT_REMOTE_PORT", "{{PRINCIPAL_PORT}}"),
        env("ARGOCD_AGENT_MODE", context.mode.name()),
        field_env("ARGOCD_AGENT_NAMESPACE", "metadata.namespace"),
        // Only the principal uses the text after the colon.
        env("ARGOCD_AGENT_CREDS", "mtls:client-certificate"),
        env("ARGOCD_AGENT_TLS_CLIENT_CERT_PATH", &certificate),
        env("ARGOCD_AGENT_TLS_CLIENT_KEY_PATH", &key),
        env("ARGOCD_AGENT_TLS_ROOT_CA_PATH", &ca()),
        env("ARGOCD_AGENT_HEALTH_CHECK_PORT", &HEALTH_PORT.to_string()),
        env(HEARTBEAT.0, HEARTBEAT.1),
        redis_password(),
        given_env(("ARGOCD_AGENT_LOG_LEVEL", "argocd-agent-params", "agent.log.level")),
    ];
    if context.mode == Mode::Managed {
        // Red Hat ACM's and argocd-pull-integration's principals use this mapping, and both sides must. An autonomous agent does
        // not start with it.
        settings.extend([
            env("ARGOCD_AGENT_DESTINATION_BASED_MAPPING", "true"),
            env("ARGOCD_AGENT_CREATE_NAMESPACE", "true"),
            env("ARGOCD_AGENT_ALLOWED_NAMESPACES", "*"),
        ]);
    }
    settings
}
