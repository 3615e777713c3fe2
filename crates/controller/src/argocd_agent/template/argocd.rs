//! Argo CD without UI and API: the application-controller, the repo-server, and Redis, which both share with the agent.
//!
//! Defaults of Argo CD are not repeated. The cluster's administrator can set some values in the ConfigMap `argocd-cmd-params-cm`,
//! with Argo CD's own keys, and all of `argocd-cm`.

use super::context::{REDIS, REPO_SERVER, STAYS, TemplateContext};
use super::pod::{container, env, given_env, mount, probe, scratch, secret_env, selector, template};
use super::rights;
use crate::argocd_agent::Mode;
use serde_json::{Value, json};

/// The initial ConfigMaps.
pub(super) const CONFIG_MAPS: [&str; 4] = [
    "argocd-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
];

/// The initial AppProject of an Argo CD.
pub(super) const DEFAULT_PROJECT: &str = ocm::pull_model::DEFAULT_PROJECT;

const REDIS_PORT: u16 = 6379;
/// The user of Redis, as in Argo CD's own manifests: the image starts as root.
const REDIS_USER: u32 = 999;
const REPO_SERVER_PORT: u16 = 8081;
const PARAMS: &str = "argocd-cmd-params-cm";

/// The kinds that change all the time and are never in Git: watching them is Argo CD's largest cost on a busy cluster.
const EXCLUSIONS: &str = "\
- apiGroups: ['', discovery.k8s.io, events.k8s.io]
  kinds: [Endpoints, EndpointSlice, Event]
- apiGroups: [coordination.k8s.io]
  kinds: [Lease]
- apiGroups: [authentication.k8s.io, authorization.k8s.io, certificates.k8s.io, metrics.k8s.io]
  kinds: ['*']
";

/// Returns the ConfigMaps, Services, NetworkPolicies and workloads.
pub(super) fn all(context: &TemplateContext<'_>) -> Vec<Value> {
    let mut all: Vec<Value> = CONFIG_MAPS.map(|name| config_map(context, name)).into();
    all.push(service(context, REDIS, REDIS_PORT));
    all.push(service(context, REPO_SERVER, REPO_SERVER_PORT));
    let (controller, agent) = (rights::CONTROLLER, rights::AGENT);
    all.push(wall(context, REDIS, REDIS_PORT, &[controller, REPO_SERVER, agent]));
    all.push(wall(context, REPO_SERVER, REPO_SERVER_PORT, &[controller]));
    all.extend([redis(context), repo_server(context), application_controller(context)]);
    all
}

/// Returns the AppProject `default` as argocd-server, which is not installed here, would create it, and the permission of OCM's
/// agent to apply it. With [`Mode::Managed`] the agent receives the hub's AppProjects with its Applications.
pub(super) fn default_project(context: &TemplateContext<'_>) -> [Value; 2] {
    let mut metadata = context.metadata(DEFAULT_PROJECT);
    metadata["annotations"] = json!({STAYS: ""});
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": metadata,
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    [rights::of_ocm(), project]
}

fn config_map(context: &TemplateContext<'_>, name: &str) -> Value {
    let mut metadata = context.metadata(name);
    // Argo CD reads only ConfigMaps with this label.
    metadata["labels"]["app.kubernetes.io/part-of"] = "argocd".into();
    let mut config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    if name == CONFIG_MAPS[0] {
        config_map["data"] = json!({
            // Skip kinds that Argo CD may not list, instead of failing completely.
            "resource.respectRBAC": "strict",
            "resource.exclusions": EXCLUSIONS,
        });
    }
    config_map
}

fn service(context: &TemplateContext<'_>, name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(name),
        "spec": {
            "selector": selector(name),
            "ports": [{"name": "server", "port": port, "protocol": "TCP", "targetPort": port}],
        },
    })
}

/// Returns a NetworkPolicy that lets only the Pods with these names connect to a port.
fn wall(context: &TemplateContext<'_>, name: &str, port: u16, from: &[&str]) -> Value {
    let from: Vec<Value> = from
        .iter()
        .map(|name| json!({"podSelector": {"matchLabels": selector(name)}}))
        .collect();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(name),
        "spec": {
            "podSelector": {"matchLabels": selector(name)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": from, "ports": [{"port": port, "protocol": "TCP"}]}],
        },
    })
}

fn stateful_set(context: &TemplateContext<'_>, name: &str, template: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": context.metadata(name),
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": selector(name)},
            "template": template,
        },
    })
}

/// Returns the environment variable with the password of Redis.
pub(super) fn redis_password() -> Value {
    secret_env("REDIS_PASSWORD", REDIS, "auth")
}

