//! The settings of the controller in its ConfigMap on a hub.

use crate::install::{CONTROLLER, ShippedObject};
use crate::workload::{containers, items};
use serde_json::Value;

/// Returns a line about an existing ConfigMap that stays, with the settings that the new Deployment overrides.
pub(super) fn left(live: &Value, objects: &[ShippedObject]) -> Option<String> {
    let find = |kind: &str| {
        objects
            .iter()
            .find(|object| (object.kind(), object.name()) == (kind, CONTROLLER))
    };
    let deployment = find("Deployment").filter(|_| find("ConfigMap").is_none())?;
    let containers = containers(&deployment.value).iter();
    let overridden: Vec<&str> = containers
        .flat_map(|container| items(&container["env"]))
        .filter_map(|variable| Some((variable["name"].as_str()?, &variable["value"])))
        .filter(|(name, value)| !live["data"][name].is_null() && live["data"][name] != **value)
        .map(|(name, _)| name)
        .collect();
    let except = if overridden.is_empty() {
        String::new()
    } else {
        format!(", except {}, which the Deployment sets", overridden.join(", "))
    };
    Some(format!(
        "configmap/{CONTROLLER} kept: its settings stay in force{except}\n"
    ))
}
