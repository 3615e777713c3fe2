//! What is seen of a work: how it fares, and whose it is.

use super::generated::Part;
use super::{Place, Text, read};
use crate::cluster_secret::Labels;
use crate::pull::{self, Carried};
use crate::report::Resource;
use crate::status::{self, ObjectStatus, Verdict, WorkStatus};
use crate::text::{is_unprintable, shortened};
use crate::tracking::{Claim, INSTALLATION_ID, Itself, TRACKING_ID, Tracking};
use crate::{diff, works};
use k8s_openapi::jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

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
    /// The Application that it carries, if it is of the basic pull model.
    pub carried: Option<Box<Carried>>,
    /// How it fares.
    pub standing: Standing,
    /// From when on it fares otherwise where nothing else happens, in the order of time.
    pub later: Vec<(Timestamp, Standing)>,
    /// What it consists of, as far as its agent has come to it; nothing is known of what it carries to an Argo CD there.
    pub parts: Arc<[Resource]>,
}

#[derive(Clone, Debug)]
struct Marks {
    tracking_id: Option<Box<str>>,
    installation_id: Option<Box<str>>,
    labels: Labels,
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

/// A text that every work with an Application in its `spec` has.
const APPLICATION: &str = "\"Application\"";

/// The most of what is kept of a text, in bytes.
pub const TEXT_MAX: usize = 512;

impl Work {
    /// Reads a work's JSON, and judges it; nothing for one that can be nobody's.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str, now: Timestamp) -> Result<Option<Self>, String> {
        let Text { metadata, status } = read::<Text<Status>>(text)?;
        let set = metadata.label(diff::OF_REPLICA_SET).map(Into::into);
        // The whole `spec` is read only where it may have an Application: works can be large.
        let claims = metadata.annotation(pull::names::HUB_NAME).is_some();
        let carried = if claims || memmem::find(text.as_bytes(), APPLICATION.as_bytes()).is_some() {
            Carried::read(&read(text)?).map(Box::new)
        } else {
            None
        };
        let own = |text: Option<&str>| text.map(Into::into);
        let labels = metadata.labels.as_ref().filter(|labels| !labels.is_empty());
        let marks = Marks {
            tracking_id: own(metadata.annotation(TRACKING_ID)),
            installation_id: own(metadata.annotation(INSTALLATION_ID)),
            labels: labels.map(Labels::of).unwrap_or_default(),
        };
        if marks.tracking_id.is_none() && labels.is_none() && carried.is_none() {
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
            parts: if carried.as_ref().is_none_or(|carried| carried.claim.is_none()) {
                parts(status)
            } else {
                Arc::default()
            },
            carried,
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
            label: self.marks.labels.get(tracking.label()),
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    resource_status: Option<ResourceStatus>,
}

#[derive(Deserialize)]
struct ResourceStatus {
    manifests: Option<Vec<Manifest>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    resource_meta: Option<Part>,
}

/// The objects of which an agent says something.
fn parts(status: Option<Status>) -> Arc<[Resource]> {
    let manifests = status.and_then(|status| status.resource_status?.manifests);
    let parts = manifests
        .unwrap_or_default()
        .into_iter()
        .filter_map(|it| it.resource_meta);
    let mut parts: Vec<_> = parts.map(Part::resource).collect();
    parts.sort_unstable();
    parts.into()
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
                && !(status.as_a_whole && status.verdict == Verdict::Unknown)
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
    let text = if text.contains(is_unprintable) {
        text.split(is_unprintable)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        text
    };
    match shortened(&text, TEXT_MAX) {
        Cow::Owned(shorter) => shorter,
        Cow::Borrowed(_) => text,
    }
}
