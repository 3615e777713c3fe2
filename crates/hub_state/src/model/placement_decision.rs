//! The model of a PlacementDecision.

use crate::json::{self, entry, items, text_at};
use ocm::ownership::OF_PLACEMENT;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementDecision {
    /// The name of the Placement; empty if there is none.
    pub placement: Arc<str>,
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

    pub fn from_json(text: &str) -> Result<Self, String> {
        let object = json::parse(text)?;
        let decisions = items(&object, "/status/decisions").iter();
        let clusters = decisions.filter_map(|decision| text_at(decision, "/clusterName"));
        Ok(Self {
            placement: entry(&object, "labels", OF_PLACEMENT).unwrap_or_default().into(),
            clusters: clusters.map(Into::into).collect(),
        })
    }
}
