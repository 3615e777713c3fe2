//! The work around an Application: what it is called, what it carries, and how the agent treats that.

use super::application::Application;
use super::carried::{Applied, Carried};
use super::requests::Requests;
use super::{Dialect, Settings, feedback, hash, items, names, payload, text};
use crate::controller::seen::REFRESH;
use crate::generate::names::{hex, with_hash};
use crate::works;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// What a work is like, as far as that is decided here: two are as alike as their fingerprints.
pub type Fingerprint = [u8; 16];

/// The most characters of a work's name: the agent puts 65 before it.
const NAME_MAX: usize = 188;

/// How many digits of a hash tell works of one name apart: 40 bits.
const HASH_DIGITS: usize = 10;

/// How much of an Application's UID the peers put into a work's name.
const UID_DIGITS: usize = 5;

/// The policy by which what a work has delivered stays when it goes.
const ORPHAN: &str = "Orphan";

/// The strategy by which an agent only looks.
const READ_ONLY: &str = "ReadOnly";

/// The labels that are ours.
const LABELS: [&str; 3] = [names::PULL, names::OF_SET, names::SET_HASH];

/// The annotations that are ours.
const ANNOTATIONS: [&str; 3] = [names::HUB_NAMESPACE, names::HUB_NAME, names::SET];

/// What a new work of an Application is called: as the peers call it, unless the agent could not have that name.
#[must_use]
pub fn name(application: &Application) -> String {
    let Application { name, uid, .. } = application;
    let digits: String = uid.chars().take(UID_DIGITS).collect();
    let short = format!("{name}-{digits}");
    let is_usable = short.len() <= NAME_MAX && digits.len() == UID_DIGITS;
    if is_usable { short } else { other_name(application) }
}

/// What it is called where that name is taken by another Application's work.
#[must_use]
pub fn other_name(application: &Application) -> String {
    let Application {
        namespace, name, uid, ..
    } = application;
    let hash = hash(&[namespace, name, uid], HASH_DIGITS);
    with_hash(name.to_string(), "-", &hash, NAME_MAX)
}

/// Returns the names that works of an Application have: [`name`] and [`other_name`]. Both have part of its UID, and a cluster's agent
/// can neither create nor rename works.
#[must_use]
pub fn names(application: &Application) -> [String; 2] {
    [name(application), other_name(application)]
}

/// Returns true if a work of this name may carry an Application that is called `application`, whatever the Application's UID.
#[must_use]
pub fn may_carry(work: &str, application: &str) -> bool {
    let Some((stem, digits)) = work.rsplit_once('-') else {
        return false;
    };
    digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && match digits.len() {
            UID_DIGITS => stem == application,
            HASH_DIGITS => stem == with_hash(application.to_owned(), "", "", NAME_MAX - HASH_DIGITS - 1),
            _ => false,
        }
}

/// How far a work is on its way to let go of what it has delivered, so that something else can take it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// What it has delivered goes with it.
    Firm,
    /// The agent is to take its mark of ownership off what it has delivered, which it does as it applies that.
    Loosening,
    /// The agent only looks. It does nothing more to what it has delivered, which is why the mark had to go before: whatever of
    /// Kubernetes still has it goes with the work.
    Loose,
}

impl Hold {
    /// That of a work which is there.
    pub(super) fn read(work: &Value) -> Self {
        let mut configs = items(work, "/spec/manifestConfigs").iter();
        let is_read_only = |config: &Value| text(config, "/updateStrategy/type") == Some(READ_ONLY);
        match text(work, "/spec/deleteOption/propagationPolicy") {
            Some(ORPHAN) if configs.all(is_read_only) => Self::Loose,
            Some(ORPHAN) => Self::Loosening,
            _ => Self::Firm,
        }
    }

    /// What is next for the work that is there, if all is to be let go. What has never been applied has no mark.
    #[must_use]
    pub fn next(settings: &Settings, carried: Option<&Carried>) -> Self {
        let now = carried.map_or(Self::Loose, |carried| carried.hold);
        let is_applied = carried.is_some_and(|carried| carried.applied == Applied::Done);
        match now {
            _ if !settings.read_only => Self::Firm,
            Self::Loosening if is_applied => Self::Loose,
            Self::Loose => Self::Loose,
            Self::Firm | Self::Loosening => Self::Loosening,
        }
    }
}

/// A work as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    cluster: String,
    name: String,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    spec: Value,
}

