//! Applies flags to our files.

use super::argo_cd::containers_mut;
use super::object::items_mut;
use super::{
    AGENT_IMAGE, ARGOCD_IMAGE, Feature, IMAGE, InstallImages, InstallOptions, LIVE, POLICY, POLICY_KEY, PolicySource,
    SHIPPED_NAMESPACE, ShippedObject, name_of,
};
use crate::embedded;
use controller::LEASE;
use hub_state::pull::Dialect;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The name of the controller's Deployment and of the ConfigMap with its settings, which is also the name of its Lease.
pub const CONTROLLER: &str = LEASE;

/// The add-on with Argo CD, which is also the name of its ClusterManagementAddOn, and the name of its AddOnTemplate in our file.
const ARGOCD_ADDON: &str = ocm::pull_model::ADDON;
const ARGOCD_ADDON_TEMPLATE: &str = "argocd-addon";

/// The setting with the enabled controllers. Each file sets it as if it were the only one.
pub(super) const CONTROLLERS: &str = "ARGOCD_OCM_CMP_CONTROLLERS";

/// The setting with the conventions of the pull model.
pub(super) const DIALECT: &str = "ARGOCD_OCM_CMP_PULL_DIALECT";

/// The start of the names of our settings.
const PREFIX: &str = "ARGOCD_OCM_CMP_";

