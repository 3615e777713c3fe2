//! Builds the ManifestWork of an Application: its name, its manifests, and the agent's settings for them.

use super::payload::{self, OfHub};
use hub_state::annotations::REFRESH;
use hub_state::json::{borrowed, without_empty};
use hub_state::pull::application::Application;
use hub_state::pull::feedback;
use hub_state::pull::fingerprint::{ANNOTATIONS, LABELS, SCRAPE_TYPE, fingerprint};
use hub_state::pull::forwarded::Requests;
use hub_state::pull::pull_work::{ApplyState, PullWork};
use hub_state::pull::pull_work::{ORPHAN, READ_ONLY, Retention};
use hub_state::pull::{Dialect, FeedbackMode, Settings};
use ocm::names::application_label;
use ocm::pull_model as names;
use ocm::work as works;
use primitives::hash::hex;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

/// Returns the next state of an existing work if everything is to be released. Objects that were never applied have no owner
/// reference.
pub fn next_retention(settings: &Settings, pull_work: Option<&PullWork>) -> Retention {
    let now = pull_work.map_or(Retention::Released, |pull_work| pull_work.retention);
    let is_applied = pull_work.is_some_and(|pull_work| pull_work.applied == ApplyState::Succeeded);
    match now {
        _ if !settings.read_only => Retention::Owned,
        Retention::Orphaning if is_applied => Retention::Released,
        Retention::Released => Retention::Released,
        Retention::Owned | Retention::Orphaning => Retention::Orphaning,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    object: Value,
    feedback: FeedbackMode,
}

impl Desired {
    /// Builds the work of this name that carries an Application to this cluster.
    pub fn build(
        application: &Application,
        (cluster, name): (&str, &str),
        settings: &Settings,
        requests: &Requests,
        hub: OfHub<'_>,
        retention: Retention,
    ) -> Self {
        let manifests = payload::manifests(application, settings, requests, hub);
        let configs: Vec<Value> = manifests
            .iter()
            .filter_map(|object| config(object, application, retention, settings.feedback))
            .collect();
        // Others may need the namespace and the project as well, so they stay when the work is deleted.
        let is_shared = |object: &&Value| object["kind"] != names::KIND;
        let orphans: Vec<_> = manifests.iter().filter(is_shared).map(identifier).collect();
        let mut spec = json!({"workload": {"manifests": manifests}, "manifestConfigs": configs});
        if retention != Retention::Owned {
            spec["deleteOption"] = json!({"propagationPolicy": ORPHAN});
        } else if !orphans.is_empty() {
            spec["deleteOption"] = json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": orphans},
            });
        }
        let object = json!({
            "apiVersion": works::API_VERSION,
            "kind": works::KIND,
            "metadata": {
                "name": name,
                "namespace": cluster,
                "labels": labels(application, settings),
                "annotations": without_empty(json!({
                    names::HUB_NAMESPACE: application.namespace,
                    names::HUB_NAME: application.name,
                    names::HUB_UID: application.uid,
                    names::SET: payload::set(application),
                })),
            },
            "spec": spec,
        });
        Self {
            object,
            feedback: settings.feedback,
        }
    }

    /// Returns true if the stored work needs no write.
    pub fn is_stored(&self, work: &PullWork) -> bool {
        work.fingerprint == fingerprint(&borrowed(&self.object))
            && work.feedback_mode.is_none_or(|stored| stored == self.feedback)
    }

    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Returns the merge patch of this resource version to the desired work; it leaves fields of others unchanged.
    pub fn patch(&self, version: &str) -> Value {
        let mut spec = self.object["spec"].clone();
        match spec.get_mut("deleteOption") {
            Some(Value::Object(option)) => {
                for field in ["selectivelyOrphans", "ttlSecondsAfterFinished"] {
                    option.entry(field).or_insert(Value::Null);
                }
            }
            _ => spec["deleteOption"] = Value::Null,
        }
        // Null removes an entry of ours.
        let entries = |map: &str, ours: &[&str]| -> Map<String, Value> {
            let desired = &self.object["metadata"][map];
            let entries = ours.iter().map(|name| ((*name).to_owned(), desired[name].clone()));
            entries.collect()
        };
        json!({
            "metadata": {
                "resourceVersion": version,
                "labels": entries("labels", &LABELS),
                "annotations": entries("annotations", &ANNOTATIONS),
            },
            "spec": spec,
        })
    }
}

fn labels(application: &Application, settings: &Settings) -> Value {
    let Application { namespace, name, .. } = application;
    let argocd_name = if **namespace == *settings.argocd {
        name.to_string()
    } else {
        format!("{namespace}_{name}")
    };
    let is_acm = settings.dialect == Dialect::Acm;
    let set = payload::set(application);
    let set_hash = set.as_ref().filter(|_| is_acm).map(|set| hex(&Sha1::digest(set)));
    without_empty(json!({
        works::MANAGED_BY: works::OURS,
        works::APPLICATION_LABEL: application_label(&argocd_name),
        // ACM finds the works of ApplicationSets by the other two labels alone.
        names::PULL: (set.is_none() || !is_acm).then_some("true"),
        names::OF_SET: set.is_some().then_some("true"),
        names::SET_HASH: set_hash,
    }))
}

fn identifier(object: &Value) -> Value {
    let (group, resource) = match object["kind"].as_str() {
        Some(names::KIND) => (names::GROUP, names::PLURAL),
        Some(names::PROJECT_KIND) => (names::GROUP, names::PROJECT_PLURAL),
        _ => ("", "namespaces"),
    };
    let metadata = &object["metadata"];
    without_empty(json!({
        "group": group,
        "resource": resource,
        "name": metadata["name"],
        "namespace": metadata["namespace"],
    }))
}

pub(crate) fn server_side_apply(settings: &Value) -> Value {
    json!({"type": "ServerSideApply", "serverSideApply": settings})
}

fn config(object: &Value, application: &Application, retention: Retention, mode: FeedbackMode) -> Option<Value> {
    let kind = object["kind"].as_str()?;
    let strategy = match kind {
        _ if retention == Retention::Released => json!({"type": READ_ONLY}),
        // The cluster's Argo CD removes completed operations: the agent must not restore them with each sync.
        names::KIND => {
            let annotation = |name: &str| format!(r#".metadata.annotations["{name}"]"#);
            server_side_apply(&json!({"force": true, "ignoreFields": [{
                "condition": "OnSpokeChange",
                "jsonPaths": [".operation", annotation(REFRESH), annotation(names::HYDRATE)],
            }]}))
        }
        names::PROJECT_KIND => server_side_apply(&json!({"force": true})),
        // The agent's default strategy, which leaves fields of others on a namespace unchanged.
        _ => return None,
    };
    let mut config = json!({"resourceIdentifier": identifier(object), "updateStrategy": strategy});
    if kind == names::KIND {
        config["feedbackRules"] = feedback::rules(application.sources);
        config[SCRAPE_TYPE] = mode.scrape_type().into();
    }
    Some(config)
}

#[cfg(test)]
mod tests;
