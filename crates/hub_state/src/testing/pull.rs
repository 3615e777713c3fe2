//! An Application of the pull model, and the status that an agent reports of it.

use crate::json::borrowed;
use crate::pull::{Application, PullWork};
use serde_json::{Value, json};

/// The UID of that Application.
pub const UID: &str = "0a1b2c3d-0000-4000-8000-000000000001";

/// Returns the hub's Application `argocd/shop` for the cluster `eu1`, with changes.
pub fn object(change: impl FnOnce(&mut Value)) -> Value {
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

/// Returns that Application, with changes.
pub fn application(change: impl FnOnce(&mut Value)) -> Application {
    read_application(&object(change))
}

/// Reads an Application of the pull model.
pub fn read_application(object: &Value) -> Application {
    let application = Application::from_json(&borrowed(object)).expect("it is not deep");
    application.expect("it is of the pull model")
}

/// Reads a work of the pull model.
pub fn read_work(work: &Value) -> PullWork {
    let pull_work = PullWork::from_json(&borrowed(work)).expect("it is not deep");
    pull_work.expect("it is of the pull model")
}

/// Sets an annotation of an object.
pub fn annotate(object: &mut Value, name: &str, text: &str) {
    object["metadata"]["annotations"][name] = json!(text);
}

/// Returns the status of an agent that has applied the current generation of the work, with this feedback.
pub fn reported(values: &[(&str, &str)]) -> Value {
    let value = |(name, text): &(&str, &str)| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
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
