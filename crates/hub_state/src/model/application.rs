//! The model of an Application.

use super::{Generated, parse};
use crate::annotations::{REFRESH, SKIP_RECONCILE};
use crate::json;
use crate::pull;
use ocm::boolean::is_true;
use ocm::pull_model::{is_argo_cds, is_for_deletion_hooks};
use primitives::object_ref::ObjectRef;
use runtime::metadata::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    pub uid: Box<str>,
    pub version: Box<str>,
    /// The `status.conditions` of all writers.
    pub conditions: Vec<Condition>,
    /// True if Argo CD has been asked for a refresh and has not done it yet.
    pub refreshing: bool,
    /// True if Argo CD reconciles the Application.
    pub reconciled: bool,
    /// The namespace of the Argo CD that last reconciled it.
    pub served_by: Option<Box<str>>,
    pub deleting: bool,
    /// The finalizers that Argo CD removes on deletion.
    pub argocd_finalizers: Vec<Box<str>>,
    /// The fields that only the basic pull model needs; none for other Applications.
    pub pull: Option<Box<pull::Application>>,
    /// The fields that the report of its ApplicationSet needs; none without an ApplicationSet.
    pub generated: Option<Box<Generated>>,
}

/// A condition of an Application, in the format of Argo CD.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type, whose suffix is the severity.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// All other fields. Later versions of Argo CD may add some, and we must not drop them.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

impl Application {
    /// Returns the managed cluster in the destination of an Application that an ApplicationSet generated.
    pub fn cluster(&self) -> Option<&str> {
        let generated = self.generated.as_ref()?;
        match &self.pull {
            Some(pull) => pull.cluster.as_deref(),
            None => generated.cluster.as_deref(),
        }
    }

    /// Returns true if Argo CD runs hooks for its deletion.
    pub fn runs_deletion_hooks(&self) -> bool {
        self.deleting
            && self
                .argocd_finalizers
                .iter()
                .any(|finalizer| is_for_deletion_hooks(finalizer))
    }

    /// Returns true if the Argo CD in this namespace reconciles the Application. In another namespace, the Application names its
    /// Argo CD after the first reconciliation.
    pub fn is_of_argo_cd(&self, object_ref: &ObjectRef, argocd: &str) -> bool {
        *object_ref.namespace == *argocd || self.served_by.as_deref() == Some(argocd)
    }

    /// Returns the ApplicationSet that generated the Application, if it is on this hub.
    pub fn set(&self, object_ref: &ObjectRef) -> Option<ObjectRef> {
        let generated = self.generated.as_ref()?;
        Some(ObjectRef {
            namespace: Arc::clone(&object_ref.namespace),
            name: (*generated.set).into(),
        })
    }

    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Status {
            conditions: Option<Vec<Condition>>,
            controller_namespace: Option<Box<str>>,
        }
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
            status: Option<Status>,
        }
        let Object { metadata, status } = parse(text)?;
        let status = status.unwrap_or_default();
        let skips = metadata.annotation(SKIP_RECONCILE).is_some_and(is_true);
        let owners: Vec<_> = metadata.owner_references.iter().map(json::borrowed).collect();
        let set = pull::application::owning_set(&owners);
        let (mut generated, mut pull) = (None, None);
        if set.is_some() || metadata.label(ocm::pull_model::PULL).is_some() {
            let object = json::parse(text)?;
            generated = set.map(|set| Box::new(Generated::from_json(set, &object)));
            pull = pull::Application::from_json(&object)?.map(Box::new);
        }
        Ok(Self {
            refreshing: metadata.annotation(REFRESH).is_some(),
            reconciled: !skips,
            deleting: metadata.deletion_timestamp.is_some(),
            argocd_finalizers: metadata
                .finalizers
                .iter()
                .filter(|finalizer| is_argo_cds(finalizer))
                .map(|finalizer| finalizer.as_str().into())
                .collect(),
            served_by: status.controller_namespace,
            conditions: status.conditions.unwrap_or_default(),
            pull,
            generated,
            uid: metadata.uid,
            version: metadata.resource_version,
        })
    }
}
