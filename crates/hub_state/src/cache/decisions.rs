//! The managed clusters that the Placements of a namespace select.

use super::store::{Indexed, Store};
use super::{Cache, Cached, ReconcileRequest};
use crate::model::{Cluster, Kind, PlacementDecision};
use jiff::{SignedDuration, Timestamp};
use primitives::object_ref::ObjectRef;
use primitives::time_math::after;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The time without a change of a Placement and its decisions after which a cluster in none of them counts as not selected. OCM
/// writes the decisions one after the other, and the number in the status of the Placement last: in between, a cluster that moves
/// from one decision to the next is in neither, and the numbers may agree.
const SETTLES_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// The time after which OCM has decided about a managed cluster that Placements may select again. A controller of OCM whose leader
/// fails decides nothing for up to 163 s (its Lease lasts 137 s, and others try every 26 s).
const DECIDED_AFTER: SignedDuration = SignedDuration::from_mins(5);

impl Indexed for PlacementDecision {
    type Key = ObjectRef;
    /// The number of decisions of each Placement that name a cluster.
    type Indices = HashMap<ObjectRef, BTreeMap<Arc<str>, usize>>;

    fn index(indices: &mut Self::Indices, object_ref: &ObjectRef, before: Option<&Self>, after: Option<&Self>) {
        for (decision, change) in [(after, 1), (before, -1)] {
            let Some(decision) = decision else { continue };
            let placement = decision.placement(object_ref);
            let named = indices.entry(placement.clone()).or_default();
            for cluster in &decision.clusters {
                let count = named.entry(Arc::clone(cluster)).or_default();
                *count = count.saturating_add_signed(change);
            }
            named.retain(|_, count| *count > 0);
            if named.is_empty() {
                indices.remove(&placement);
            }
        }
    }
}

impl Cached for PlacementDecision {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.decisions
    }

    fn forget_computed(cache: &mut Cache, _: Kind, object_ref: &ObjectRef, before: Option<&Self>) {
        let both = before.into_iter().chain(cache.decisions.get(object_ref));
        let placements: Vec<_> = both.map(|decision| decision.placement(object_ref)).collect();
        for placement in placements {
            cache.unsettle(placement);
        }
        cache.assignments.forget_all();
    }
}

impl Cache {
    pub fn is_selected(&self, namespace: &Arc<str>, cluster: &str) -> bool {
        let mut all = self.decisions.in_namespace(namespace);
        all.any(|(_, decision)| decision.clusters.contains(cluster))
    }

    /// Returns the managed clusters in the decisions of a Placement, and in how many.
    fn named_by(&self, placement: &ObjectRef) -> Option<&BTreeMap<Arc<str>, usize>> {
        self.decisions.indices().get(placement)
    }

    pub fn selected_by(&self, placement: &ObjectRef) -> impl Iterator<Item = &Arc<str>> + use<'_> {
        self.named_by(placement).into_iter().flat_map(BTreeMap::keys)
    }

    pub fn decision(&self, object_ref: &ObjectRef) -> Option<&PlacementDecision> {
        self.decisions.get(object_ref)
    }

    pub fn is_selected_by(&self, placement: &ObjectRef, cluster: &str) -> bool {
        self.named_by(placement)
            .is_some_and(|named| named.contains_key(cluster))
    }

    pub fn selection(&self, placement: &ObjectRef) -> Selection {
        let Some(placement_object) = self.object(Kind::Placements, placement) else {
            return Selection::NoPlacement;
        };
        let selected = placement_object.object.as_u64();
        let selected = selected.and_then(|selected| usize::try_from(selected).ok());
        let named = self.named_by(placement).map_or(0, BTreeMap::len);
        match (named, selected) {
            (0, None | Some(0)) => Selection::Empty,
            (named, selected) if selected == Some(named) => Selection::Consistent(named),
            (named, selected) => Selection::Inconsistent { named, selected },
        }
    }

    /// Returns true if a Placement and its decisions have not changed for a minute. A restart begins this time again.
    pub fn is_settled(&self, placement: &ObjectRef) -> bool {
        !self.unsettled.contains_key(&(Kind::Placements, placement.clone()))
    }

    /// Returns true if OCM has decided whether Placements select a managed cluster: they may select it for long enough, or it is
    /// deleted. While they may not, its absence from the decisions proves nothing.
    pub fn is_decided(&self, cluster: &str) -> bool {
        let Some(existing) = self.cluster(cluster) else {
            return self.is_deleted(cluster);
        };
        let key = (Kind::Clusters, ObjectRef::new("", cluster));
        existing.selectable_since.is_some() && !self.unsettled.contains_key(&key)
    }

    pub(super) fn unsettle(&mut self, placement: ObjectRef) {
        self.unsettled.insert((Kind::Placements, placement), self.time);
    }

    /// Records since when Placements may select a managed cluster. A cluster that the cache has not had before has been selectable
    /// for as long as it reports.
    pub(super) fn unsettle_cluster(&mut self, name: &Arc<str>, before: Option<&Cluster>) {
        let key = (Kind::Clusters, ObjectRef::new("", name));
        let Some(reported) = self.cluster(name).and_then(|cluster| cluster.selectable_since) else {
            self.unsettled.remove(&key);
            return;
        };
        let since = match before {
            Some(before) if before.selectable_since == Some(reported) => return,
            // Also after a return that only a new list shows.
            Some(_) => self.time,
            None => reported,
        };
        if after(since, DECIDED_AFTER) > self.time {
            self.unsettled.insert(key, since);
        }
    }

    /// Returns the next time at which a Placement or a managed cluster counts as settled.
    pub(super) fn next_settled(&self) -> Option<Timestamp> {
        let all = self.unsettled.iter();
        all.map(|((kind, _), since)| after(*since, settles_after(*kind))).min()
    }

    /// Marks the Placements and managed clusters as settled that have rested long enough. Returns the objects to reconcile.
    pub(super) fn settle(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        let mut settled = Vec::new();
        self.unsettled.retain(|(kind, object_ref), since| {
            // The clock may have been set back.
            *since = now.min(*since);
            let is_settled = after(*since, settles_after(*kind)) <= now;
            settled.extend(is_settled.then(|| (*kind, object_ref.clone())));
            !is_settled
        });
        for (kind, object_ref) in &settled {
            if *kind == Kind::Clusters {
                self.assignments.forget(&*object_ref.name);
            } else {
                self.assignments.forget_all();
            }
        }
        let affected = settled
            .iter()
            .flat_map(|(kind, object_ref)| self.map(*kind, object_ref, None));
        affected.collect()
    }
}

fn settles_after(kind: Kind) -> SignedDuration {
    if kind == Kind::Clusters {
        DECIDED_AFTER
    } else {
        SETTLES_AFTER
    }
}

/// The clusters that the Placement of a GitOpsCluster selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    NoPlacement,
    /// No decision contains a cluster, and the status of the Placement reports none.
    Empty,
    /// The decisions contain `named` clusters, but the Placement's status reports another number.
    Inconsistent {
        named: usize,
        selected: Option<usize>,
    },
    /// The number of clusters, on which the decisions and the Placement agree.
    Consistent(usize),
}
