//! Which managed clusters the Placements of a namespace select.

use crate::controller::seen::Place;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// What every PlacementDecision names.
#[derive(Debug, Default)]
pub(super) struct Decisions(BTreeMap<Place, BTreeSet<Arc<str>>>);

impl Decisions {
    /// A PlacementDecision names these, or is gone. Whether that is news.
    pub(super) fn put(&mut self, place: &Place, clusters: Option<BTreeSet<Arc<str>>>) -> bool {
        let before = match clusters {
            Some(clusters) => self.0.insert(place.clone(), clusters),
            None => self.0.remove(place),
        };
        self.0.get(place) != before.as_ref()
    }

    /// Those that are not among all.
    pub(super) fn missing(&self, all: &HashSet<Place>) -> Vec<Place> {
        super::missing(self.0.keys(), all)
    }

    /// Whether a Placement of this namespace selects this managed cluster.
    pub(super) fn select(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let first = Place {
            namespace: Arc::clone(namespace),
            name: "".into(),
        };
        let of_it = self
            .0
            .range(first..)
            .take_while(|(place, _)| place.namespace == *namespace);
        of_it.into_iter().any(|(_, clusters)| clusters.contains(cluster))
    }
}
