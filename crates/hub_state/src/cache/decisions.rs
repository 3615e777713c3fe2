//! The managed clusters that the Placements of a namespace select.

use super::Cache;
use crate::model::PlacementDecision;
use primitives::object_ref::ObjectRef;
use runtime::store::{Index, Indexed};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Indexed for PlacementDecision {
    type Key = ObjectRef;
    /// The decisions of each Placement.
    type Indices = Index<ObjectRef, ObjectRef>;

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }

    fn index(indices: &mut Self::Indices, object_ref: &ObjectRef, before: Option<&Self>, after: Option<&Self>) {
        if let Some(before) = before {
            indices.remove(&before.placement(object_ref), object_ref);
        }
        if let Some(after) = after {
            indices.insert(after.placement(object_ref), object_ref.clone());
        }
    }
}

impl Cache {
    /// Returns true if a Placement of this namespace selects this managed cluster.
    #[must_use]
    pub fn is_selected(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let all = self.decisions.from(ObjectRef::first_of(namespace));
        let mut in_namespace = all.take_while(|(object_ref, _)| object_ref.namespace == *namespace);
        in_namespace.any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// Returns the managed clusters in each decision of a Placement.
    fn decided(&self, placement: &ObjectRef) -> impl Iterator<Item = &BTreeSet<Arc<str>>> + use<'_> {
        let decisions = self.decisions.indices().get(placement);
        decisions.filter_map(|object_ref| Some(&self.decisions.get(object_ref)?.clusters))
    }

    /// Returns the managed clusters in the decisions of a Placement.
    pub fn selected_by(&self, placement: &ObjectRef) -> impl Iterator<Item = &Arc<str>> + use<'_> {
        self.decided(placement).flatten()
    }

    /// Returns a PlacementDecision.
    #[must_use]
    pub fn decision(&self, object_ref: &ObjectRef) -> Option<&PlacementDecision> {
        self.decisions.get(object_ref)
    }

    /// Returns true if the decisions of a Placement contain a managed cluster.
    #[must_use]
    pub fn is_selected_by(&self, placement: &ObjectRef, cluster: &str) -> bool {
        self.decided(placement).any(|clusters| clusters.contains(cluster))
    }

    /// Returns the clusters that a Placement selects.
    #[must_use]
    pub fn selection(&self, placement: &ObjectRef) -> Selection {
        let Some(selected) = self.placements.get(placement).map(|it| it.selected) else {
            return Selection::NoPlacement;
        };
        let named = self.decided(placement).map(BTreeSet::len).sum();
        match (named, selected) {
            (0, None | Some(0)) => Selection::Empty,
            (named, selected) if selected == Some(named) => Selection::Consistent(named),
            (named, selected) => Selection::Inconsistent { named, selected },
        }
    }
}

/// The clusters that the Placement of a GitOpsCluster selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The Placement does not exist.
    NoPlacement,
    /// No decision contains a cluster, and the status of the Placement reports none.
    Empty,
    /// The decisions contain `named` clusters, but the Placement's status reports another number.
    Inconsistent {
        /// The number of clusters in the decisions.
        named: usize,
        /// The number of clusters in the status of the Placement.
        selected: Option<usize>,
    },
    /// The number of clusters, on which the decisions and the Placement agree.
    Consistent(usize),
}