/// Returns the settings of the administrator in a live ConfigMap.
pub(super) fn others(live: Option<&Value>) -> Vec<(String, String)> {
    let data = live.and_then(|live| live["data"].as_object()).into_iter().flatten();
    let is_other = |name: &str| name.starts_with(PREFIX) && ![CONTROLLERS, DIALECT].contains(&name);
    data.filter(|(name, _)| is_other(name))
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Applies the options to this object.
pub(super) fn set(object: &mut ShippedObject, options: &InstallOptions, features: &BTreeSet<Feature>) {
    let (kind, name) = (object.kind().to_owned(), object.name().to_owned());
    let value = &mut object.value;
    match (kind.as_str(), name.as_str()) {
        ("Deployment", CONTROLLER) => {
            images(value, options, &options.images.controller);
            if let Some(replicas) = options.replicas {
                value["spec"]["replicas"] = replicas.into();
            }
            for (name, text) in env(options, features) {
                for container in containers_mut(value) {
                    add_env(container, name, &text);
                }
            }
        }
        ("AddOnTemplate", ARGOCD_ADDON_TEMPLATE) => addon_template(value, options),
        ("ClusterManagementAddOn", ARGOCD_ADDON) => default_template(value, options),
        ("Deployment", LIVE) => {
            images(value, options, &options.images.controller);
            options.live.restart(object);
        }
        ("Secret" | "ConfigMap", LIVE) => options.live.fill(object),
        ("Deployment", _) => {
            images(value, options, &options.images.sidecar);
            if let PolicySource::ConfigMap(name) = &options.policy {
                mount_policy(value, name);
            }
            if name == options.argo_cd.server && features.contains(&Feature::LIVE) {
                options.live.restart(object);
            }
        }
        ("ConfigMap", CONTROLLER) => {
            for (name, text) in &options.settings {
                value["data"][name] = text.as_str().into();
            }
            value["data"][CONTROLLERS] = controllers(features).into();
            value["data"][DIALECT] = name_of(&options.pull_dialect.unwrap_or_default()).into();
        }
        ("ConfigMap", POLICY) => {
            if let PolicySource::Text(policy) = &options.policy {
                value["data"][POLICY_KEY] = policy.as_str().into();
            }
        }
        _ => {}
    }
}

/// Returns the environment variables of the controller that differ from its defaults. They are in the Deployment, so that a
/// change starts new Pods.
fn env(options: &InstallOptions, features: &BTreeSet<Feature>) -> Vec<(&'static str, String)> {
    let mut env = Vec::new();
    let controllers = controllers(features);
    if Feature::CONTROLLER.controller() != Some(controllers.as_str()) {
        env.push((CONTROLLERS, controllers));
    }
    if options.namespace != SHIPPED_NAMESPACE {
        env.push(("ARGOCD_OCM_CMP_ARGOCD_NAMESPACE", options.namespace.clone()));
    }
    if features.contains(&Feature::ARGOCD_AGENT) {
        env.push((
            "ARGOCD_OCM_CMP_AGENT_SUPERVISOR_IMAGE",
            options.images.controller.clone(),
        ));
    }
    let dialect = options.pull_dialect.unwrap_or_default();
    if features.contains(&Feature::PULL) && dialect != Dialect::default() {
        env.push((DIALECT, name_of(&dialect)));
    }
    env
}

/// Returns the union of the enabled controllers.
fn controllers(features: &BTreeSet<Feature>) -> String {
    let names: Vec<_> = features.iter().filter_map(|feature| feature.controller()).collect();
    names.join(",")
}

/// Sets the images of a Deployment on the hub, and its image pull secrets. `ours` is that of this program.
fn images(deployment: &mut Value, options: &InstallOptions, ours: &str) {
    let InstallImages { tools, agent, .. } = &options.images;
    if set_images(
        deployment,
        &[(IMAGE, ours), (ARGOCD_IMAGE, tools), (AGENT_IMAGE, agent)],
    ) && !options.image_pull_secrets.is_empty()
    {
        let secrets = options.image_pull_secrets.iter().map(|name| json!({"name": name}));
        deployment["spec"]["template"]["spec"]["imagePullSecrets"] = secrets.collect();
    }
}

/// Replaces the shipped images of a workload, and returns true if it has any of them.
fn set_images(workload: &mut Value, images: &[(&str, &str)]) -> bool {
    let mut has_any = false;
    for container in containers_mut(workload) {
        if let Some((_, image)) = images.iter().find(|(from, _)| container["image"] == *from) {
            container["image"] = (*image).into();
            has_any = true;
        }
    }
    has_any
}

/// Sets the images in the AddOnTemplate of Argo CD, and its name. The image pull secrets are those of the hub.
fn addon_template(template: &mut Value, options: &InstallOptions) {
    template["metadata"]["name"] = addon_template_name(options).into();
    for manifest in items_mut(template, "/spec/agentSpec/workload/manifests") {
        set_images(manifest, &[(ARGOCD_IMAGE, &options.images.argocd)]);
    }
}

/// Makes the AddOnTemplate of Argo CD the one that clusters have by default.
fn default_template(management: &mut Value, options: &InstallOptions) {
    for config in items_mut(management, "/spec/supportedConfigs") {
        if config["resource"] == "addontemplates" {
            config["defaultConfig"]["name"] = addon_template_name(options).into();
        }
    }
}

/// Returns the name of the AddOnTemplate of Argo CD, with a hash of everything that its content depends on: OCM's rollout strategy
/// applies to a template with another name, and a template that changes reaches all clusters at once. The chart does the same.
fn addon_template_name(options: &InstallOptions) -> String {
    let InstallOptions { images, namespace, .. } = options;
    let file = embedded::text("deploy/argocd_addon.yaml");
    let hash = ocm::argocd_agent::hash(&format!("{file}\n{}\n{namespace}", images.argocd));
    format!("{ARGOCD_ADDON_TEMPLATE}-{hash}")
}

/// Mounts another ConfigMap as the policy.
fn mount_policy(deployment: &mut Value, config_map: &str) {
    for volume in items_mut(deployment, "/spec/template/spec/volumes") {
        if volume["name"] == POLICY {
            volume["configMap"]["name"] = config_map.into();
        }
    }
}

fn add_env(container: &mut Value, name: &str, value: &str) {
    let entry = json!({"name": name, "value": value});
    match &mut container["env"] {
        Value::Array(env) => env.push(entry),
        env => *env = json!([entry]),
    }
}
