//! Reads a ManifestWork of the pull model: the Application that it carries, its payload, and the status that the cluster reports.

use super::feedback::Feedback;
use super::fingerprint::{self, Fingerprint};
use super::forwarded::{OperationRequest, RefreshRequest};
use super::options::FeedbackMode;
use super::payload_id::{finalizers_hash, finalizers_in};
use super::text::group;
use crate::json::{annotation, at, check_depth, entry, integer_at, items, own, text_at};
use manifest::value::Value;
use ocm::boolean::is_true;
use ocm::pull_model as names;
use primitives::object_ref::ObjectRef;
use std::sync::Arc;

/// The result of the agent's attempt to apply an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyState {
    /// The agent has not reported on it.
    Unknown,
    /// The agent has not yet applied the current generation of the work.
    Pending,
    Succeeded,
    Failed(Box<str>),
}

/// A ManifestWork that carries an Application.
#[derive(Clone, Debug, PartialEq)]
pub struct PullWork {
    /// The name of the Application in the work.
    pub name: Arc<str>,
    /// The namespace and name of the hub's Application that the work claims to carry, unless its payload has another name. The
    /// cluster's agent may change everything in its works but their names: a claim alone proves nothing.
    pub claim: Option<ObjectRef>,
    /// The UID of the Application for which the work was last written; `None` if an earlier version or another controller wrote it.
    pub application_uid: Option<Box<str>>,
    /// The ApplicationSet that created the Application, as `NAMESPACE/NAME`.
    pub set: Option<Box<str>>,
    pub uid: Box<str>,
    pub version: Box<str>,
    pub deleting: bool,
    /// True if the agent has added its finalizer. It applies nothing before.
    pub has_agent_finalizer: bool,
    /// The hash of the parts of the work that the controller writes.
    pub fingerprint: Fingerprint,
    /// The feedback mode of the Application; `None` if the API server does not store one.
    pub feedback_mode: Option<FeedbackMode>,
    pub operation: Option<OperationRequest>,
    pub refresh: Option<RefreshRequest>,
    /// The position of the Application in the manifests, and the hash of its finalizers; `None` without one.
    pub manifest: Option<(usize, Box<str>)>,
    /// The position of the configuration with which the agent only observes the Application, and applies no finalizers to it.
    pub read_only_config: Option<usize>,
    pub payload: Option<Box<str>>,
    /// The progress of releasing the delivered objects.
    pub retention: Retention,
    pub applied: ApplyState,
    /// True if the agent reports that the Application is missing on the cluster. Earlier feedback stays in the work in that case.
    pub missing: bool,
    pub feedback: Feedback,
}

impl PullWork {
    /// Reads a work; returns `None` for one that neither contains an Application nor claims to. Fails if its values are too deep for a
    /// fingerprint.
    pub fn from_json(work: &Value<'_>) -> Result<Option<Self>, String> {
        let mut manifests = items(work, "/spec/workload/manifests").iter().enumerate();
        let (position, payload) = manifests.find(|(_, manifest)| is_application(manifest)).unzip();
        let claim = claim(work);
        let contained = payload.and_then(|payload| text_at(payload, "/metadata/name"));
        let Some(name) = contained.or(claim.map(|(_, name)| name)) else {
            return Ok(None);
        };
        // Of all that is copied, only the spec may be deep. The agent writes other fields, such as `managedFields`.
        at(work, "/spec").map_or(Ok(()), check_depth)?;
        let name = Arc::from(name);
        let reported = payload.and_then(|payload| reported(work, payload));
        let generation = integer_at(work, "/metadata/generation");
        let available = reported.and_then(|reported| condition(reported, "Available", None));
        let is_kind_unknown = reported.is_some_and(|reported| text_at(reported, "/resourceMeta/resource").is_none());
        Ok(Some(Self {
            claim: claim
                .filter(|(_, claimed)| **claimed == *name)
                .map(|(namespace, _)| ObjectRef {
                    namespace: namespace.into(),
                    name: Arc::clone(&name),
                }),
            name,
            application_uid: annotation(work, names::HUB_UID).map(Into::into),
            set: annotation(work, names::SET).map(Into::into),
            uid: own(work, "/metadata/uid").unwrap_or_default(),
            version: own(work, "/metadata/resourceVersion").unwrap_or_default(),
            retention: Retention::from_work(work),
            deleting: text_at(work, "/metadata/deletionTimestamp").is_some(),
            has_agent_finalizer: texts(work, "/metadata/finalizers").any(|finalizer| finalizer == AGENT_FINALIZER),
            fingerprint: fingerprint::fingerprint(work),
            feedback_mode: fingerprint::feedback_mode(work),
            operation: payload.and_then(OperationRequest::of_payload),
            refresh: payload.and_then(RefreshRequest::of_payload),
            manifest: position.zip(payload).map(|(position, payload)| {
                let finalizers: Vec<_> = texts(payload, "/metadata/finalizers").collect();
                (position, finalizers_hash(&finalizers).into())
            }),
            read_only_config: items(work, "/spec/manifestConfigs")
                .iter()
                .position(observes_application),
            payload: payload
                .and_then(|payload| annotation(payload, names::PAYLOAD))
                .map(Into::into),
            applied: reported.map_or(ApplyState::Unknown, |reported| applied(reported, generation)),
            missing: is_kind_unknown
                || available.is_some_and(|available| text_at(available, "/status") == Some("False")),
            feedback: reported.map(Feedback::from_manifest).unwrap_or_default(),
        }))
    }

