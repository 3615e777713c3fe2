//! The model of a PlacementDecision.

use super::{Text, parse};
use ocm::ownership::OF_PLACEMENT;
use primitives::object_ref::ObjectRef;
use runtime::invalid_object::InvalidObject;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A PlacementDecision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementDecision {
    /// The name of the Placement; empty if there is none.
    pub placement: Arc<str>,
    /// The selected managed clusters.
    pub clusters: BTreeSet<Arc<str>>,
}

impl PlacementDecision {
    /// Returns the Placement of the decision, which is in the same namespace.
    pub fn placement(&self, object_ref: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&object_ref.namespace),
            name: Arc::clone(&self.placement),
        }
    }

    /// Reads the JSON of a PlacementDecision.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON or a field is invalid.
    pub fn from_json(text: &str) -> Result<Self, InvalidObject> {
        #[derive(Deserialize)]
        struct Status {
            decisions: Option<Vec<Named>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            #[serde(default)]
            cluster_name: String,
        }
        let Text { metadata, status } = parse::<Text<Status>>(text)?;
        let decisions = status.and_then(|status| status.decisions).unwrap_or_default();
        let names = decisions.into_iter().map(|decision| decision.cluster_name);
        Ok(Self {
            placement: metadata.label(OF_PLACEMENT).unwrap_or_default().into(),
            clusters: names.filter(|name| !name.is_empty()).map(Into::into).collect(),
        })
    }
}
