//! Which managed clusters the Placements of a namespace select.

use crate::controller::seen::{Decision, Place};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// What every PlacementDecision names.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: BTreeMap<Place, Decision>,
    /// Those of each Placement.
    of: HashMap<Place, BTreeSet<Place>>,
}

impl Decisions {
    /// A PlacementDecision is so, or is gone: how it was, and whether that is news.
    pub(super) fn put(&mut self, place: &Place, decision: Option<Decision>) -> (Option<Decision>, bool) {
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

    pub(super) fn get(&self, place: &Place) -> Option<&Decision> {
        self.all.get(place)
    }

    /// Those that are not among all.
    pub(super) fn missing(&self, all: &HashSet<Place>) -> Vec<Place> {
        super::missing(self.all.keys(), all)
    }

    /// Whether a Placement of this namespace selects this managed cluster.
    pub(super) fn select(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let first = Place::first_of(namespace);
        let of_it = self
            .all
            .range(first..)
            .take_while(|(place, _)| place.namespace == *namespace);
        of_it
            .into_iter()
            .any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// What the decisions of a Placement name.
    pub(super) fn of(&self, placement: &Place) -> impl Iterator<Item = &BTreeSet<Arc<str>>> + use<'_> {
        let decisions = self.of.get(placement).into_iter().flatten();
        decisions.filter_map(|place| Some(&self.all.get(place)?.clusters))
    }
}

/// The Placement that a decision is of.
pub(super) fn placement(place: &Place, decision: &Decision) -> Place {
    Place {
        namespace: Arc::clone(&place.namespace),
        name: Arc::clone(&decision.placement),
    }
}
