//! What is read of a work of the pull model: which Application it carries, in what form, and what the cluster says of it.

use super::feedback::Feedback;
use super::requests::{Operation, Refresh};
use super::work::{self, Fingerprint};
use super::{annotation, entry, group, items, names, own, text};
use crate::controller::seen::is_true;
use serde_json::Value;

/// A work that carries an Application.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The namespace and the name of the hub's Application.
    pub application: (Box<str>, Box<str>),
    /// The ApplicationSet that has made it, as `NAMESPACE/NAME`.
    pub set: Option<Box<str>>,
    /// What distinguishes the work from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of the work this is.
    pub version: Box<str>,
    /// Whether the work is going.
    pub deleting: bool,
    /// What the work is like, as far as that is decided here.
    pub fingerprint: Fingerprint,
    /// The operation that it carries.
    pub operation: Option<Operation>,
    /// The request to refresh that it carries.
    pub refresh: Option<Refresh>,
    /// The form of the Application that it carries.
    pub payload: Option<Box<str>>,
    /// Whether the agent has said anything of the Application.
    pub heard: bool,
    /// Whether it has applied the Application in the present form of the work.
    pub applied: bool,
    /// Why it could not.
    pub refused: Option<Box<str>>,
    /// Whether it says that the Application is not on the cluster. What was fed back before stays in the work then.
    pub missing: bool,
    /// What the cluster says.
    pub feedback: Feedback,
}

impl Carried {
    /// Reads a work; nothing for one that is not of the pull model.
    #[must_use]
    pub fn read(work: &Value) -> Option<Self> {
        let is_pull = entry(work, "labels", names::PULL).is_some_and(is_true);
        if !is_pull && entry(work, "labels", names::OF_SET).is_none() {
            return None;
        }
        let application = (
            annotation(work, names::HUB_NAMESPACE)?.into(),
            annotation(work, names::HUB_NAME)?.into(),
        );
        let payload = items(work, "/spec/workload/manifests")
            .iter()
            .find(|object| is_application(object))
            .unwrap_or(&Value::Null);
        let said = said(work, payload);
        let generation = work.pointer("/metadata/generation").and_then(Value::as_i64);
        let applied = said.and_then(|said| condition(said, "Applied", generation));
        let refused = applied.filter(|applied| text(applied, "/status") == Some("False"));
        let available = said.and_then(|said| condition(said, "Available", None));
        Some(Self {
            application,
            set: annotation(work, names::SET).map(Into::into),
            uid: own(work, "/metadata/uid").unwrap_or_default(),
            version: own(work, "/metadata/resourceVersion").unwrap_or_default(),
            deleting: text(work, "/metadata/deletionTimestamp").is_some(),
            fingerprint: work::fingerprint(work),
            operation: Operation::of_payload(payload),
            refresh: Refresh::of_payload(payload),
            payload: annotation(payload, names::PAYLOAD).map(Into::into),
            heard: said.is_some(),
            applied: applied.is_some_and(|applied| text(applied, "/status") == Some("True")),
            refused: refused.map(|refused| own(refused, "/message").unwrap_or_else(|| "no reason is given".into())),
            missing: available.is_some_and(|available| text(available, "/status") == Some("False")),
            feedback: said.map(Feedback::read).unwrap_or_default(),
        })
    }

    /// Whether what the cluster says is of the form that the work carries.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.heard && !self.missing && self.payload == self.feedback.payload
    }

    /// Whether the cluster has had this operation and has it no longer.
    #[must_use]
    pub fn has_done(&self, operation: &Operation) -> bool {
        self.is_current() && self.feedback.operation_pending.as_deref() != Some(&*operation.id)
    }

    /// Whether this operation is the last that the cluster's Argo CD has begun.
    #[must_use]
    pub fn has_begun(&self, operation: &Operation) -> bool {
        self.feedback.operation_begun.as_deref() == Some(&*operation.id)
    }
}

fn is_application(object: &Value) -> bool {
    let api_version = text(object, "/apiVersion").unwrap_or_default();
    group(api_version) == names::GROUP && text(object, "/kind") == Some(names::KIND)
}

/// What the agent says of the Application. It is found by what it is called, wherever it stands: there may be other objects in the
/// work, and what is said of those of an earlier form of it. An agent to which the kind is not known knows no plural of it.
fn said<'v>(work: &'v Value, payload: &Value) -> Option<&'v Value> {
    let same = |meta: &Value, key: &str| text(meta, &format!("/{key}")) == text(payload, &format!("/metadata/{key}"));
    items(work, "/status/resourceStatus/manifests").iter().find(|manifest| {
        let Some(meta) = manifest.get("resourceMeta") else {
            return false;
        };
        let is_kind = text(meta, "/resource") == Some(names::PLURAL) || text(meta, "/kind") == Some(names::KIND);
        is_kind && text(meta, "/group") == Some(names::GROUP) && same(meta, "namespace") && same(meta, "name")
    })
}

/// The condition of this type, if it is not of an earlier generation than this.
fn condition<'v>(said: &'v Value, kind: &str, generation: Option<i64>) -> Option<&'v Value> {
    let mut conditions = items(said, "/conditions").iter();
    let condition = conditions.find(|condition| text(condition, "/type") == Some(kind))?;
    let observed = condition.get("observedGeneration").and_then(Value::as_i64);
    let is_behind = generation.is_some_and(|generation| observed.is_some_and(|observed| observed < generation));
    (!is_behind).then_some(condition)
}