    /// Returns true if another controller made the work read-only, as Red Hat ACM does when its pull model is disabled.
    pub fn is_frozen_by_another(&self) -> bool {
        self.retention == Retention::Owned && self.read_only_config.is_some()
    }

    /// Returns the reason why the agent could not apply the current generation of the work.
    pub fn refused(&self) -> Option<&str> {
        match &self.applied {
            ApplyState::Failed(why) => Some(why),
            ApplyState::Unknown | ApplyState::Pending | ApplyState::Succeeded => None,
        }
    }

    /// Returns true if the cluster's feedback is of the payload that the work carries.
    pub fn is_current(&self) -> bool {
        self.applied != ApplyState::Unknown && !self.missing && self.payload == self.feedback.payload
    }

    /// Returns true if the Application in the work has exactly these finalizers of Argo CD.
    pub fn has_finalizers(&self, finalizers: &[&str]) -> bool {
        let present = self.manifest.as_ref();
        present.is_some_and(|(_, present)| **present == *finalizers_hash(finalizers))
    }

    /// Returns true if the cluster's Application has the finalizers of the payload, or if there is none on the cluster. An agent
    /// applies no work that is being deleted.
    pub fn has_applied_finalizers(&self) -> bool {
        if self.missing && self.refused().is_some() {
            return true;
        }
        match self.feedback.payload.as_deref().and_then(finalizers_in) {
            Some(applied) => self
                .manifest
                .as_ref()
                .is_none_or(|(_, finalizers)| **finalizers == *applied),
            // There is no Application in it, or its feedback is of an earlier version, or of another controller.
            None => self.manifest.is_none() || self.applied == ApplyState::Succeeded,
        }
    }

    /// Returns true if the cluster has done the requested comparison of the payload that the work carries.
    pub fn has_compared(&self) -> bool {
        self.is_current() && self.feedback.refresh_pending.is_none()
    }

    /// Returns true if the cluster is synced with Git for the payload that the work carries.
    pub fn is_synced(&self) -> bool {
        self.is_current() && self.feedback.reported.sync.status.as_deref() == Some("Synced")
    }

    /// Returns true if the cluster's Argo CD is running an operation, including one of its own. It would not start another one,
    /// and would clear it together with the running one.
    pub fn is_busy(&self) -> bool {
        let operation = self.feedback.reported.operation.as_ref();
        self.is_current() && operation.is_some_and(|operation| ["Running", "Terminating"].contains(&&*operation.phase))
    }

    /// Returns true if the cluster had this operation and has completed it.
    pub fn has_done(&self, operation: &OperationRequest) -> bool {
        self.is_current() && self.feedback.operation_pending.as_deref() != Some(&*operation.id)
    }

