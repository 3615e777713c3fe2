//! The pull model: a ManifestWork carries an Application of the hub to its managed cluster, where that cluster's Argo CD runs it;
//! the controller copies its status back to the hub's Application.
//!
//! Labels, annotations and names are those of argocd-pull-integration and of Red Hat ACM's multicloud-integrations, so that users
//! can switch by replacing the controller. The decisions are pure functions of the stored objects:
//!
//! - [`application`] reads the hub's Application; [`payload`] builds the objects for the managed cluster.
//! - [`work`] builds the desired ManifestWork; [`pull_work`] reads an existing one.
//! - [`tenancy`] decides which Applications may run on which managed cluster.
//! - [`requests`] forwards requests on the hub's Application: a sync, a refresh.
//! - [`feedback`] reads the status feedback of the cluster, [`status`] builds the status of the hub's Application, and `history`
//!   its deployment history for rollbacks.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod application;
mod deployment;
mod digest;
pub mod feedback;
pub mod fingerprint;
pub mod forwarded;
mod history;
pub mod mirrored_status;
mod options;
pub mod payload;
#[cfg(test)]
mod properties;
pub mod pull_work;
pub mod reconcile;
pub mod requests;
pub mod retention;
pub mod status;
pub mod tenancy;
mod text;
pub mod work;
pub mod work_name;

pub use application::Application;
pub use options::{Dialect, FeedbackMode, Settings};
pub use pull_work::PullWork;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::json::annotation;
    use forwarded::Requests;
    use serde_json::{Value, json};
    use work::Desired;

    pub(crate) const UID: &str = "0a1b2c3d-0000-4000-8000-000000000001";

    /// Returns the hub's Application `argocd/shop` for the cluster `eu1`, with changes.
    pub(crate) fn object(change: impl FnOnce(&mut Value)) -> Value {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "name": "shop",
                "namespace": "argocd",
                "uid": UID,
                "resourceVersion": "7",
                "labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true", "team": "a"},
                "annotations": {
                    "apps.open-cluster-management.io/ocm-managed-cluster": "eu1",
                    "argocd.argoproj.io/skip-reconcile": "true",
                    "contact": "shop@example.com",
                },
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.com/shop", "path": "guestbook"},
                "destination": {"server": "https://eu1-control-plane:6443", "namespace": "guestbook"},
            },
        });
        change(&mut object);
        object
    }

    pub(crate) fn application(change: impl FnOnce(&mut Value)) -> Application {
        read_application(&object(change))
    }

    pub(crate) fn read_application(object: &Value) -> Application {
        let application = Application::read(object).expect("it is not deep");
        application.expect("it is of the pull model")
    }

    pub(crate) fn read_work(work: &Value) -> PullWork {
        let pull_work = PullWork::read(work).expect("it is not deep");
        pull_work.expect("it is of the pull model")
    }

    pub(crate) fn annotate(object: &mut Value, name: &str, text: &str) {
        object["metadata"]["annotations"][name] = json!(text);
    }

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
        let retention = retention::Retention::Owned;
        let desired = Desired::of(application, ("eu1", "shop-0a1b2"), &settings, requests, None, retention);
        let mut work = as_stored(&desired.object());
        if let Some(reported) = reported {
            work["status"] = json!({"resourceStatus": {"manifests": [reported]}});
        }
        work
    }

    /// Returns the status of an agent that has applied the current generation of the work, with this feedback.
    pub(crate) fn reported(values: &[(&str, &str)]) -> Value {
        let value =
            |(name, text): &(&str, &str)| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
        json!({
            "resourceMeta": {
                "ordinal": 0, "group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
                "resource": "applications", "namespace": "argocd", "name": "shop",
            },
            "conditions": [
                {"type": "Applied", "status": "True", "reason": "AppliedManifestComplete", "observedGeneration": 2},
                {"type": "Available", "status": "True", "reason": "ResourceAvailable"},
            ],
            "statusFeedback": {"values": values.iter().map(value).collect::<Vec<_>>()},
        })
    }

    /// Returns the payload hash of the Application in a work.
    pub(crate) fn payload(application: &Application, requests: &Requests) -> String {
        let object = payload::application(application, &Settings::default(), requests);
        annotation(&object, ocm::pull_model::PAYLOAD)
            .expect("a form")
            .to_owned()
    }
}
