//! What is seen of the hub's objects: the little that the promises need. A fleet's works carry every manifest; of those nothing
//! is kept but how they fare.

use crate::status::{self, ObjectStatus, Verdict, WorkStatus};
use crate::tracking::{Claim, INSTALLATION_ID, Itself, TRACKING_ID, Tracking};
use crate::{diff, works};
use k8s_openapi::jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where an object is on the hub; for one without a namespace, that is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl Place {
    /// The place of this namespace and name.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// The annotation by which Argo CD is asked to look at an Application again; it removes it when it has.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";

/// The annotation of Applications that Argo CD leaves alone.
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// An Application.
#[derive(Clone, Debug)]
pub struct Application {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// Its `status.conditions`, whoever set them.
    pub conditions: Vec<Condition>,
    /// Whether Argo CD has been asked to look at it again, and has not yet.
    pub refreshing: bool,
    /// Whether Argo CD reconciles it.
    pub reconciled: bool,
    /// Whether it is going.
    pub deleting: bool,
}

/// A condition of an Application, as Argo CD has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type, whose ending says how grave it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is to be said.
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// What else stands there, which later Argo CDs may write: it is not ours to lose.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    deletion_timestamp: Option<IgnoredAny>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

impl Metadata {
    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }
}

/// What is read of any object.
#[derive(Deserialize)]
struct Text<S> {
    metadata: Metadata,
    #[serde(default = "nothing")]
    status: Option<S>,
}

fn nothing<T>() -> Option<T> {
    None
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Application {
    /// Reads an Application's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Status {
            conditions: Option<Vec<Condition>>,
        }
        let Text { metadata, status } = read::<Text<Status>>(text)?;
        let skips = metadata.annotation(SKIP_RECONCILE).is_some_and(is_true);
        Ok(Self {
            refreshing: metadata.annotation(REFRESH).is_some(),
            reconciled: !skips,
            deleting: metadata.deletion_timestamp.is_some(),
            conditions: status.and_then(|status| status.conditions).unwrap_or_default(),
            uid: metadata.uid,
            version: metadata.resource_version,
        })
    }
}

/// As Go's `strconv.ParseBool` reads it, by which Argo CD does.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// For one cluster.
    Work,
    /// For the clusters of a Placement.
    Set,
}

impl WorkKind {
    /// As Kubernetes calls it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Work => works::KIND,
            Self::Set => works::SET_KIND,
        }
    }
}

/// A work that may be an Application's.
#[derive(Clone, Debug)]
pub struct Work {
    /// What says whose it is.
    marks: Marks,
    /// Of which ManifestWorkReplicaSet OCM has made it, as `NAMESPACE.NAME`.
    pub set: Option<Box<str>>,
    /// How it fares.
    pub standing: Standing,
    /// From when on it fares otherwise where nothing else happens, in the order of time.
    pub later: Vec<(Timestamp, Standing)>,
}

#[derive(Clone, Debug)]
struct Marks {
    tracking_id: Option<Box<str>>,
    installation_id: Option<Box<str>>,
    labels: BTreeMap<String, String>,
}

/// How a work fares, in the words of its health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How it fares.
    pub verdict: Verdict,
    /// Whether the agent has applied all of it in its present form.
    pub applied: bool,
    /// How many objects it has; none are known of a ManifestWorkReplicaSet.
    pub objects: usize,
    /// What the agent cannot apply, and why.
    pub refused: Option<String>,
    /// What is wrong otherwise.
    pub wrong: Option<String>,
    /// What Argo CD shows.
    pub message: String,
}

/// The most of what is kept of a text, in bytes.
pub const TEXT_MAX: usize = 512;

