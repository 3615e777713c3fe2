//! The cached GitOpsClusters and the objects that they concern.

use super::decisions::{Decisions, placement};
use super::secrets::Secrets;
use super::{ReconcileKind, ReconcileRequest};
use crate::model::{Decision, GitOpsCluster, Placement};
use crate::runtime::table::{Table, Update};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The GitOpsClusters on the hub, and the number of clusters that the status of each Placement reports.
#[derive(Debug, Default)]
pub(super) struct GitOps {
    all: Table<ObjectRef, Box<GitOpsCluster>>,
    /// The GitOpsClusters whose deletion a watch event has reported.
    gone: BTreeSet<ObjectRef>,
    placements: Table<ObjectRef, Placement>,
    /// True if GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
    open: bool,
}

/// The clusters that the Placement of a GitOpsCluster selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The Placement does not exist.
    NoPlacement,
    /// No decision contains a cluster, and the status of the Placement reports none.
    Nothing,
    /// The decisions contain `named` clusters, which is not the number in the status of the Placement.
    Unsure {
        /// The number of clusters in the decisions.
        named: usize,
        /// The number of clusters in the status of the Placement.
        selected: Option<usize>,
    },
    /// The number of clusters, on which the decisions and the Placement agree.
    Sure(usize),
}

impl GitOps {
    pub(super) fn get(&self, place: &ObjectRef) -> Option<&GitOpsCluster> {
        self.all.get(place).map(|it| &**it)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&ObjectRef, &GitOpsCluster)> {
        self.all.iter().map(|(place, it)| (place, &**it))
    }

