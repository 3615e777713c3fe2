//! Builds the ManifestWork of an Application: its name, its manifests, and the agent's settings for them.

use super::application::Application;
use super::pull_work::{ApplyState, PullWork};
use super::requests::Requests;
use super::{Dialect, FeedbackMode, Settings, feedback, hash, payload};
use crate::annotations::REFRESH;
use crate::json::{Json, Written, at, items, text};
use ocm::hash::{beginning, hex, with_hash};
use ocm::names::application_label;
use ocm::pull_model as names;
use ocm::work as works;
use serde_json::{Map, Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A hash of the parts of a work that the controller writes: equal works have equal fingerprints.
pub type Fingerprint = [u8; 16];

/// The maximum length of a work's name: the agent adds a prefix of 65 characters.
const NAME_MAX: usize = 188;

/// The number of hash digits that distinguish works of one name: 40 bits.
const HASH_DIGITS: usize = 10;

/// The number of UID characters that the peer integrations put into a work's name.
const UID_DIGITS: usize = 5;

/// The propagation policy that keeps delivered objects when the work is deleted.
const ORPHAN: &str = "Orphan";

/// The update strategy with which an agent only observes.
const READ_ONLY: &str = "ReadOnly";

/// The labels that the controller owns.
const LABELS: [&str; 5] = [
    works::MANAGED_BY,
    works::APPLICATION_LABEL,
    names::PULL,
    names::OF_SET,
    names::SET_HASH,
];

/// The annotations that the controller owns.
const ANNOTATIONS: [&str; 3] = [names::HUB_NAMESPACE, names::HUB_NAME, names::SET];

/// Returns the name of a new work of an Application: that of the peer integrations, unless it is too long for the agent.
#[must_use]
pub fn name(application: &Application) -> String {
    let Application { name, uid, .. } = application;
    let digits: String = uid.chars().take(UID_DIGITS).collect();
    let short = format!("{name}-{digits}");
    let is_usable = short.len() <= NAME_MAX && digits.len() == UID_DIGITS;
    if is_usable { short } else { other_name(application) }
}

/// Returns the name to use if another Application's work has the first one.
#[must_use]
pub fn other_name(application: &Application) -> String {
    let Application {
        namespace, name, uid, ..
    } = application;
    let hash = hash(&[namespace, name, uid], HASH_DIGITS);
    with_hash(name.to_string(), "-", &hash, NAME_MAX)
}

/// Returns the names that works of an Application have: [`name`] and [`other_name`]. Both contain part of its UID, and a
/// cluster's agent can neither create nor rename works.
#[must_use]
pub fn names(application: &Application) -> [String; 2] {
    [name(application), other_name(application)]
}

/// Returns true if this is one of the [`names()`] of an Application's works.
#[must_use]
pub fn is_name(work: &str, application: &Application) -> bool {
    // Many Applications may have the same name, in different namespaces: of most, the first digits of the UID differ.
    let digits = work.rsplit_once('-').map_or("", |(_, digits)| digits);
    let may_be = digits.len() != UID_DIGITS || application.uid.starts_with(digits);
    may_be && (name(application) == work || other_name(application) == work)
}

/// Returns true if a work of this name may carry an Application named `application`, with any UID.
#[must_use]
pub fn may_be_work_of(work: &str, application: &str) -> bool {
    let Some((name, digits)) = work.rsplit_once('-') else {
        return false;
    };
    digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && match digits.len() {
            UID_DIGITS => name == application,
            HASH_DIGITS => name == stem_of(application),
            _ => false,
        }
}

/// Returns what [`names()`] of an Application begin with: its name, or the first part of a long one.
#[must_use]
pub fn stem_of(application: &str) -> &str {
    beginning(application, NAME_MAX - HASH_DIGITS - 1)
}

/// Returns the [stem](stem_of) of the Applications whose works have this name.
#[must_use]
pub fn stem(work: &str) -> &str {
    stem_of(work.rsplit_once('-').map_or(work, |(name, _)| name))
}

/// The progress of a work in releasing its delivered objects, so that another component can adopt them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// The delivered objects are deleted with the work.
    Owned,
    /// The agent removes its owner reference from the delivered objects, which it does when it applies them.
    Orphaning,
    /// The agent only observes. It no longer changes the delivered objects, so it must have removed the owner reference before:
    /// Kubernetes deletes with the work any object that still has one.
    Released,
}

impl Retention {
    /// Reads the state from an existing work.
    pub(super) fn read<V: Json>(work: &V) -> Self {
        let mut configs = items(work, "/spec/manifestConfigs").iter();
        let is_read_only = |config: &V| text(config, "/updateStrategy/type") == Some(READ_ONLY);
        match text(work, "/spec/deleteOption/propagationPolicy") {
            Some(ORPHAN) if configs.all(is_read_only) => Self::Released,
            Some(ORPHAN) => Self::Orphaning,
            _ => Self::Owned,
        }
    }

