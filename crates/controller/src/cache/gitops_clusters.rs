//! The cached GitOpsClusters and Placements.

use super::decisions::Decisions;
use crate::model::{GitOpsCluster, Placement};
use crate::runtime::table::{Table, Update};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The GitOpsClusters on the hub, and the number of clusters that the status of each Placement reports.
#[derive(Debug, Default)]
pub(super) struct GitOpsClusters {
    all: Table<ObjectRef, Box<GitOpsCluster>>,
    /// The GitOpsClusters whose deletion a watch event has reported.
    deleted: BTreeSet<ObjectRef>,
    placements: Table<ObjectRef, Placement>,
    /// True if GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
    allows_other_namespaces: bool,
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

impl GitOpsClusters {
    pub(super) fn get(&self, object_ref: &ObjectRef) -> Option<&GitOpsCluster> {
        self.all.get(object_ref).map(|it| &**it)
    }

    pub(super) fn entry(&self, object_ref: &ObjectRef) -> Option<(&ObjectRef, &GitOpsCluster)> {
        self.all.entry(object_ref).map(|(object_ref, it)| (object_ref, &**it))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&ObjectRef, &GitOpsCluster)> {
        self.all.iter().map(|(object_ref, it)| (object_ref, &**it))
    }

    /// Returns true if a watch event has reported the deletion of the GitOpsCluster.
    pub(super) fn is_deleted(&self, object_ref: &ObjectRef) -> bool {
        self.deleted.contains(object_ref)
    }

    pub(super) fn allows_other_namespaces(&self) -> bool {
        self.allows_other_namespaces
    }

    /// Returns the clusters that the Placement of a GitOpsCluster selects.
    pub(super) fn selection(&self, decisions: &Decisions, placement: &ObjectRef) -> Selection {
        let Some(Placement { selected }) = self.placements.get(placement).copied() else {
            return Selection::NoPlacement;
        };
        let named = decisions.of(placement).map(BTreeSet::len).sum();
        match (named, selected) {
            (0, None | Some(0)) => Selection::Empty,
            (named, selected) if selected == Some(named) => Selection::Consistent(named),
            (named, selected) => Selection::Inconsistent { named, selected },
        }
    }

    /// Stores or removes a GitOpsCluster, and returns the previous one.
    pub(super) fn put(&mut self, object_ref: &ObjectRef, it: Option<Box<GitOpsCluster>>) -> Option<Box<GitOpsCluster>> {
        if it.is_some() {
            self.deleted.remove(object_ref);
        }
        self.all.put(object_ref, it)
    }

    /// Records that a watch event has reported the deletion of a GitOpsCluster.
    pub(super) fn record_deletion(&mut self, object_ref: &ObjectRef) {
        self.deleted.insert(object_ref.clone());
    }

    /// Divides an update into the changes of single GitOpsClusters.
    pub(super) fn changes(
        &self,
        update: Update<ObjectRef, Box<GitOpsCluster>>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Box<GitOpsCluster>>)> + use<> {
        self.all.changes(update)
    }

    /// Stores or removes a Placement. Returns true if anything changed.
    pub(super) fn put_placement(&mut self, object_ref: &ObjectRef, placement: Option<Placement>) -> bool {
        let before = self.placements.put(object_ref, placement);
        self.placements.get(object_ref) != before.as_ref()
    }

    /// Divides an update into the changes of single Placements.
    pub(super) fn placement_changes(
        &self,
        update: Update<ObjectRef, Placement>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Placement>)> + use<> {
        self.placements.changes(update)
    }

    /// Records whether GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD. Returns true if that
    /// changed.
    pub(super) fn put_allows_other_namespaces(&mut self, open: bool) -> bool {
        std::mem::replace(&mut self.allows_other_namespaces, open) != open
    }
}

impl GitOpsCluster {
    /// Returns the Placement of the GitOpsCluster, which is in the same namespace.
    #[must_use]
    pub fn placement(&self, object_ref: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&object_ref.namespace),
            name: (*self.spec.placement).into(),
        }
    }
}
