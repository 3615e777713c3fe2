//! The GitOpsClusters, and what they concern.

use super::decisions::{Decisions, placement};
use super::secrets::Secrets;
use super::{Sort, Touched, missing};
use crate::controller::seen::{Decision, GitOpsCluster, Place, Placement};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The GitOpsClusters on the hub, and how many clusters their Placements say that they select.
#[derive(Debug, Default)]
pub(super) struct GitOps {
    all: BTreeMap<Place, GitOpsCluster>,
    /// Those of which a watch has told that they are gone.
    gone: BTreeSet<Place>,
    placements: HashMap<Place, Placement>,
    /// Whether GitOpsClusters of other namespaces may have Secrets in Argo CD's.
    open: bool,
}

/// What the Placement of a GitOpsCluster selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The Placement is not there.
    NoPlacement,
    /// No decision names a cluster, and the Placement has not said that it selects any.
    Nothing,
    /// The decisions name `named` clusters, and that is not what the Placement says.
    Unsure {
        /// How many the decisions name.
        named: usize,
        /// How many the Placement says that it selects.
        selected: Option<usize>,
    },
    /// So many clusters.
    Sure(usize),
}

impl GitOps {
    pub(super) fn get(&self, place: &Place) -> Option<&GitOpsCluster> {
        self.all.get(place)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Place, &GitOpsCluster)> {
        self.all.iter()
    }

    /// Whether a watch has told that it is gone.
    pub(super) fn has_gone(&self, place: &Place) -> bool {
        self.gone.contains(place)
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// What the Placement of a GitOpsCluster selects.
    pub(super) fn selection(&self, decisions: &Decisions, placement: &Place) -> Selection {
        let Some(Placement { selected }) = self.placements.get(placement).copied() else {
            return Selection::NoPlacement;
        };
        let named = decisions.of(placement).map(BTreeSet::len).sum();
        match (named, selected) {
            (0, None | Some(0)) => Selection::Nothing,
            (named, selected) if selected == Some(named) => Selection::Sure(named),
            (named, selected) => Selection::Unsure { named, selected },
        }
    }

    /// A GitOpsCluster is so, or is gone.
    pub(super) fn put(&mut self, place: &Place, it: Option<GitOpsCluster>, seen: &Seen<'_>) -> Vec<Touched> {
        let before = match it {
            Some(it) => {
                self.gone.remove(place);
                self.all.insert(place.clone(), it)
            }
            None => self.all.remove(place),
        };
        let after = self.all.get(place);
        let asks = |it: &GitOpsCluster| (it.spec.clone(), it.deleting, it.finalizers.clone());
        let is_the_same = before.as_ref().map(asks) == after.map(asks);
        let mut touched = vec![Touched::gitops(place.clone())];
        if !is_the_same {
            let both = before.iter().chain(after);
            let selected: BTreeSet<_> = both
                .flat_map(|it| seen.decisions.of(&it.placement(place)).flatten())
                .collect();
            touched.extend(selected.into_iter().map(Touched::cluster));
            touched.extend(seen.owned(place));
        }
        touched
    }

    /// A watch has told that it is gone.
    pub(super) fn told_gone(&mut self, place: &Place) {
        self.gone.insert(place.clone());
    }

    /// Those that are not among all.
    pub(super) fn missing(&self, all: &HashSet<Place>) -> Vec<Place> {
        self.all.keys().filter(|place| !all.contains(*place)).cloned().collect()
    }

    /// A Placement is so, or is gone.
    pub(super) fn put_placement(
        &mut self,
        place: &Place,
        placement: Option<Placement>,
        seen: &Seen<'_>,
    ) -> Vec<Touched> {
        let before = match placement {
            Some(placement) => self.placements.insert(place.clone(), placement),
            None => self.placements.remove(place),
        };
        if self.placements.get(place) == before.as_ref() {
            return Vec::new();
        }
        self.of_placement(place, seen)
    }

    /// The Placements that are not among all.
    pub(super) fn missing_placements(&self, all: &HashSet<Place>) -> Vec<Place> {
        missing(self.placements.keys(), all)
    }

    /// A decision was so, and is so now.
    pub(super) fn decided(&self, place: &Place, before: Option<&Decision>, seen: &Seen<'_>) -> Vec<Touched> {
        let after = seen.decisions.get(place);
        let nobody = BTreeSet::new();
        let clusters = |it: Option<&Decision>| it.map_or(&nobody, |it| &it.clusters).clone();
        let changed = &clusters(before) ^ &clusters(after);
        let placements: BTreeSet<_> = before.into_iter().chain(after).map(|it| placement(place, it)).collect();
        let mut touched: Vec<_> = placements.iter().flat_map(|it| self.of_placement(it, seen)).collect();
        if !touched.is_empty() {
            touched.extend(changed.iter().map(Touched::cluster));
        }
        touched
    }

    /// GitOpsClusters of other namespaces may have Secrets in Argo CD's, or no longer.
    pub(super) fn put_open(&mut self, open: bool, seen: &Seen<'_>) -> Vec<Touched> {
        if std::mem::replace(&mut self.open, open) == open {
            return Vec::new();
        }
        let all = self.all.iter();
        all.flat_map(|(place, it)| {
            let clusters = seen.decisions.of(&it.placement(place)).flatten().map(Touched::cluster);
            clusters.chain([Touched::gitops(place.clone())])
        })
        .collect()
    }

    /// The GitOpsClusters that select these managed clusters.
    pub(super) fn of_clusters<'c>(
        &self,
        clusters: impl IntoIterator<Item = &'c Arc<str>>,
        decisions: &Decisions,
    ) -> BTreeSet<&Place> {
        let clusters: Vec<_> = clusters.into_iter().collect();
        let concerned = |(place, it): &(&Place, &GitOpsCluster)| {
            let placement = it.placement(place);
            decisions
                .of(&placement)
                .any(|named| clusters.iter().any(|cluster| named.contains(*cluster)))
        };
        self.all.iter().filter(concerned).map(|(place, _)| place).collect()
    }

