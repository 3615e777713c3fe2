//! The controllers of other software on a hub that write the objects of ours. `migrate plan` names those that run, and the command
//! that stops each.

#[cfg(test)]
mod tests;

use crate::workload::{arguments, containers, object_ref};
use manifest::value::Value as Yaml;
use manifest::yaml;
use primitives::object_ref::ObjectRef;
use serde_json::Value;
use std::collections::BTreeSet;

/// The ConfigMap of Red Hat ACM that disables its pull model, in the namespace of its Deployment.
pub const ACM_CONFIG_MAP: &str = "multicluster-integrations-config";

/// The controllers that Red Hat ACM's setting disables.
const DISABLED: [&str; 2] = ["pull", "application-set-report"];

/// A Deployment with controllers of other software.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    object_ref: ObjectRef,
    /// True if it is a part of Red Hat ACM, otherwise of argocd-pull-integration.
    is_acm: bool,
    /// Our controllers whose objects it writes.
    controllers: BTreeSet<&'static str>,
}

impl Peer {
    /// Reads a Deployment; `None` if it has no such controller, or no replica.
    pub fn from_deployment(deployment: &Value) -> Option<Self> {
        let object_ref = object_ref(deployment);
        let is_named = |part: &str, container: &Value| {
            let image = container["image"].as_str().unwrap_or_default();
            object_ref.name.contains(part) || image.contains(part)
        };
        let (mut is_acm, mut controllers) = (false, BTreeSet::new());
        for container in containers(deployment) {
            let words: Vec<_> = arguments(container).collect();
            let program = words.first().and_then(|word| word.rsplit('/').next());
            let is_of_acm =
                is_named("multicloud-integrations", container) || is_named("multicluster-integrations", container);
            let writes: &[&str] = match program {
                Some("propagation") if is_of_acm => &["pull"],
                Some("multiclusterstatusaggregation") if is_of_acm => &["application-set-report"],
                Some("gitopscluster") if is_of_acm => &["gitopscluster", "argocd-agent"],
                _ if !is_named("argocd-pull-integration", container) || is_of_acm => continue,
                _ => match words.iter().find_map(|word| word.strip_prefix("--mode=")) {
                    Some("basic") => &["pull", "cluster-secrets"],
                    Some("controller") | None => &["gitopscluster", "argocd-agent"],
                    // It runs on a managed cluster.
                    Some(_) => continue,
                },
            };
            is_acm |= is_of_acm;
            controllers.extend(writes);
        }
        let is_running = deployment["spec"]["replicas"] != 0 && !controllers.is_empty();
        is_running.then_some(Self {
            object_ref,
            is_acm,
            controllers,
        })
    }

    /// Returns the namespace whose [`ACM_CONFIG_MAP`] may disable controllers of the Deployment.
    pub fn config_namespace(&self) -> Option<&str> {
        self.is_acm.then_some(&*self.object_ref.namespace)
    }

    /// Removes the controllers that the content of [`ACM_CONFIG_MAP`] disables.
    pub fn apply_config(&mut self, config_map: &Value) {
        let text = config_map["data"]["config.yaml"].as_str().unwrap_or_default();
        let is_disabled = |config: &Yaml<'_>| {
            let config = config.as_map()?.at(&["pullModel", "basic", "disabled"])?;
            Some(*config == Yaml::Bool(true))
        };
        let config = yaml::documents(text).next().and_then(Result::ok);
        if config.and_then(|config| is_disabled(&config.value)) == Some(true) {
            self.controllers.retain(|controller| !DISABLED.contains(controller));
        }
    }

    /// Returns a line that tells how to stop it before these of our controllers run; `None` if they write other objects.
    pub fn remedy(&self, planned: &[&str]) -> Option<String> {
        let Self { object_ref, is_acm, .. } = self;
        let (namespace, name) = (&object_ref.namespace, &object_ref.name);
        let both: Vec<_> = self
            .controllers
            .iter()
            .copied()
            .filter(|controller| planned.contains(controller))
            .collect();
        let scale = format!("kubectl -n {namespace} scale deployment {name} --replicas=0");
        let stop = if *is_acm && both.iter().all(|name| DISABLED.contains(name)) {
            format!(
                "set pullModel.basic.disabled: true in ConfigMap {namespace}/{ACM_CONFIG_MAP}, and run kubectl -n {namespace} rollout \
                 restart deployment {name}"
            )
        } else if *is_acm {
            format!("stop its operator, and run {scale}")
        } else {
            format!("run {scale}")
        };
        let writes = both.join(", ");
        (!both.is_empty()).then(|| format!("Deployment {object_ref} writes the objects of {writes}: {stop}"))
    }
}
