//! Builds the ManifestWork of an Application: its name, its manifests, and the agent's settings for them.

use super::payload;
use hub_state::annotations::REFRESH;
use hub_state::json::text_at;
use hub_state::pull::application::Application;
use hub_state::pull::feedback;
use hub_state::pull::fingerprint::{ANNOTATIONS, Fingerprint, LABELS, SCRAPE_TYPE, fingerprint_of};
use hub_state::pull::forwarded::Requests;
use hub_state::pull::pull_work::{ApplyState, PullWork};
use hub_state::pull::retention::{ORPHAN, READ_ONLY, Retention};
use hub_state::pull::{Dialect, FeedbackMode, Settings};
use ocm::names::application_label;
use ocm::pull_model as names;
use ocm::work as works;
use primitives::hash::hex;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

/// Returns the next state of an existing work if everything is to be released. Objects that were never applied have no owner
/// reference.
#[must_use]
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

/// The desired ManifestWork.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    cluster: String,
    name: String,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    spec: Value,
    feedback: FeedbackMode,
}

impl Desired {
    /// Builds the work of this name that carries an Application to this cluster, with its AppProject on the hub if that is
    /// delivered.
    #[must_use]
    pub fn build(
        application: &Application,
        (cluster, name): (&str, &str),
        settings: &Settings,
        requests: &Requests,
        project: Option<&Value>,
        retention: Retention,
    ) -> Self {
        let manifests = payload::manifests(application, settings, requests, project);
        let configs: Vec<Value> = manifests
            .iter()
            .filter_map(|object| config(object, application, retention, settings.feedback))
            .collect();
        let orphans: Vec<Value> = manifests.iter().filter_map(orphan).collect();
        let mut spec = json!({"workload": {}});
        spec["workload"]["manifests"] = manifests.into();
        spec["manifestConfigs"] = configs.into();
        if retention != Retention::Owned {
            spec["deleteOption"] = json!({"propagationPolicy": ORPHAN});
        } else if !orphans.is_empty() {
            spec["deleteOption"] = json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": orphans},
            });
        }
        Self {
            cluster: cluster.to_owned(),
            name: name.to_owned(),
            labels: labels(application, settings),
            annotations: annotations(application),
            spec,
            feedback: settings.feedback,
        }
    }

    /// Returns the fingerprint of the work.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint_of(
            |name| self.labels.get(name),
            |name| self.annotations.get(name),
            Some(&self.spec),
        )
    }

    /// Returns true if the stored work needs no write.
    #[must_use]
    pub fn is_stored(&self, work: &PullWork) -> bool {
        work.fingerprint == self.fingerprint() && work.feedback_mode.is_none_or(|stored| stored == self.feedback)
    }

    /// Returns the work to create.
    #[must_use]
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": works::API_VERSION,
            "kind": works::KIND,
            "metadata": {
                "name": self.name,
                "namespace": self.cluster,
                "labels": self.labels,
                "annotations": self.annotations,
            },
            "spec": self.spec,
        })
    }

    /// Returns the merge patch of this resource version to the desired work; it leaves fields of others unchanged.
    #[must_use]
    pub fn patch(&self, version: &str) -> Value {
        let mut spec = self.spec.clone();
        match spec.get_mut("deleteOption") {
            Some(Value::Object(option)) => {
                for field in ["selectivelyOrphans", "ttlSecondsAfterFinished"] {
                    option.entry(field).or_insert(Value::Null);
                }
            }
            _ => spec["deleteOption"] = Value::Null,
        }
        json!({
            "metadata": {
                "resourceVersion": version,
                "labels": with_nulls(&self.labels, &LABELS),
                "annotations": with_nulls(&self.annotations, &ANNOTATIONS),
            },
            "spec": spec,
        })
    }
}

/// Returns the desired entries, with nulls for entries of ours to remove.
fn with_nulls(desired: &Map<String, Value>, ours: &[&str]) -> Map<String, Value> {
    let mut all = desired.clone();
    for name in ours {
        all.entry(*name).or_insert(Value::Null);
    }
    all
}

