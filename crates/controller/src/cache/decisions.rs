//! The managed clusters that the Placements of a namespace select.

use crate::model::Decision;
use ocm::object_ref::ObjectRef;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The clusters in every PlacementDecision.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: BTreeMap<ObjectRef, Decision>,
    /// The decisions of each Placement.
    of: HashMap<ObjectRef, BTreeSet<ObjectRef>>,
}

impl Decisions {
    /// Stores or removes a PlacementDecision. Returns the previous one, and true if anything changed.
    pub(super) fn put(&mut self, place: &ObjectRef, decision: Option<Decision>) -> (Option<Decision>, bool) {
        let before = match decision {
            Some(decision) => self.all.insert(place.clone(), decision),
            None => self.all.remove(place),
        };
        let after = self.all.get(place);
        if after == before.as_ref() {
            return (before, false);
        }
        if let Some(before) = &before {
            super::remove(&mut self.of, &placement(place, before), place);
        }
        if let Some(after) = after {
            self.of
                .entry(placement(place, after))
                .or_default()
                .insert(place.clone());
        }
        (before, true)
    }

    pub(super) fn get(&self, place: &ObjectRef) -> Option<&Decision> {
        self.all.get(place)
    }

    /// Returns the cached decisions that are not in the complete list.
    pub(super) fn missing(&self, all: &HashSet<ObjectRef>) -> Vec<ObjectRef> {
        super::missing(self.all.keys(), all)
    }

    /// Returns true if a Placement of this namespace selects this managed cluster.
    pub(super) fn select(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let first = ObjectRef::first_of(namespace);
        let of_it = self
            .all
            .range(first..)
            .take_while(|(place, _)| place.namespace == *namespace);
        of_it
            .into_iter()
            .any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// Returns the clusters in the decisions of a Placement.
    pub(super) fn of(&self, placement: &ObjectRef) -> impl Iterator<Item = &BTreeSet<Arc<str>>> + use<'_> {
        let decisions = self.of.get(placement).into_iter().flatten();
        decisions.filter_map(|place| Some(&self.all.get(place)?.clusters))
    }
}

/// Returns the Placement of a decision.
pub(super) fn placement(place: &ObjectRef, decision: &Decision) -> ObjectRef {
    ObjectRef {
        namespace: Arc::clone(&place.namespace),
        name: Arc::clone(&decision.placement),
    }
}