fn redis(context: &TemplateContext<'_>) -> Value {
    let mut redis = container("redis", context.images.redis.as_deref(), ("20m", "32Mi"));
    redis["args"] = json!(["--save", "", "--appendonly", "no", "--requirepass", "$(REDIS_PASSWORD)"]);
    redis["env"] = json!([redis_password()]);
    redis["ports"] = json!([{"containerPort": REDIS_PORT}]);
    redis["readinessProbe"] = json!({"tcpSocket": {"port": REDIS_PORT}, "periodSeconds": 10});
    redis["volumeMounts"] = json!([mount("data", "/data")]);
    redis["securityContext"]["runAsUser"] = REDIS_USER.into();
    stateful_set(context, REDIS, &template(REDIS, false, &[], &redis, &[scratch("data")]))
}

fn repo_server(context: &TemplateContext<'_>) -> Value {
    let mut server = container(REPO_SERVER, context.images.argocd.as_deref(), ("50m", "128Mi"));
    server["args"] = json!(["/usr/local/bin/argocd-repo-server"]);
    let mut settings = vec![redis_password()];
    // Helm writes to these directories only, and the root file system is read-only.
    settings
        .extend(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| env(name, "/helm-working-dir")));
    settings.extend(
        [
            ("ARGOCD_REPO_SERVER_LOGLEVEL", PARAMS, "reposerver.log.level"),
            (
                "ARGOCD_REPO_SERVER_PARALLELISM_LIMIT",
                PARAMS,
                "reposerver.parallelism.limit",
            ),
            ("ARGOCD_GIT_MODULES_ENABLED", PARAMS, "reposerver.enable.git.submodule"),
        ]
        .map(given_env),
    );
    server["env"] = settings.into();
    server["ports"] = json!([{"containerPort": REPO_SERVER_PORT}]);
    server["readinessProbe"] = probe("/healthz", 8084, 10);
    server["livenessProbe"] = probe("/healthz?full=true", 8084, 30);
    server["livenessProbe"]["initialDelaySeconds"] = 30.into();
    let scratches = [
        ("gpg-keyring", "/app/config/gpg/keys"),
        ("helm", "/helm-working-dir"),
        ("plugins", "/home/argocd/cmp-server/plugins"),
        ("tmp", "/tmp"),
    ];
    let configs = [
        ("argocd-ssh-known-hosts-cm", "/app/config/ssh"),
        ("argocd-tls-certs-cm", "/app/config/tls"),
        ("argocd-gpg-keys-cm", "/app/config/gpg/source"),
    ];
    let mounts = configs.iter().chain(&scratches);
    server["volumeMounts"] = mounts.map(|(volume, path)| mount(volume, path)).collect();
    let mut volumes: Vec<Value> = configs
        .map(|(name, _)| json!({"name": name, "configMap": {"name": name}}))
        .into();
    volumes.extend(scratches.map(|(volume, _)| scratch(volume)));
    stateful_set(
        context,
        REPO_SERVER,
        &template(REPO_SERVER, false, &[], &server, &volumes),
    )
}

fn application_controller(context: &TemplateContext<'_>) -> Value {
    const HOME: &str = "/home/argocd";
    let name = rights::CONTROLLER;
    let mut controller = container(name, context.images.argocd.as_deref(), ("100m", "256Mi"));
    controller["args"] = json!(["/usr/local/bin/argocd-application-controller"]);
    controller["workingDir"] = HOME.into();
    let mut settings = vec![redis_password(), env("KUBECACHEDIR", "/tmp/kubecache")];
    if context.mode == Mode::Managed {
        // Applications keep their namespaces from the hub; the agent decides which ones it accepts.
        settings.push(env("ARGOCD_APPLICATION_NAMESPACES", "*"));
    }
    settings.extend(
        [
            ("ARGOCD_RECONCILIATION_TIMEOUT", "argocd-cm", "timeout.reconciliation"),
            ("ARGOCD_APPLICATION_CONTROLLER_LOGLEVEL", PARAMS, "controller.log.level"),
            (
                "ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS",
                PARAMS,
                "controller.status.processors",
            ),
            (
                "ARGOCD_APPLICATION_CONTROLLER_OPERATION_PROCESSORS",
                PARAMS,
                "controller.operation.processors",
            ),
        ]
        .map(given_env),
    );
    controller["env"] = settings.into();
    controller["ports"] = json!([{"containerPort": 8082}]);
    controller["readinessProbe"] = probe("/healthz", 8082, 10);
    controller["volumeMounts"] = json!([mount("home", HOME), mount("tmp", "/tmp")]);
    let volumes = [scratch("home"), scratch("tmp")];
    stateful_set(context, name, &template(name, true, &[], &controller, &volumes))
}