    /// Returns true if a watch event has reported the deletion of the GitOpsCluster.
    pub(super) fn has_gone(&self, place: &ObjectRef) -> bool {
        self.gone.contains(place)
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the clusters that the Placement of a GitOpsCluster selects.
    pub(super) fn selection(&self, decisions: &Decisions, placement: &ObjectRef) -> Selection {
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

    /// Stores or removes a GitOpsCluster, and returns the objects to reconcile.
    pub(super) fn put(
        &mut self,
        place: &ObjectRef,
        it: Option<Box<GitOpsCluster>>,
        seen: &Seen<'_>,
    ) -> Vec<ReconcileRequest> {
        if it.is_some() {
            self.gone.remove(place);
        }
        let before = self.all.put(place, it);
        let (before, after) = (before.as_deref(), self.get(place));
        let asks = |it: &GitOpsCluster| (it.spec.clone(), it.deleting, it.finalizers.clone());
        let is_the_same = before.map(asks) == after.map(asks);
        let mut affected = vec![ReconcileRequest::gitops(place.clone())];
        if !is_the_same {
            let both = before.into_iter().chain(after);
            let selected: BTreeSet<_> = both
                .flat_map(|it| seen.decisions.of(&it.placement(place)).flatten())
                .collect();
            affected.extend(selected.into_iter().map(ReconcileRequest::cluster));
            affected.extend(seen.owned(place));
        }
        affected
    }

    /// Records that a watch event has reported the deletion of a GitOpsCluster.
    pub(super) fn told_gone(&mut self, place: &ObjectRef) {
        self.gone.insert(place.clone());
    }

    /// Divides an update into the changes of single GitOpsClusters.
    pub(super) fn changes(
        &self,
        update: Update<ObjectRef, Box<GitOpsCluster>>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Box<GitOpsCluster>>)> + use<> {
        self.all.changes(update)
    }

    /// Stores or removes a Placement, and returns the objects to reconcile.
    pub(super) fn put_placement(
        &mut self,
        place: &ObjectRef,
        placement: Option<Placement>,
        seen: &Seen<'_>,
    ) -> Vec<ReconcileRequest> {
        let before = self.placements.put(place, placement);
        if self.placements.get(place) == before.as_ref() {
            return Vec::new();
        }
        self.of_placement(place, seen)
    }

    /// Divides an update into the changes of single Placements.
    pub(super) fn placement_changes(
        &self,
        update: Update<ObjectRef, Placement>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Placement>)> + use<> {
        self.placements.changes(update)
    }

    /// Returns the objects to reconcile after a change of a decision.
    pub(super) fn decided(
        &self,
        place: &ObjectRef,
        before: Option<&Decision>,
        seen: &Seen<'_>,
    ) -> Vec<ReconcileRequest> {
        let after = seen.decisions.get(place);
        let nobody = BTreeSet::new();
        let clusters = |it: Option<&Decision>| it.map_or(&nobody, |it| &it.clusters).clone();
        let changed = &clusters(before) ^ &clusters(after);
        let placements: BTreeSet<_> = before.into_iter().chain(after).map(|it| placement(place, it)).collect();
        let mut affected: Vec<_> = placements.iter().flat_map(|it| self.of_placement(it, seen)).collect();
        if !affected.is_empty() {
            affected.extend(changed.iter().map(ReconcileRequest::cluster));
        }
        affected
    }

    /// Records whether GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
    pub(super) fn put_open(&mut self, open: bool, seen: &Seen<'_>) -> Vec<ReconcileRequest> {
        if std::mem::replace(&mut self.open, open) == open {
            return Vec::new();
        }
        self.all()
            .flat_map(|(place, it)| {
                let clusters = seen
                    .decisions
                    .of(&it.placement(place))
                    .flatten()
                    .map(ReconcileRequest::cluster);
                clusters.chain([ReconcileRequest::gitops(place.clone())])
            })
            .collect()
    }

    /// Returns the GitOpsClusters that select these managed clusters.
    pub(super) fn of_clusters<'c>(
        &self,
        clusters: impl IntoIterator<Item = &'c Arc<str>>,
        decisions: &Decisions,
    ) -> BTreeSet<&ObjectRef> {
        let clusters: Vec<_> = clusters.into_iter().collect();
        let concerned = |(place, it): &(&ObjectRef, &GitOpsCluster)| {
            let placement = it.placement(place);
            decisions
                .of(&placement)
                .any(|named| clusters.iter().any(|cluster| named.contains(*cluster)))
        };
        self.all().filter(concerned).map(|(place, _)| place).collect()
    }

    /// Returns the GitOpsClusters of a Placement, and the clusters whose Secrets they may have to delete.
    fn of_placement(&self, placement: &ObjectRef, seen: &Seen<'_>) -> Vec<ReconcileRequest> {
        let of_it = self.all().filter(|(place, it)| it.placement(place) == *placement);
        let affected = of_it.flat_map(|(place, _)| {
            let mut affected = vec![ReconcileRequest::gitops(place.clone())];
            affected.extend(seen.owned(place));
            affected
        });
        affected.collect()
    }
}

/// The other caches that GitOpsClusters need.
pub(super) struct Seen<'s> {
    pub(super) decisions: &'s Decisions,
    pub(super) secrets: &'s Secrets,
}

impl Seen<'_> {
    /// Returns the clusters with a Secret of a GitOpsCluster.
    fn owned(&self, place: &ObjectRef) -> Vec<ReconcileRequest> {
        let owned = self.secrets.owned(&place.to_string());
        owned
            .map(|secret| ReconcileRequest::cluster(&secret.cluster().into()))
            .collect()
    }
}

impl GitOpsCluster {
    /// Returns the Placement of the GitOpsCluster, which is in the same namespace.
    #[must_use]
    pub fn placement(&self, place: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&place.namespace),
            name: (*self.spec.placement).into(),
        }
    }
}

impl ReconcileRequest {
    /// Returns the request for a GitOpsCluster.
    fn gitops(place: ObjectRef) -> Self {
        Self {
            sort: ReconcileKind::GitOpsCluster,
            ..Self::application(place)
        }
    }

    /// Returns the requests for these GitOpsClusters.
    pub(crate) fn gitops_all<'p>(places: impl IntoIterator<Item = &'p ObjectRef>) -> impl Iterator<Item = Self> {
        places.into_iter().cloned().map(Self::gitops)
    }
}
