//! The pull model: a ManifestWork carries an Application of the hub to its managed cluster, where that cluster's Argo CD runs it;
//! the controller copies its status back to the hub's Application.
//!
//! Labels, annotations and names are those of argocd-pull-integration and of Red Hat ACM's multicloud-integrations, so that users
//! can switch by replacing the controller. The decisions are pure functions of the stored objects.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod history;
mod patterns;
pub mod payload;
mod project;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod pull_works;
pub mod reconcile;
mod removal;
pub mod requests;
pub mod status;
pub mod tenancy;
pub mod work;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::payload::OfHub;
    use hub_state::pull::forwarded::Requests;
    use hub_state::pull::pull_work::Retention;
    use hub_state::pull::{Application, Settings};
    use serde_json::{Value, json};
    use work::Desired;

    /// Returns a work as the API server stores it, with its defaults.
    pub(crate) fn as_stored(work: &Value) -> Value {
        let mut work = work.clone();
        work["metadata"]["uid"] = json!("w");
        work["metadata"]["resourceVersion"] = json!("41");
        work["metadata"]["generation"] = json!(2);
        for config in work["spec"]["manifestConfigs"].as_array_mut().expect("a list") {
            config
                .as_object_mut()
                .expect("a map")
                .entry("feedbackScrapeType")
                .or_insert_with(|| json!("Poll"));
            if let Some(apply) = config.pointer_mut("/updateStrategy/serverSideApply") {
                apply["fieldManager"] = json!("work-agent");
            }
        }
        if let Some(Value::Object(option)) = work["spec"].get_mut("deleteOption") {
            option.entry("propagationPolicy").or_insert_with(|| json!("Foreground"));
        }
        work
    }

    /// Returns the work of an Application with the status that its agent reports, or without status.
    pub(crate) fn work(application: &Application, requests: &Requests, reported: Option<Value>) -> Value {
        let settings = Settings::default();
        let retention = Retention::Owned;
        let desired = Desired::build(
            application,
            ("eu1", "shop-0a1b2"),
            &settings,
            requests,
            OfHub::default(),
            retention,
        );
        let mut work = as_stored(desired.object());
        if let Some(reported) = reported {
            work["status"] = json!({"resourceStatus": {"manifests": [reported]}});
        }
        work
    }

    /// Returns the payload hash of the Application in a work.
    pub(crate) fn payload(application: &Application, requests: &Requests) -> String {
        let object = payload::application(application, &Settings::default(), requests, None);
        let payload = object["metadata"]["annotations"][ocm::pull_model::PAYLOAD].as_str();
        payload.expect("a form").to_owned()
    }
}
