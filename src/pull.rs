//! The pull model: an Application of the hub goes to its managed cluster in a ManifestWork, the Argo CD there runs it, and what
//! that says of it comes back into the status of the hub's Application.
//!
//! The labels, annotations and names are those of argocd-pull-integration and of Red Hat ACM's multicloud-integrations, so that
//! their users can switch by replacing the controller. Here is what is decided, as pure functions of what the API server has:
//!
//! - [`application`] is what is read of the hub's Application, [`payload`] what the managed cluster gets of it.
//! - [`work`] is the ManifestWork around that, as it should be; [`carried`] what is read of one that is there.
//! - [`tenancy`] is which Applications may go to which managed cluster.
//! - [`requests`] hands on what somebody asks of the hub's Application: a sync, a refresh.
//! - [`feedback`] is what comes back of the cluster, [`status`] what the hub's Application says of it, and `history` what it can be
//!   rolled back to.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod application;
pub mod carried;
pub mod feedback;
mod history;
pub mod names;
pub mod payload;
#[cfg(test)]
mod properties;
pub mod requests;
pub mod status;
pub mod tenancy;
pub mod work;

pub use application::Application;
pub use carried::Carried;

use crate::generate::names::hex;
use clap::ValueEnum;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Whose conventions are followed where the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// Those of open-cluster-management-io/argocd-pull-integration.
    #[default]
    ArgocdPullIntegration,
    /// Those of stolostron/multicloud-integrations, which is a part of Red Hat ACM.
    Acm,
}

/// What somebody who runs the controller chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Settings {
    /// Whose conventions are followed.
    pub dialect: Dialect,
    /// Whether the Application's namespace is delivered with it.
    pub namespace: bool,
    /// Whether its AppProject is.
    pub project: bool,
    /// Whether only a namespace in which a Placement selects a managed cluster may use it.
    pub placement: bool,
    /// Whether the agents only look, and change nothing: while something else takes over what they have delivered.
    pub read_only: bool,
    /// The namespace of Argo CD, on the hub as on the managed clusters.
    pub argocd: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            namespace: false,
            project: false,
            placement: false,
            read_only: false,
            argocd: "argocd".to_owned(),
        }
    }
}

/// The text at this path of an object, where it is one and not empty.
fn text<'v>(object: &'v Value, path: &str) -> Option<&'v str> {
    object.pointer(path)?.as_str().filter(|text| !text.is_empty())
}

/// The same, to keep.
fn own(object: &Value, path: &str) -> Option<Box<str>> {
    text(object, path).map(Into::into)
}

/// The annotation or label of this name, which may have any characters in it.
fn entry<'v>(object: &'v Value, map: &str, name: &str) -> Option<&'v str> {
    object.get("metadata")?.get(map)?.get(name)?.as_str()
}

/// The annotation of this name, where it is not empty.
fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    entry(object, "annotations", name).filter(|text| !text.is_empty())
}

/// What is in the list at this path.
fn items<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The API group of an `apiVersion`.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The first `digits`, an even number, of a hash of these texts, in hex. No two lists of texts are taken for one.
fn hash(texts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..digits / 2])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use requests::Requests;
    use serde_json::json;
    use work::Desired;

    pub(crate) const UID: &str = "0a1b2c3d-0000-4000-8000-000000000001";

    /// An Application of the hub, `argocd/shop` for cluster `eu1`, changed as given.
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
        Application::read(&object(change)).expect("it is of the pull model")
    }

    pub(crate) fn annotate(object: &mut Value, name: &str, text: &str) {
        object["metadata"]["annotations"][name] = json!(text);
    }

    /// A work as the API server has it: with its defaults.
    pub(crate) fn as_stored(work: &Value) -> Value {
        let mut work = work.clone();
        work["metadata"]["uid"] = json!("w");
        work["metadata"]["resourceVersion"] = json!("41");
        work["metadata"]["generation"] = json!(2);
        for config in work["spec"]["manifestConfigs"].as_array_mut().expect("a list") {
            config["feedbackScrapeType"] = json!("Poll");
            if let Some(apply) = config.pointer_mut("/updateStrategy/serverSideApply") {
                apply["fieldManager"] = json!("work-agent");
            }
        }
        if let Some(Value::Object(option)) = work["spec"].get_mut("deleteOption") {
            option.entry("propagationPolicy").or_insert_with(|| json!("Foreground"));
        }
        work
    }

    /// The work of an Application, of which its agent says this; nothing where it has not been heard.
    pub(crate) fn work(application: &Application, requests: &Requests, said: Option<Value>) -> Value {
        let settings = Settings::default();
        let hold = work::Hold::Firm;
        let desired = Desired::of(application, ("eu1", "shop-0a1b2"), &settings, requests, None, hold);
        let mut work = as_stored(&desired.object());
        if let Some(said) = said {
            work["status"] = json!({"resourceStatus": {"manifests": [said]}});
        }
        work
    }

    /// What an agent says that has applied the Application in the present form of its work, and feeds this back.
    pub(crate) fn said(values: &[(&str, &str)]) -> Value {
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

    /// The form of the Application that the work of these carries.
    pub(crate) fn payload(application: &Application, requests: &Requests) -> String {
        let object = payload::application(application, &Settings::default(), requests);
        annotation(&object, names::PAYLOAD).expect("a form").to_owned()
    }

    #[test]
    fn no_two_lists_of_texts_have_one_hash() {
        assert_eq!(hash(&["ab", "c"], 10).len(), 10);
        assert_ne!(hash(&["ab", "c"], 10), hash(&["a", "bc"], 10));
    }
}
