//! The ApplicationSets, the Applications that they generated, and their reports.

use crate::application_set_report::ExistingReport;
use crate::model::{Application, ApplicationSet};
use crate::runtime::table::{Index, Table, Update};
use ocm::object_ref::ObjectRef;
use std::sync::Arc;

/// The ApplicationSets on the hub.
#[derive(Debug, Default)]
pub(super) struct ApplicationSets {
    all: Table<ObjectRef, ApplicationSet>,
    reports: Table<ObjectRef, ExistingReport>,
    /// True if the reports have been listed, so that the hub serves their kind.
    has_reports: bool,
    /// The Applications that each ApplicationSet generated.
    members: Index<ObjectRef, ObjectRef>,
    /// The same Applications by the managed cluster in their destination, or else by their namespace.
    on: Index<Arc<str>, ObjectRef>,
}

impl ApplicationSets {
    pub(super) fn get(&self, object_ref: &ObjectRef) -> Option<&ApplicationSet> {
        self.all.get(object_ref)
    }

    /// Returns the reports, if the hub serves their kind.
    pub(super) fn reports(&self) -> Option<&Table<ObjectRef, ExistingReport>> {
        self.has_reports.then_some(&self.reports)
    }

    /// Returns the Applications that an ApplicationSet generated.
    pub(super) fn members(&self, set: &ObjectRef) -> impl Iterator<Item = &ObjectRef> {
        self.members.get(set)
    }

    /// Returns the generated Applications that may run on a managed cluster according to their own destination or namespace.
    pub(super) fn on(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.on.get(cluster)
    }

    /// Applies an update of ApplicationSets, and returns those that changed.
    pub(super) fn update(&mut self, update: Update<ObjectRef, ApplicationSet>) -> Vec<ObjectRef> {
        object_refs(self.all.apply(update))
    }

    /// Applies an update of reports. Returns those that changed, and the ApplicationSets that can have reports from now on.
    pub(super) fn update_reports(
        &mut self,
        update: Update<ObjectRef, ExistingReport>,
    ) -> (Vec<ObjectRef>, Vec<ObjectRef>) {
        let is_list = matches!(update, Update::Listed(_));
        let changed = object_refs(self.reports.apply(update));
        if !is_list || std::mem::replace(&mut self.has_reports, true) {
            return (changed, Vec::new());
        }
        (changed, self.all.keys().cloned().collect())
    }

    /// Records a change of an Application.
    pub(super) fn index_change(
        &mut self,
        object_ref: &ObjectRef,
        before: Option<&Application>,
        after: Option<&Application>,
    ) {
        let keys = |it: Option<&Application>| {
            let (it, set) = it.and_then(|it| Some((it, it.set(object_ref)?)))?;
            let cluster = it.cluster().map(Arc::from);
            Some((set, cluster.unwrap_or_else(|| Arc::clone(&object_ref.namespace))))
        };
        let (was, is) = (keys(before), keys(after));
        if was == is {
            return;
        }
        if let Some((set, cluster)) = was {
            self.members.remove(&set, object_ref);
            self.on.remove(&cluster, object_ref);
        }
        if let Some((set, cluster)) = is {
            self.members.insert(set, object_ref.clone());
            self.on.insert(cluster, object_ref.clone());
        }
    }
}

fn object_refs<V>(changed: Vec<(ObjectRef, V)>) -> Vec<ObjectRef> {
    changed.into_iter().map(|(object_ref, _)| object_ref).collect()
}