    /// Returns the next state of an existing work if everything is to be released. Objects that were never applied have no owner
    /// reference.
    #[must_use]
    pub fn next(settings: &Settings, pull_work: Option<&PullWork>) -> Self {
        let now = pull_work.map_or(Self::Released, |pull_work| pull_work.retention);
        let is_applied = pull_work.is_some_and(|pull_work| pull_work.applied == ApplyState::Succeeded);
        match now {
            _ if !settings.read_only => Self::Owned,
            Self::Orphaning if is_applied => Self::Released,
            Self::Released => Self::Released,
            Self::Owned | Self::Orphaning => Self::Orphaning,
        }
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
    pub fn of(
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
    let (group, resource) = match text(object, "/kind")? {
        names::KIND => (names::GROUP, names::PLURAL),
        names::PROJECT_KIND => (names::GROUP, names::PROJECT_PLURAL),
        _ => ("", "namespaces"),
    };
    let mut identifier = Map::new();
    let mut add = |key: &str, value: &str| identifier.insert(key.to_owned(), json!(value));
    add("group", group);
    add("resource", resource);
    add("name", text(object, "/metadata/name")?);
    if let Some(namespace) = text(object, "/metadata/namespace") {
        add("namespace", namespace);
    }
    Some(identifier)
}

/// Returns the ManifestConfig of an object: its update strategy and feedback rules.
fn config(object: &Value, application: &Application, retention: Retention, mode: FeedbackMode) -> Option<Value> {
    let kind = text(object, "/kind")?;
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
    let stays = text(object, "/kind")? != names::KIND;
    stays.then(|| identifier(object).map(Value::from))?
}

/// Returns the fingerprint of a work.
#[must_use]
pub fn fingerprint(work: &impl Json) -> Fingerprint {
    let [labels, annotations] = ["labels", "annotations"].map(|map| work.field("metadata")?.field(map));
    fingerprint_of(
        |name| labels?.field(name),
        |name| annotations?.field(name),
        work.field("spec"),
    )
}

/// Returns the fingerprint of a work's parts. Nothing is copied, because each reconcile of each Application computes it.
fn fingerprint_of<'v, V: Json + 'v>(
    label: impl Fn(&str) -> Option<&'v V>,
    annotation: impl Fn(&str) -> Option<&'v V>,
    spec: Option<&'v V>,
) -> Fingerprint {
    let whole = (
        LABELS.map(|name| label(name).map(Written::whole)),
        ANNOTATIONS.map(|name| annotation(name).map(Written::whole)),
        spec.and_then(|spec| at(spec, "/workload/manifests"))
            .map(Written::whole),
        spec.and_then(|spec| spec.field("manifestConfigs"))
            .map(|configs| Written::without(configs, is_default_or_mode)),
        spec.and_then(delete_option).map(Written::whole),
    );
    let text = serde_json::to_vec(&whole).expect("JSON is written as JSON");
    let digest = Sha256::digest(text);
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// The field of a ManifestConfig with its [`FeedbackMode`].
const SCRAPE_TYPE: &str = "feedbackScrapeType";

/// Returns the feedback mode of the Application in a work; `None` if the hub's OCM is older than 1.2, whose CRD lacks the field, so
/// that the API server removes it. Newer ones add a default.
#[must_use]
pub fn feedback_mode(work: &impl Json) -> Option<FeedbackMode> {
    let mut configs = items(work, "/spec/manifestConfigs").iter();
    let of_application = configs.find(|config| text(*config, "/resourceIdentifier/resource") == Some(names::PLURAL))?;
    Some(FeedbackMode::of_scrape_type(
        of_application.field(SCRAPE_TYPE)?.as_text()?,
    ))
}

/// The default that the API server adds to ManifestConfigs, at any depth.
const DEFAULT: (&str, &str) = ("fieldManager", "work-agent");

/// Returns true for a field of a ManifestConfig with the API server's default, and for its feedback mode, which not every API server
/// stores.
fn is_default_or_mode(key: &str, value: &impl Json) -> bool {
    key == SCRAPE_TYPE || value.as_text().is_some_and(|value| DEFAULT == (key, value))
}

/// Returns the delete option, or `None` for the default.
fn delete_option<V: Json>(spec: &V) -> Option<&V> {
    let option = spec.field("deleteOption")?;
    let is_default = option.as_fields().is_some_and(|mut fields| {
        fields.all(|(key, value)| key == "propagationPolicy" && value.as_text() == Some("Foreground"))
    });
    (!is_default).then_some(option)
}

#[cfg(test)]
mod tests;
