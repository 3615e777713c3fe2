//! Checks that there is an Argo CD, and that its version can run the plugin.

use crate::doctor::hub_state::{HubState, Lookup};
use crate::doctor::message::{Finding, check, list_names};
use crate::install::{ArgoCd, CMD_PARAMS, find_redis_proxy};
use crate::workload::{arguments, containers, is_ready, name};
use jiff::Timestamp;
use ocm::image::tag;
use serde_json::Value;

check! {
    "argo-cd"
    error NO_ARGO_CD "argo-cd-nowhere":
        "no namespace of the hub has Argo CD",
        "install it, or choose another hub with --context";
    error OTHER_NAMESPACE "argo-cd-elsewhere":
        "namespace {namespace} has no Argo CD: it has no ConfigMap argocd-cm",
        "pass the namespace of Argo CD with --namespace: {others}";
    error NO_REPO_SERVER "argo-cd-without-repo-server":
        "namespace {namespace} has ConfigMap argocd-cm, but no Deployment argocd-repo-server",
        "finish the installation of Argo CD, or pass another namespace with --namespace";
    error TOO_OLD "argo-cd-too-old":
        "Argo CD {version} does not run plugins in sidecars",
        "upgrade it to 3.0 or newer";
    warning OLD "argo-cd-old":
        "Argo CD {version} is not tested, and does not pass the AppProject to plugins, which a policy needs",
        "upgrade it to 3.0 or newer";
    warning NO_VERSION "argo-cd-version-unknown":
        "unknown version of Argo CD, image {image}",
        "check with `argocd version` that it is 3.0 or newer";
    error WITHOUT_TLS "argo-cd-repo-server-without-tls":
        "Argo CD {version}'s repo-server does not start with --disable-tls",
        "remove --disable-tls, or add --client-ca-path= to the arguments of Deployment argocd-repo-server";
    error NOT_READY "argo-cd-controller-not-ready":
        "{ready} of {replicas} Pods of {workload} are ready, and a single Pod compares and syncs all Applications of the plugin",
        "see its Events and those of its Pods with `kubectl describe`, and their logs with `kubectl logs`";
    error NOT_MOUNTED "argo-cd-mount-missing":
        "Deployment {deployment} mounts ConfigMap {config_map}, which does not exist, so its next Pod does not start",
        "install again, or if the feature was removed from a Helm release, run argocd-ocm-cmp install --additions-only with its other features";
    error NO_REDIS "argo-cd-redis-missing":
        "Argo CD's Redis is {redis}, but no principal of argocd-agent is ready, so Argo CD has no Redis",
        "create a GitOpsCluster that requests agents, or see the Pod of Deployment {namespace}/argocd-agent-principal with `kubectl describe`; \
         without argocd-agent, set redis.server in ConfigMap argocd-cmd-params-cm to Argo CD's Redis, and restart Argo CD";
    ok NOT_NEEDED "argo-cd-repo-server-not-needed":
        "namespace {namespace} has Argo CD without a repo-server, which only the plugin needs";
    ok OK "argo-cd":
        "Argo CD {version} runs in namespace {namespace}";
}