impl Work {
    /// Reads a work's JSON, and judges it; nothing for one that can be nobody's.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str, now: Timestamp) -> Result<Option<Self>, String> {
        let Text { metadata, .. } = read::<Text<IgnoredAny>>(text)?;
        let set = metadata.label(diff::OF_REPLICA_SET).map(Into::into);
        let own = |text: Option<&str>| text.map(Into::into);
        let marks = Marks {
            tracking_id: own(metadata.annotation(TRACKING_ID)),
            installation_id: own(metadata.annotation(INSTALLATION_ID)),
            labels: metadata.labels.unwrap_or_default(),
        };
        if marks.tracking_id.is_none() && marks.labels.is_empty() {
            return Ok(None);
        }
        let forecast = status::forecast(text, now)?;
        let mut standings = forecast.iter().map(|(at, status)| (*at, Standing::of(status)));
        let (_, standing) = standings.next().ok_or("no verdict")?;
        Ok(Some(Self {
            set,
            marks,
            standing,
            later: standings.collect(),
        }))
    }

    /// The Application whose it is, as Argo CD calls it.
    #[must_use]
    pub fn application(&self, tracking: &Tracking, kind: WorkKind, place: &Place) -> Option<&str> {
        // What OCM makes of a set has the labels of the set's template, and is the set's.
        if self.set.is_some() {
            return None;
        }
        let claim = Claim {
            tracking_id: self.marks.tracking_id.as_deref(),
            installation_id: self.marks.installation_id.as_deref(),
            label: self.marks.labels.get(tracking.label()).map(String::as_str),
        };
        let itself = Itself {
            group: works::GROUP,
            kind: kind.kind(),
            namespace: &place.namespace,
            name: &place.name,
        };
        tracking.application(&claim, &itself)
    }
}

impl Standing {
    fn of(status: &WorkStatus) -> Self {
        let is_ill = |object: &&ObjectStatus| object.verdict.in_argo_cd() == Verdict::Degraded.in_argo_cd();
        let is_refused = |object: &&ObjectStatus| is_ill(object) && object.applied == Some(false);
        // Said of a work whose objects are well: the agent cannot apply it.
        let whole = Some(&status.message)
            .filter(|message| is_bad(status.verdict) && !message.is_empty())
            .cloned();
        let (refused, wrong) = match whole {
            Some(message) if status.as_a_whole => (None, Some(message)),
            Some(message) => (Some(message), None),
            None => (
                status.listed(ObjectStatus::full_name, is_refused),
                status.listed(ObjectStatus::short_name, |it| is_ill(it) && !is_refused(it)),
            ),
        };
        let has_applied = |object: &ObjectStatus| object.applied == Some(true);
        Self {
            verdict: status.verdict,
            applied: status.verdict != Verdict::Waiting
                && refused.is_none()
                && status
                    .objects
                    .iter()
                    .all(|object| status.as_a_whole || has_applied(object)),
            objects: status.objects.len(),
            refused: refused.map(bounded),
            wrong: wrong.map(bounded),
            message: bounded(status.summary()),
        }
    }

    /// Whether Argo CD would say another word for it.
    #[must_use]
    pub fn is_same_in_argo_cd(&self, other: &Self) -> bool {
        self.verdict.in_argo_cd() == other.verdict.in_argo_cd()
    }
}

/// Whether it needs somebody.
fn is_bad(verdict: Verdict) -> bool {
    verdict.in_argo_cd() == Verdict::Degraded.in_argo_cd()
}

/// Cuts a text that is too long for a condition, and takes the lines out of it.
#[must_use]
pub fn bounded(text: String) -> String {
    let mut text = if text.contains(char::is_control) {
        text.split(char::is_control)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        text
    };
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX - '…'.len_utf8())
            .rev()
            .find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// Whether the hub hears from a managed cluster, as OCM says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its agent is heard.
    Heard,
    /// Its agent is silent.
    Silent,
    /// Its agent says that its API server is not well.
    Unwell,
}

impl Reach {
    /// Reads a ManagedCluster's JSON. One that has never been heard of has not joined, which is not silence.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Status {
            conditions: Option<Vec<Available>>,
        }
        #[derive(Deserialize)]
        struct Available {
            #[serde(rename = "type")]
            kind: String,
            status: String,
        }
        let Text { status, .. } = read::<Text<Status>>(text)?;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        let mut conditions = conditions.iter();
        let available = conditions.find(|condition| condition.kind == "ManagedClusterConditionAvailable");
        Ok(match available.map(|available| &*available.status) {
            Some("Unknown") => Self::Silent,
            Some("False") => Self::Unwell,
            _ => Self::Heard,
        })
    }
}

/// Reads how Argo CD tracks from the JSON of its ConfigMap.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn tracking(text: &str) -> Result<Tracking, String> {
    #[derive(Deserialize)]
    struct Config {
        data: Option<BTreeMap<String, String>>,
    }
    let data = read::<Config>(text)?.data.unwrap_or_default();
    Ok(Tracking::configured(|key| data.get(key).map(String::as_str)))
}
