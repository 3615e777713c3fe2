//! Sets in our files what flags say.

use super::{ARGOCD_IMAGE, Feature, IMAGE, Object, POLICY, POLICY_KEY, PolicySource, SHIPPED_NAMESPACE, Wanted};
use crate::controller::LEASE;
use crate::pull::Dialect;
use crate::value::{Map, Value};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// The controller's Deployment, and the ConfigMap with its settings, are called as its Lease is.
const CONTROLLER: &str = LEASE;

/// Where a Deployment says what its Pods are.
const POD: &[&str] = &["spec", "template", "spec"];

/// How many replicas deploy_controller.yaml has.
const REPLICAS: u16 = 2;

/// The setting with all that the controller does. Each file says it as if there were no other.
const CONTROLLERS: &str = "OCM_CONTROLLERS";

/// The setting with whose conventions the pull model follows.
const DIALECT: &str = "OCM_PULL_DIALECT";

/// The features that flags ask for.
pub(super) fn features(wanted: &Wanted) -> impl Iterator<Item = Feature> {
    let shards = wanted.shards.filter(|shards| *shards > 1).map(|_| Feature::Shards);
    let has_policy = matches!(wanted.policy, PolicySource::Text(_) | PolicySource::ConfigMap(_));
    let policy = has_policy.then_some(Feature::Policy);
    shards.into_iter().chain(policy)
}

/// Sets what is asked for, where this object says it.
pub(super) fn set(object: &mut Object, wanted: &Wanted, features: &BTreeSet<Feature>) {
    let (kind, name) = (object.kind().to_owned(), object.name().to_owned());
    match (kind.as_str(), name.as_str()) {
        ("Deployment", CONTROLLER) => {
            images(object.value_mut(), wanted);
            if let Some(replicas) = wanted.replicas {
                fields(object.value_mut(), &["spec"], |spec| {
                    spec.insert("replicas", Value::Int(replicas.into()));
                });
            }
            for (name, value) in env(wanted, features) {
                each_container(object.value_mut(), |container| add_env(container, name, &value));
            }
        }
        ("Deployment", _) => {
            images(object.value_mut(), wanted);
            if let PolicySource::ConfigMap(name) = &wanted.policy {
                mount_policy(object.value_mut(), name);
            }
        }
        ("ConfigMap", CONTROLLER) => fields(object.value_mut(), &["data"], |data| {
            data.insert(CONTROLLERS, Value::text(promises(features)));
            data.insert(DIALECT, Value::text(name_of(wanted.pull_dialect)));
        }),
        ("ConfigMap", POLICY) => {
            if let PolicySource::Text(policy) = &wanted.policy {
                fields(object.value_mut(), &["data"], |data| {
                    data.insert(POLICY_KEY, Value::text(policy.as_str()));
                });
            }
        }
        _ => {}
    }
}

/// What the controller is told that it does not do by itself. It stands in the Deployment, so that a change starts new Pods.
fn env(wanted: &Wanted, features: &BTreeSet<Feature>) -> Vec<(&'static str, String)> {
    let mut env = Vec::new();
    let promises = promises(features);
    if Feature::Controller.promise() != Some(promises.as_str()) {
        env.push((CONTROLLERS, promises));
    }
    if wanted.namespace != SHIPPED_NAMESPACE {
        env.push(("OCM_ARGOCD_NAMESPACE", wanted.namespace.clone()));
    }
    if features.contains(&Feature::Shards) {
        let shards = wanted.shards.or(wanted.replicas).unwrap_or(REPLICAS);
        env.push(("OCM_SHARDS", shards.to_string()));
    }
    if features.contains(&Feature::ArgocdAgent) {
        env.push(("OCM_AGENT_SUPERVISOR_IMAGE", wanted.image.clone()));
    }
    if features.contains(&Feature::Pull) && wanted.pull_dialect != Dialect::default() {
        env.push((DIALECT, name_of(wanted.pull_dialect)));
    }
    env
}

/// The union of what the controller does.
fn promises(features: &BTreeSet<Feature>) -> String {
    let names: Vec<_> = features.iter().filter_map(|feature| feature.promise()).collect();
    names.join(",")
}

fn name_of(dialect: Dialect) -> String {
    let value = dialect.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

/// Sets the images that are named in a Deployment, and by which Secrets they are pulled.
fn images(deployment: &mut Value<'static>, wanted: &Wanted) {
    let mut has_any = false;
    each_container(deployment, |container| {
        let image = match container.get("image").and_then(Value::as_str) {
            Some(IMAGE) => &wanted.image,
            Some(ARGOCD_IMAGE) => &wanted.argocd_image,
            _ => return,
        };
        container.insert("image", Value::text(image.as_str()));
        has_any = true;
    });
    if has_any && !wanted.image_pull_secrets.is_empty() {
        let secret = |name: &String| Value::map([("name", Value::text(name.as_str()))]);
        let secrets = wanted.image_pull_secrets.iter().map(secret).collect();
        fields(deployment, POD, |pod| {
            pod.insert("imagePullSecrets", Value::List(secrets));
        });
    }
}

/// Mounts another ConfigMap as the policy.
fn mount_policy(deployment: &mut Value<'static>, config_map: &str) {
    fields(deployment, POD, |pod| {
        let Some(Value::List(volumes)) = pod.get_mut("volumes") else {
            return;
        };
        for volume in volumes {
            if volume.as_map().and_then(|it| it.get("name")?.as_str()) == Some(POLICY) {
                fields(volume, &["configMap"], |source| {
                    source.insert("name", Value::text(config_map));
                });
            }
        }
    });
}

fn add_env(container: &mut Map<'static>, name: &'static str, value: &str) {
    let entry = Value::map([("name", Value::text(name)), ("value", Value::text(value))]);
    match container.get_mut("env") {
        Some(Value::List(env)) => env.push(entry),
        _ => container.insert("env", Value::List(vec![entry])),
    }
}

fn each_container(deployment: &mut Value<'static>, mut change: impl FnMut(&mut Map<'static>)) {
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

/// Changes the mapping at a path, where there is one.
fn fields(value: &mut Value<'static>, path: &[&str], change: impl FnOnce(&mut Map<'static>)) {
    let found = path.iter().try_fold(value, |value, step| match value {
        Value::Map(map) => map.get_mut(step),
        _ => None,
    });
    if let Some(Value::Map(map)) = found {
        change(map);
    }
}