/// The first version of Argo CD with sidecars, and with all output that the program reads.
const MIN_VERSION: (u32, u32) = (2, 4);
const MIN_TESTED_VERSION: (u32, u32) = (3, 0);
/// The first version whose repo-server looks for an authority of its clients by default, which it rejects without TLS.
const CLIENT_CA_VERSION: (u32, u32) = (3, 6);

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    match &hub_state.config {
        refused @ Lookup::Refused(_) => {
            return refused.refusal(&format!("ConfigMap argocd-cm in namespace {namespace}"));
        }
        Lookup::NotFound => {
            return match &hub_state.argocd_namespaces {
                Lookup::Found(others) if !others.is_empty() => {
                    vec![OTHER_NAMESPACE.finding(&[("namespace", namespace), ("others", &list_names(others))])]
                }
                refused @ Lookup::Refused(_) => refused.refusal("the ConfigMaps argocd-cm of all namespaces"),
                _ => vec![NO_ARGO_CD.finding(&[])],
            };
        }
        Lookup::Found(_) => {}
    }
    let refusal = hub_state
        .deployments
        .refusal(&format!("the Deployments in namespace {namespace}"));
    if !refusal.is_empty() {
        return refusal;
    }
    let Some(repo_server) = hub_state.repo_server() else {
        if !hub_state.expects_plugin() {
            return vec![NOT_NEEDED.finding(&[("namespace", namespace)])];
        }
        return vec![NO_REPO_SERVER.finding(&[("namespace", namespace)])];
    };
    let missing = hub_state.missing_mounts.iter().map(|(deployment, config_map)| {
        NOT_MOUNTED.finding(&[
            ("deployment", &format!("{namespace}/{deployment}")),
            ("config_map", &format!("{namespace}/{config_map}")),
        ])
    });
    let mut findings: Vec<_> = missing.collect();
    if let Some(workload) = hub_state.application_controller() {
        // Each Pod serves the Applications of some destination clusters, and those of the plugin have the same one: the hub.
        let [replicas, ready] = ["/spec/replicas", "/status/readyReplicas"]
            .map(|path| workload.pointer(path).and_then(Value::as_u64).unwrap_or_default());
        // Kubernetes has not looked at a workload without it.
        let is_observed = workload["status"]["observedGeneration"].is_u64();
        // On the hub of argocd-agent, it may be scaled down.
        if is_observed && ready < replicas {
            let workload = format!("{namespace}/{}", name(workload));
            findings.push(NOT_READY.finding(&[("ready", &ready), ("replicas", &replicas), ("workload", &workload)]));
        }
    }
    findings.extend(
        hub_state
            .cmd_params
            .refusal(&format!("ConfigMap {namespace}/{CMD_PARAMS}")),
    );
    let redis = hub_state.cmd_params.found().and_then(find_redis_proxy);
    if let Some(redis) = redis.filter(|_| !hub_state.principals().any(is_ready)) {
        findings.push(NO_REDIS.finding(&[("redis", &redis), ("namespace", namespace)]));
    }
    let image = ArgoCd::among(hub_state.deployments.items()).image.unwrap_or_default();
    findings.push(match version(repo_server, &image) {
        None => NO_VERSION.finding(&[("image", &image)]),
        Some((text, number)) => {
            let values: [(&str, &dyn std::fmt::Display); 2] = [("version", &text), ("namespace", namespace)];
            match number {
                old if old < MIN_VERSION => TOO_OLD.finding(&values),
                old if old < MIN_TESTED_VERSION => OLD.finding(&values),
                new if new >= CLIENT_CA_VERSION && is_without_tls(repo_server) => WITHOUT_TLS.finding(&values),
                _ => OK.finding(&values),
            }
        }
    });
    findings
}

/// Returns true if an argument disables TLS, and none removes the authority of clients.
fn is_without_tls(repo_server: &Value) -> bool {
    let arguments: Vec<&str> = containers(repo_server).iter().flat_map(arguments).collect();
    arguments
        .iter()
        .any(|argument| ["--disable-tls", "--disable-tls=true"].contains(argument))
        && !arguments.contains(&"--client-ca-path=")
}

/// Returns the version from the image's tag, or from the label of a chart.
fn version<'v>(repo_server: &'v Value, image: &'v str) -> Option<(&'v str, (u32, u32))> {
    let label = &repo_server["metadata"]["labels"]["app.kubernetes.io/version"];
    let texts = [tag(image), label.as_str()];
    texts.into_iter().flatten().find_map(|text| Some((text, number(text)?)))
}

fn number(version: &str) -> Option<(u32, u32)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let mut parts = version.split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_versions_from_image_tags() {
        for (image, expected) in [
            ("quay.io/argoproj/argocd:v3.2.6", Some((3, 2))),
            ("host:5000/argocd:2.14.1-rc1", Some((2, 14))),
            ("quay.io/argoproj/argocd:v3.1.0@sha256:ab", Some((3, 1))),
            ("quay.io/argoproj/argocd@sha256:ab", None),
            ("host:5000/argocd", None),
            ("argocd:latest", None),
        ] {
            let number = version(&Value::Null, image).map(|(_, number)| number);
            assert_eq!(number, expected, "{image}");
        }
    }
}