    /// The GitOpsClusters of a Placement, and the clusters whose Secrets they may have to give up.
    fn of_placement(&self, placement: &Place, seen: &Seen<'_>) -> Vec<Touched> {
        let of_it = self.all.iter().filter(|(place, it)| it.placement(place) == *placement);
        let touched = of_it.flat_map(|(place, _)| {
            let mut touched = vec![Touched::gitops(place.clone())];
            touched.extend(seen.owned(place));
            touched
        });
        touched.collect()
    }
}

/// What else is known.
pub(super) struct Seen<'s> {
    pub(super) decisions: &'s Decisions,
    pub(super) secrets: &'s Secrets,
}

impl Seen<'_> {
    /// The clusters for which a GitOpsCluster has Secrets.
    fn owned(&self, place: &Place) -> Vec<Touched> {
        let owned = self.secrets.owned(&place.to_string());
        owned.map(|secret| Touched::cluster(&secret.cluster().into())).collect()
    }
}

impl GitOpsCluster {
    /// The Placement that it names; it is in its own namespace.
    #[must_use]
    pub fn placement(&self, place: &Place) -> Place {
        Place {
            namespace: Arc::clone(&place.namespace),
            name: (*self.spec.placement).into(),
        }
    }
}

impl Touched {
    /// A GitOpsCluster.
    fn gitops(place: Place) -> Self {
        Self {
            sort: Sort::GitOpsCluster,
            ..Self::application(place)
        }
    }

    /// Those that these are.
    pub(super) fn gitops_all<'p>(places: impl IntoIterator<Item = &'p Place>) -> impl Iterator<Item = Self> {
        places.into_iter().cloned().map(Self::gitops)
    }
}