impl Desired {
    /// The work of this name that carries an Application to this cluster, with its AppProject on the hub if that is to be
    /// delivered.
    #[must_use]
    pub fn of(
        application: &Application,
        (cluster, name): (&str, &str),
        settings: &Settings,
        requests: &Requests,
        project: Option<&Value>,
        hold: Hold,
    ) -> Self {
        let manifests = payload::manifests(application, settings, requests, project);
        let configs: Vec<Value> = manifests
            .iter()
            .filter_map(|object| config(object, application, hold))
            .collect();
        let orphans: Vec<Value> = manifests.iter().filter_map(orphan).collect();
        let mut spec = json!({"workload": {}});
        spec["workload"]["manifests"] = manifests.into();
        spec["manifestConfigs"] = configs.into();
        if hold != Hold::Firm {
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
        }
    }

    /// What it is like.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint_of(Some(&self.labels), Some(&self.annotations), &self.spec)
    }

    /// The work, to be created.
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

    /// The merge patch that makes this form of a work so, and leaves alone what is not ours.
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

/// With those of ours that are not wanted, to be removed.
fn with_nulls(wanted: &Map<String, Value>, ours: &[&str]) -> Map<String, Value> {
    let mut all = wanted.clone();
    for name in ours {
        all.entry(*name).or_insert(Value::Null);
    }
    all
}

fn labels(application: &Application, settings: &Settings) -> Map<String, Value> {
    let mut labels = Map::new();
    let mut add = |name: &str, value: &str| labels.insert(name.to_owned(), json!(value));
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

/// What OCM calls an object of ours.
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

/// How the agent treats an object.
fn config(object: &Value, application: &Application, hold: Hold) -> Option<Value> {
    let kind = text(object, "/kind")?;
    let mut config = json!({"resourceIdentifier": identifier(object)?});
    if kind == names::KIND {
        config["feedbackRules"] = feedback::rules(application.sources);
    }
    let server_side = |more: Value| {
        let mut apply = json!({"force": true});
        apply.as_object_mut()?.extend(more.as_object()?.clone());
        Some(json!({"type": "ServerSideApply", "serverSideApply": apply}))
    };
    config["updateStrategy"] = match kind {
        _ if hold == Hold::Loose => json!({"type": READ_ONLY}),
        // The Argo CD there takes away what it has done: it is not to come back with each look of the agent.
        names::KIND => server_side(json!({"ignoreFields": [{
            "condition": "OnSpokeChange",
            "jsonPaths": [".operation", format!(r#".metadata.annotations["{REFRESH}"]"#)],
        }]}))?,
        names::PROJECT_KIND => server_side(json!({}))?,
        // The agent's own way, which leaves alone what others have put on a namespace.
        _ => return None,
    };
    Some(config)
}

/// The rule by which an object stays on the cluster when the work goes: others may need it as well.
fn orphan(object: &Value) -> Option<Value> {
    let stays = text(object, "/kind")? != names::KIND;
    stays.then(|| identifier(object).map(Value::from))?
}

/// What a work is like.
#[must_use]
pub fn fingerprint(work: &Value) -> Fingerprint {
    let map = |path| work.pointer(path).and_then(Value::as_object);
    let spec = work.get("spec").unwrap_or(&Value::Null);
    fingerprint_of(map("/metadata/labels"), map("/metadata/annotations"), spec)
}

/// The same of its parts. Nothing is copied, because this is done at each look at each Application.
fn fingerprint_of(
    labels: Option<&Map<String, Value>>,
    annotations: Option<&Map<String, Value>>,
    spec: &Value,
) -> Fingerprint {
    let whole = (
        LABELS.map(|name| labels?.get(name)),
        ANNOTATIONS.map(|name| annotations?.get(name)),
        spec.pointer("/workload/manifests"),
        spec.get("manifestConfigs").map(WithoutDefaults),
        delete_option(spec),
    );
    let text = serde_json::to_vec(&whole).expect("JSON is written as JSON");
    let digest = Sha256::digest(text);
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// What the API server adds to how the agent treats an object, wherever it stands there.
const DEFAULTS: [(&str, &str); 2] = [("feedbackScrapeType", "Poll"), ("fieldManager", "work-agent")];

/// How the agent treats objects, without what the API server adds.
struct WithoutDefaults<'v>(&'v Value);

impl Serialize for WithoutDefaults<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_default =
            |key: &str, value: &Value| value.as_str().is_some_and(|value| DEFAULTS.contains(&(key, value)));
        match self.0 {
            Value::Object(map) => {
                let fields = map.iter().filter(|(key, value)| !is_default(key, value));
                serializer.collect_map(fields.map(|(key, value)| (key, WithoutDefaults(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(WithoutDefaults)),
            other => other.serialize(serializer),
        }
    }
}

/// The same of what happens when the work goes: the default is to say nothing.
fn delete_option(spec: &Value) -> Option<&Value> {
    let option = spec.get("deleteOption")?;
    let is_default = option.as_object().is_some_and(|option| {
        let mut fields = option.iter();
        fields.all(|(key, value)| key == "propagationPolicy" && value.as_str() == Some("Foreground"))
    });
    (!is_default).then_some(option)
}

#[cfg(test)]
mod tests;
