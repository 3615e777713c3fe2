//! What is seen of an Application.

use super::{Generated, Place, Text, is_true, read};
use crate::pull;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

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
    /// What else is needed of it if it is of the basic pull model.
    pub pull: Option<Box<pull::Application>>,
    /// What the report of its ApplicationSet says of it, where it has one.
    pub generated: Option<Box<Generated>>,
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

impl Application {
    /// The managed cluster that it names itself, if an ApplicationSet has made it.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        let generated = self.generated.as_ref()?;
        match &self.pull {
            Some(pull) => pull.cluster.as_deref(),
            None => generated.cluster.as_deref(),
        }
    }

    /// The ApplicationSet that has made it, where it is here.
    #[must_use]
    pub fn set(&self, place: &Place) -> Option<Place> {
        let generated = self.generated.as_ref()?;
        Some(Place {
            namespace: Arc::clone(&place.namespace),
            name: (*generated.set).into(),
        })
    }

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
        let set = metadata.application_set();
        let generated = set.map(|set| Generated::read(set, text)).transpose()?;
        let skips = metadata.annotation(SKIP_RECONCILE).is_some_and(is_true);
        let pull = if metadata.label(pull::names::PULL).is_some() {
            pull::Application::read(&read(text)?).map(Box::new)
        } else {
            None
        };
        Ok(Self {
            refreshing: metadata.annotation(REFRESH).is_some(),
            reconciled: !skips,
            deleting: metadata.deletion_timestamp.is_some(),
            conditions: status.and_then(|status| status.conditions).unwrap_or_default(),
            pull,
            generated: generated.map(Box::new),
            uid: metadata.uid,
            version: metadata.resource_version,
        })
    }
}
