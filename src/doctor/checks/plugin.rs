//! Checks that the plugin is installed as this version ships it: its ConfigMap, and its container in the repo-server.

use crate::doctor::hub_state::{HubState, Lookup, PLUGIN};
use crate::doctor::message::{Finding, check, list_names};
use crate::embedded::{objects, shipped};
use crate::workload::{containers, item, items, name};
use jiff::Timestamp;
use ocm::image::tag;
use serde_json::Value;

check! {
    "plugin"
    error NO_CONFIG "plugin-config-missing":
        "ConfigMap {namespace}/argocd-ocm-cmp with plugin.yaml does not exist",
        "add it with argocd-ocm-cmp install --features plugin";
    warning OTHER_CONFIG "plugin-config-differs":
        "plugin.yaml in ConfigMap {namespace}/argocd-ocm-cmp differs from version {version}",
        "apply cm_plugin.yaml of that version, and restart the Deployment of the repo-server";
    error NO_SIDECAR "plugin-sidecar-missing":
        "Deployment {deployment} has no container argocd-ocm-cmp",
        "add it with argocd-ocm-cmp install --features plugin";
    error NO_MOUNT "plugin-mount-missing":
        "container argocd-ocm-cmp of Deployment {deployment} does not mount {paths}",
        "restore it with argocd-ocm-cmp install --features plugin";
    warning NO_LIMIT "plugin-memory-unlimited":
        "container argocd-ocm-cmp of Deployment {deployment} has no memory limit, so one Application can use all memory of its node",
        "restore it with argocd-ocm-cmp install --features plugin";
    warning NO_POLICY "plugin-without-policy":
        "container argocd-ocm-cmp of Deployment {deployment} has no policy, so AppProjects may deliver anything but plain Secrets",
        "add one with argocd-ocm-cmp install --features policy, or your own with --policy FILE";
    warning OTHER_VERSION "plugin-version-differs":
        "container argocd-ocm-cmp of Deployment {deployment} runs {image}, but this program is version {version}",
        "run the doctor of that version, or deploy the image of this one";
    ok NOT_NEEDED "plugin-not-needed":
        "the plugin is not installed, and no Application uses it: the controller delivers without it";
    ok OK "plugin":
        "Deployment {deployment} has container argocd-ocm-cmp of version {version}, with its ConfigMap";
}

/// The mount path of the optional tools in deploy_cmp.yaml: kustomize and helm.
const TOOLS: &str = "/usr/local/bin/";
/// The folder of the user's health rules, which a sidecar may lack.
const HEALTH_RULES: &str = "/etc/argocd-ocm-cmp-health";

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    if !hub_state.has_argo_cd() {
        return Vec::new();
    }
    if !hub_state.expects_plugin() {
        return vec![NOT_NEEDED.finding(&[])];
    }
    let (namespace, version) = (&hub_state.namespace, env!("CARGO_PKG_VERSION"));
    let mut findings = match &hub_state.plugin {
        refused @ Lookup::Refused(_) => refused.refusal(&format!("ConfigMap {namespace}/{PLUGIN}")),
        Lookup::NotFound => vec![NO_CONFIG.finding(&[("namespace", namespace)])],
        Lookup::Found(config) if is_ours(config) => Vec::new(),
        Lookup::Found(_) => vec![OTHER_CONFIG.finding(&[("namespace", namespace), ("version", &version)])],
    };
    // Another check reports a missing repo-server.
    let Some(repo_server) = hub_state.repo_server() else {
        return findings;
    };
    let deployment = format!("{namespace}/{}", name(repo_server));
    let Some(sidecar) = hub_state.sidecar() else {
        findings.push(NO_SIDECAR.finding(&[("deployment", &deployment)]));
        return findings;
    };
    let missing = missing_mounts(sidecar);
    if !missing.is_empty() {
        findings.push(NO_MOUNT.finding(&[("deployment", &deployment), ("paths", &list_names(missing))]));
    }
    if sidecar["resources"]["limits"]["memory"].is_null() {
        findings.push(NO_LIMIT.finding(&[("deployment", &deployment)]));
    }
    if item(&sidecar["env"], "ARGOCD_OCM_CMP_POLICY_FILE").is_none() {
        findings.push(NO_POLICY.finding(&[("deployment", &deployment)]));
    }
    let image = sidecar["image"].as_str().unwrap_or_default();
    if !is_of(image, version) {
        findings.push(OTHER_VERSION.finding(&[("deployment", &deployment), ("image", &image), ("version", &version)]));
    }
    OK.if_none(findings, &[("deployment", &deployment), ("version", &version)])
}

/// Returns true if the tag of an image is of this version, or if the image has no tag.
pub(super) fn is_of(image: &str, version: &str) -> bool {
    tag(image).is_none_or(|tag| {
        let tag = tag.strip_prefix('v').unwrap_or(tag);
        // An image may be rebuilt, as 0.1.0-2 or 0.1.0-debug.
        tag.strip_prefix(version)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit() || next == '.'))
    })
}

/// Returns true if plugin.yaml has the content that we ship.
fn is_ours(config_map: &Value) -> bool {
    let text = config_map["data"]["plugin.yaml"].as_str().unwrap_or_default();
    objects(text) == shipped("plugin.yaml")
}

/// Returns the mount paths of deploy_cmp.yaml that this container lacks: neither the path nor a parent folder is mounted.
fn missing_mounts(sidecar: &Value) -> Vec<String> {
    let shipped = shipped("deploy_cmp.yaml");
    let required = shipped.iter().flat_map(containers).flat_map(mount_paths);
    let is_mounted = |path: &str| {
        mount_paths(sidecar).any(|mounted| {
            let rest = path.strip_prefix(mounted.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    required
        .filter(|path| !path.starts_with(TOOLS) && *path != HEALTH_RULES && !is_mounted(path))
        .map(str::to_owned)
        .collect()
}

fn mount_paths(container: &Value) -> impl Iterator<Item = &str> {
    let mounts = items(&container["volumeMounts"]).iter();
    mounts.filter_map(|mount| mount["mountPath"].as_str())
}
