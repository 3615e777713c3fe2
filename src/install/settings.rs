//! Applies flags to our files.

use super::{
    AGENT_IMAGE, ARGOCD_IMAGE, Feature, IMAGE, InstallImages, InstallOptions, LIVE, POLICY, POLICY_KEY, PolicySource,
    SHIPPED_NAMESPACE, ShippedObject,
};
use crate::embedded::ARGOCD_ADDON as ADDON_FILE;
use clap::ValueEnum;
use controller::LEASE;
use hub_state::pull::Dialect;
use manifest::value::{Map, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The name of the controller's Deployment and of the ConfigMap with its settings, which is also the name of its Lease.
pub const CONTROLLER: &str = LEASE;

/// The path of the Pod spec in a Deployment.
const POD: &[&str] = &["spec", "template", "spec"];

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
pub(super) fn others(live: Option<&Json>) -> Vec<(String, String)> {
    let data = live.and_then(|live| live["data"].as_object()).into_iter().flatten();
    let is_other = |name: &str| name.starts_with(PREFIX) && ![CONTROLLERS, DIALECT].contains(&name);
    data.filter(|(name, _)| is_other(name))
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Returns the features that the flags enable.
pub(super) fn features(options: &InstallOptions) -> impl Iterator<Item = Feature> {
    let has_policy = matches!(options.policy, PolicySource::Text(_) | PolicySource::ConfigMap(_));
    has_policy.then_some(Feature::Policy).into_iter()
}

/// Applies the options to this object.
pub(super) fn set(object: &mut ShippedObject, options: &InstallOptions, features: &BTreeSet<Feature>) {
    let (kind, name) = (object.kind().to_owned(), object.name().to_owned());
    match (kind.as_str(), name.as_str()) {
        ("Deployment", CONTROLLER) => {
            images(object.value_mut(), options, &options.images.controller);
            if let Some(replicas) = options.replicas {
                fields(object.value_mut(), &["spec"], |spec| {
                    spec.insert("replicas", Value::Int(replicas.into()));
                });
            }
            for (name, value) in env(options, features) {
                each_container(object.value_mut(), |container| add_env(container, name, &value));
            }
        }
        ("AddOnTemplate", ARGOCD_ADDON_TEMPLATE) => addon_template(object.value_mut(), options),
        ("ClusterManagementAddOn", ARGOCD_ADDON) => default_template(object.value_mut(), options),
        ("Deployment", LIVE) => {
            images(object.value_mut(), options, &options.images.controller);
            options.live.restart_service(object);
        }
        ("Secret" | "ConfigMap", LIVE) => options.live.fill(object),
        ("Deployment", _) => {
            images(object.value_mut(), options, &options.images.sidecar);
            if name == options.argo_cd.server && features.contains(&Feature::Live) {
                options.live.restart_server(object);
            }
            if let PolicySource::ConfigMap(name) = &options.policy {
                mount_policy(object.value_mut(), name);
            }
        }
        ("ConfigMap", CONTROLLER) => fields(object.value_mut(), &["data"], |data| {
            for (name, value) in &options.settings {
                data.insert(name.clone(), Value::from_text(value.as_str()));
            }
            data.insert(CONTROLLERS, Value::from_text(controllers(features)));
            data.insert(DIALECT, Value::from_text(name_of(options.pull_dialect)));
        }),
        ("ConfigMap", POLICY) => {
            if let PolicySource::Text(policy) = &options.policy {
                fields(object.value_mut(), &["data"], |data| {
                    data.insert(POLICY_KEY, Value::from_text(policy.as_str()));
                });
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
    if Feature::Controller.controller() != Some(controllers.as_str()) {
        env.push((CONTROLLERS, controllers));
    }
    if options.namespace != SHIPPED_NAMESPACE {
        env.push(("ARGOCD_OCM_CMP_ARGOCD_NAMESPACE", options.namespace.clone()));
    }
    if features.contains(&Feature::ArgocdAgent) {
        env.push((
            "ARGOCD_OCM_CMP_AGENT_SUPERVISOR_IMAGE",
            options.images.controller.clone(),
        ));
    }
    if features.contains(&Feature::Pull) && options.pull_dialect != Dialect::default() {
        env.push((DIALECT, name_of(options.pull_dialect)));
    }
    env
}

/// Returns the union of the enabled controllers.
fn controllers(features: &BTreeSet<Feature>) -> String {
    let names: Vec<_> = features.iter().filter_map(|feature| feature.controller()).collect();
    names.join(",")
}

fn name_of(dialect: Dialect) -> String {
    let value = dialect.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

/// Sets the images of a Deployment on the hub, and its image pull secrets. `ours` is that of this program.
fn images(deployment: &mut Value<'static>, options: &InstallOptions, ours: &str) {
    let InstallImages { tools, agent, .. } = &options.images;
    if set_images(
        deployment,
        &[(IMAGE, ours), (ARGOCD_IMAGE, tools), (AGENT_IMAGE, agent)],
    ) && !options.image_pull_secrets.is_empty()
    {
        let secret = |name: &String| Value::map([("name", Value::from_text(name.as_str()))]);
        let secrets = options.image_pull_secrets.iter().map(secret).collect();
        fields(deployment, POD, |pod| {
            pod.insert("imagePullSecrets", Value::List(secrets));
        });
    }
}

/// Replaces the shipped images of a workload, and returns true if it has any of them.
fn set_images(workload: &mut Value<'static>, images: &[(&str, &str)]) -> bool {
    let mut has_any = false;
    each_container(workload, |container| {
        let shipped = container.get("image").and_then(Value::as_str);
        let image = images.iter().find(|(from, _)| shipped == Some(from));
        if let Some((_, image)) = image {
            container.insert("image", Value::from_text(*image));
            has_any = true;
        }
    });
    has_any
}

/// Sets the images in the AddOnTemplate of Argo CD, and its name. The image pull secrets are those of the hub.
fn addon_template(template: &mut Value<'static>, options: &InstallOptions) {
    fields(template, &["metadata"], |metadata| {
        metadata.insert("name", Value::from_text(addon_template_name(options)));
    });
    fields(template, &["spec", "agentSpec", "workload"], |workload| {
        if let Some(Value::List(manifests)) = workload.get_mut("manifests") {
            for manifest in manifests {
                set_images(manifest, &[(ARGOCD_IMAGE, &options.images.argocd)]);
            }
        }
    });
}

/// Makes the AddOnTemplate of Argo CD the one that clusters have by default.
fn default_template(management: &mut Value<'static>, options: &InstallOptions) {
    fields(management, &["spec"], |spec| {
        let Some(Value::List(configs)) = spec.get_mut("supportedConfigs") else {
            return;
        };
        for config in configs {
            let resource = config.as_map().and_then(|config| config.get("resource")?.as_str());
            if resource == Some("addontemplates") {
                fields(config, &["defaultConfig"], |default| {
                    default.insert("name", Value::from_text(addon_template_name(options)));
                });
            }
        }
    });
}

/// Returns the name of the AddOnTemplate of Argo CD, with a hash of everything that its content depends on: OCM's rollout strategy
/// applies to a template with another name, and a template that changes reaches all clusters at once. The chart does the same.
fn addon_template_name(options: &InstallOptions) -> String {
    let InstallOptions { images, namespace, .. } = options;
    let hash = ocm::argocd_agent::hash(&format!("{ADDON_FILE}\n{}\n{namespace}", images.argocd));
    format!("{ARGOCD_ADDON_TEMPLATE}-{hash}")
}

/// Mounts another ConfigMap as the policy.
fn mount_policy(deployment: &mut Value<'static>, config_map: &str) {
    fields(deployment, POD, |pod| {
        let Some(Value::List(volumes)) = pod.get_mut("volumes") else {
            return;
        };
        for volume in volumes {
            if volume.as_map().and_then(|volume| volume.get("name")?.as_str()) == Some(POLICY) {
                fields(volume, &["configMap"], |source| {
                    source.insert("name", Value::from_text(config_map));
                });
            }
        }
    });
}

fn add_env(container: &mut Map<'static>, name: &'static str, value: &str) {
    let entry = Value::map([("name", Value::from_text(name)), ("value", Value::from_text(value))]);
    match container.get_mut("env") {
        Some(Value::List(env)) => env.push(entry),
        _ => container.insert("env", Value::List(vec![entry])),
    }
}

/// Changes the containers of a workload, if it has any.
pub(super) fn each_container(deployment: &mut Value<'static>, mut change: impl FnMut(&mut Map<'static>)) {
    fields(deployment, POD, |pod| {
        for list in ["initContainers", "containers"] {
            if let Some(Value::List(containers)) = pod.get_mut(list) {
                for container in containers {
                    fields(container, &[], &mut change);
                }
            }
        }
    });
}

/// Changes the mapping at a path, if it exists.
pub(super) fn fields(value: &mut Value<'static>, path: &[&str], change: impl FnOnce(&mut Map<'static>)) {
    let value_at_path = path.iter().try_fold(value, |value, step| match value {
        Value::Map(map) => map.get_mut(step),
        _ => None,
    });
    if let Some(Value::Map(map)) = value_at_path {
        change(map);
    }
}