fn labels(application: &Application, settings: &Settings) -> Map<String, Value> {
    let mut labels = Map::new();
    let mut add = |name: &str, value: &str| labels.insert(name.to_owned(), json!(value));
    add(works::MANAGED_BY, works::OURS);
    let Application { namespace, name, .. } = application;
    let is_beside = **namespace == *settings.argocd;
    let argocd_name = if is_beside {
        name.to_string()
    } else {
        format!("{namespace}_{name}")
    };
    add(works::APPLICATION_LABEL, &application_label(&argocd_name));
    let set = payload::set(application);
    // ACM finds the works of ApplicationSets by these two alone.
    if set.is_none() || settings.dialect == Dialect::ArgocdPullIntegration {
        add(names::PULL, "true");
    }
    if let Some(set) = &set {
        add(names::OF_SET, "true");
        if settings.dialect == Dialect::Acm {
            add(names::SET_HASH, &hex(&Sha1::digest(set)));
        }
    }
    labels
}

fn annotations(application: &Application) -> Map<String, Value> {
    let mut annotations = Map::new();
    let mut add = |name: &str, value: &str| annotations.insert(name.to_owned(), json!(value));
    add(names::HUB_NAMESPACE, &application.namespace);
    add(names::HUB_NAME, &application.name);
    if let Some(set) = payload::set(application) {
        add(names::SET, &set);
    }
    annotations
}

/// Returns the OCM resource identifier of an object of ours.
fn identifier(object: &Value) -> Option<Map<String, Value>> {
    let (group, resource) = match text_at(object, "/kind")? {
        names::KIND => (names::GROUP, names::PLURAL),
        names::PROJECT_KIND => (names::GROUP, names::PROJECT_PLURAL),
        _ => ("", "namespaces"),
    };
    let mut identifier = Map::new();
    let mut add = |key: &str, value: &str| identifier.insert(key.to_owned(), json!(value));
    add("group", group);
    add("resource", resource);
    add("name", text_at(object, "/metadata/name")?);
    if let Some(namespace) = text_at(object, "/metadata/namespace") {
        add("namespace", namespace);
    }
    Some(identifier)
}

/// Returns the ManifestConfig of an object: its update strategy and feedback rules.
fn config(object: &Value, application: &Application, retention: Retention, mode: FeedbackMode) -> Option<Value> {
    let kind = text_at(object, "/kind")?;
    let mut config = json!({"resourceIdentifier": identifier(object)?});
    if kind == names::KIND {
        config["feedbackRules"] = feedback::rules(application.sources);
        config[SCRAPE_TYPE] = mode.scrape_type().into();
    }
    let server_side = |more: Value| {
        let mut apply = json!({"force": true});
        apply.as_object_mut()?.extend(more.as_object()?.clone());
        Some(json!({"type": "ServerSideApply", "serverSideApply": apply}))
    };
    config["updateStrategy"] = match kind {
        _ if retention == Retention::Released => json!({"type": READ_ONLY}),
        // The cluster's Argo CD removes completed operations: the agent must not restore them with each sync.
        names::KIND => server_side(json!({"ignoreFields": [{
            "condition": "OnSpokeChange",
            "jsonPaths": [".operation", format!(r#".metadata.annotations["{REFRESH}"]"#)],
        }]}))?,
        names::PROJECT_KIND => server_side(json!({}))?,
        // The agent's default strategy, which leaves fields of others on a namespace unchanged.
        _ => return None,
    };
    Some(config)
}

/// Returns the rule that keeps an object on the cluster when the work is deleted, because others may need it as well.
fn orphan(object: &Value) -> Option<Value> {
    let stays = text_at(object, "/kind")? != names::KIND;
    stays.then(|| identifier(object).map(Value::from))?
}

#[cfg(test)]
mod tests;