    /// Returns true if this operation is the last that the cluster's Argo CD started.
    pub fn has_begun(&self, operation: &OperationRequest) -> bool {
        self.feedback.operation_begun.as_deref() == Some(&*operation.id)
    }
}

/// The propagation policy that keeps delivered objects when the work is deleted.
pub const ORPHAN: &str = "Orphan";

/// The update strategy with which an agent only observes.
pub const READ_ONLY: &str = "ReadOnly";

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
    pub fn from_work(work: &Value<'_>) -> Self {
        let mut configs = items(work, "/spec/manifestConfigs").iter();
        match text_at(work, "/spec/deleteOption/propagationPolicy") {
            Some(ORPHAN) if configs.all(is_read_only) => Self::Released,
            Some(ORPHAN) => Self::Orphaning,
            _ => Self::Owned,
        }
    }
}

/// Returns true if the agent only observes the objects of an entry of `manifestConfigs`.
fn is_read_only(config: &Value<'_>) -> bool {
    text_at(config, "/updateStrategy/type") == Some(READ_ONLY)
}

const AGENT_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

fn texts<'v>(object: &'v Value<'_>, list: &str) -> impl Iterator<Item = &'v str> {
    items(object, list).iter().filter_map(Value::as_str)
}

/// Returns the namespace and the name of the Application that the labels and annotations of a work name.
fn claim<'v>(work: &'v Value<'_>) -> Option<(&'v str, &'v str)> {
    let is_pull = entry(work, "labels", names::PULL).is_some_and(is_true);
    if !is_pull && entry(work, "labels", names::OF_SET).is_none() {
        return None;
    }
    Some((
        annotation(work, names::HUB_NAMESPACE)?,
        annotation(work, names::HUB_NAME)?,
    ))
}

fn is_application(object: &Value<'_>) -> bool {
    let api_version = text_at(object, "/apiVersion").unwrap_or_default();
    group(api_version) == names::GROUP && text_at(object, "/kind") == Some(names::KIND)
}

/// Returns true if it is the configuration of an Application that the agent only observes.
fn observes_application(config: &Value<'_>) -> bool {
    text_at(config, "/resourceIdentifier/group") == Some(names::GROUP)
        && text_at(config, "/resourceIdentifier/resource") == Some(names::PLURAL)
        && is_read_only(config)
}

/// Returns the agent's status of the Application. It is found by name, not by position: the work may contain other objects, and
/// the status may include objects of an earlier generation. An agent that does not know the kind reports no plural for it.
fn reported<'v, 't>(work: &'v Value<'t>, payload: &Value<'_>) -> Option<&'v Value<'t>> {
    let same = |meta: &Value<'_>, key: &str| {
        text_at(meta, &format!("/{key}")) == text_at(payload, &format!("/metadata/{key}"))
    };
    items(work, "/status/resourceStatus/manifests").iter().find(|manifest| {
        let Some(meta) = at(manifest, "/resourceMeta") else {
            return false;
        };
        let is_kind = text_at(meta, "/resource") == Some(names::PLURAL) || text_at(meta, "/kind") == Some(names::KIND);
        is_kind && text_at(meta, "/group") == Some(names::GROUP) && same(meta, "namespace") && same(meta, "name")
    })
}

fn applied(reported: &Value<'_>, generation: Option<i64>) -> ApplyState {
    let applied = condition(reported, "Applied", generation);
    match applied.and_then(|applied| text_at(applied, "/status")) {
        Some("True") => ApplyState::Succeeded,
        Some("False") => {
            let why = applied.and_then(|applied| own(applied, "/message"));
            ApplyState::Failed(why.unwrap_or_else(|| "no reason given".into()))
        }
        _ => ApplyState::Pending,
    }
}

/// Returns the condition of this type, unless it is older than this generation.
fn condition<'v, 't>(reported: &'v Value<'t>, kind: &str, generation: Option<i64>) -> Option<&'v Value<'t>> {
    let mut conditions = items(reported, "/conditions").iter();
    let condition = conditions.find(|condition| text_at(condition, "/type") == Some(kind))?;
    let observed = integer_at(condition, "/observedGeneration");
    let is_behind = generation.is_some_and(|generation| observed.is_some_and(|observed| observed < generation));
    (!is_behind).then_some(condition)
}
