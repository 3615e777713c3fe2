//! The managed clusters that the Placements of a namespace select.

use crate::model::PlacementDecision;
use crate::runtime::table::{Index, Table, Update};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The clusters in every PlacementDecision.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: Table<ObjectRef, PlacementDecision>,
    /// The decisions of each Placement.
    of: Index<ObjectRef, ObjectRef>,
}

impl Decisions {
    /// Stores or removes a PlacementDecision. Returns the previous one, and true if anything changed.
    pub(super) fn put(
        &mut self,
        object_ref: &ObjectRef,
        decision: Option<PlacementDecision>,
    ) -> (Option<PlacementDecision>, bool) {
        let before = self.all.put(object_ref, decision);
        let after = self.all.get(object_ref);
        if after == before.as_ref() {
            return (before, false);
        }
        if let Some(before) = &before {
            self.of.remove(&before.placement(object_ref), object_ref);
        }
        if let Some(after) = after {
            self.of.insert(after.placement(object_ref), object_ref.clone());
        }
        (before, true)
    }

    pub(super) fn get(&self, object_ref: &ObjectRef) -> Option<&PlacementDecision> {
        self.all.get(object_ref)
    }

    /// Divides an update into the changes of single decisions.
    pub(super) fn changes(
        &self,
        update: Update<ObjectRef, PlacementDecision>,
    ) -> impl Iterator<Item = (ObjectRef, Option<PlacementDecision>)> + use<> {
        self.all.changes(update)
    }

    /// Returns true if a Placement of this namespace selects this managed cluster.
    pub(super) fn select(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let all = self.all.from(ObjectRef::first_of(namespace));
        let mut of_it = all.take_while(|(object_ref, _)| object_ref.namespace == *namespace);
        of_it.any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// Returns the clusters in the decisions of a Placement.
    pub(super) fn of(&self, placement: &ObjectRef) -> impl Iterator<Item = &BTreeSet<Arc<str>>> + use<'_> {
        let decisions = self.of.get(placement);
        decisions.filter_map(|object_ref| Some(&self.all.get(object_ref)?.clusters))
    }
}

impl PlacementDecision {
    /// Returns the Placement of the decision, which is in the same namespace.
    #[must_use]
    pub fn placement(&self, object_ref: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&object_ref.namespace),
            name: Arc::clone(&self.placement),
        }
    }
}
