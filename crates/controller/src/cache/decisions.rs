//! The managed clusters that the Placements of a namespace select.

use crate::model::Decision;
use crate::runtime::table::{Index, Table, Update};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The clusters in every PlacementDecision.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: Table<ObjectRef, Decision>,
    /// The decisions of each Placement.
    of: Index<ObjectRef, ObjectRef>,
}

impl Decisions {
    /// Stores or removes a PlacementDecision. Returns the previous one, and true if anything changed.
    pub(super) fn put(&mut self, place: &ObjectRef, decision: Option<Decision>) -> (Option<Decision>, bool) {
        let before = self.all.put(place, decision);
        let after = self.all.get(place);
        if after == before.as_ref() {
            return (before, false);
        }
        if let Some(before) = &before {
            self.of.remove(&before.placement(place), place);
        }
        if let Some(after) = after {
            self.of.insert(after.placement(place), place.clone());
        }
        (before, true)
    }

    pub(super) fn get(&self, place: &ObjectRef) -> Option<&Decision> {
        self.all.get(place)
    }

    /// Divides an update into the changes of single decisions.
    pub(super) fn changes(
        &self,
        update: Update<ObjectRef, Decision>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Decision>)> + use<> {
        self.all.changes(update)
    }

    /// Returns true if a Placement of this namespace selects this managed cluster.
    pub(super) fn select(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let all = self.all.from(ObjectRef::first_of(namespace));
        let mut of_it = all.take_while(|(place, _)| place.namespace == *namespace);
        of_it.any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// Returns the clusters in the decisions of a Placement.
    pub(super) fn of(&self, placement: &ObjectRef) -> impl Iterator<Item = &BTreeSet<Arc<str>>> + use<'_> {
        let decisions = self.of.get(placement);
        decisions.filter_map(|place| Some(&self.all.get(place)?.clusters))
    }
}

impl Decision {
    /// Returns the Placement of the decision, which is in the same namespace.
    #[must_use]
    pub fn placement(&self, place: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&place.namespace),
            name: Arc::clone(&self.placement),
        }
    }
}
