//! The ApplicationSets, the Applications that they generated, and their reports.

use super::{ReconcileKind, ReconcileRequest, missing, remove};
use crate::application_set_report::Found;
use crate::model::{Application, ApplicationSet};
use ocm::object_ref::ObjectRef;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The ApplicationSets on the hub.
#[derive(Debug, Default)]
pub(super) struct Sets {
    all: HashMap<ObjectRef, ApplicationSet>,
    reports: HashMap<ObjectRef, Found>,
    /// True if the reports have been listed, so that the hub serves their kind.
    has_reports: bool,
    /// The Applications that each ApplicationSet generated.
    members: HashMap<ObjectRef, BTreeSet<ObjectRef>>,
    /// The same Applications by the managed cluster in their destination, or else by their namespace.
    on: HashMap<Arc<str>, BTreeSet<ObjectRef>>,
}

impl Sets {
    pub(super) fn get(&self, place: &ObjectRef) -> Option<&ApplicationSet> {
        self.all.get(place)
    }

    /// Returns the reports, if the hub serves their kind.
    pub(super) fn reports(&self) -> Option<&HashMap<ObjectRef, Found>> {
        self.has_reports.then_some(&self.reports)
    }

    /// Returns the Applications that an ApplicationSet generated.
    pub(super) fn members(&self, set: &ObjectRef) -> impl Iterator<Item = &ObjectRef> {
        self.members.get(set).into_iter().flatten()
    }

    /// Returns the generated Applications that may run on a managed cluster according to their own destination or namespace.
    pub(super) fn on(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.on.get(cluster).into_iter().flatten()
    }

    /// Stores or removes an ApplicationSet, and returns the objects to reconcile.
    pub(super) fn put(&mut self, place: ObjectRef, set: Option<ApplicationSet>) -> Vec<ReconcileRequest> {
        match set {
            Some(set) => self.all.insert(place.clone(), set),
            None => self.all.remove(&place),
        };
        vec![ReconcileRequest::set(place)]
    }

    /// Removes the ApplicationSets that are not in the complete list.
    pub(super) fn only(&mut self, all: &HashSet<ObjectRef>) -> Vec<ReconcileRequest> {
        let gone = missing(self.all.keys(), all).into_iter();
        gone.flat_map(|place| self.put(place, None)).collect()
    }

    /// Stores or removes a report, and returns the objects to reconcile.
    pub(super) fn put_report(&mut self, place: ObjectRef, report: Option<Found>) -> Vec<ReconcileRequest> {
        match report {
            Some(report) => self.reports.insert(place.clone(), report),
            None => self.reports.remove(&place),
        };
        vec![ReconcileRequest::set(place)]
    }

    /// Removes the reports that are not in the complete list.
    pub(super) fn only_reports(&mut self, all: &HashSet<ObjectRef>) -> Vec<ReconcileRequest> {
        let gone = missing(self.reports.keys(), all).into_iter();
        let mut affected: Vec<_> = gone.flat_map(|place| self.put_report(place, None)).collect();
        if !self.has_reports {
            self.has_reports = true;
            affected.extend(self.all.keys().cloned().map(ReconcileRequest::set));
        }
        affected
    }

    /// Records a change of an Application.
    pub(super) fn note(&mut self, place: &ObjectRef, before: Option<&Application>, after: Option<&Application>) {
        let keys = |it: Option<&Application>| {
            let (it, set) = it.and_then(|it| Some((it, it.set(place)?)))?;
            let cluster = it.cluster().map(Arc::from);
            Some((set, cluster.unwrap_or_else(|| Arc::clone(&place.namespace))))
        };
        let (was, is) = (keys(before), keys(after));
        if was == is {
            return;
        }
        if let Some((set, cluster)) = was {
            remove(&mut self.members, &set, place);
            remove(&mut self.on, &cluster, place);
        }
        if let Some((set, cluster)) = is {
            self.members.entry(set).or_default().insert(place.clone());
            self.on.entry(cluster).or_default().insert(place.clone());
        }
    }
}

impl ReconcileRequest {
    /// Returns the request for an ApplicationSet.
    pub(super) fn set(place: ObjectRef) -> Self {
        Self {
            sort: ReconcileKind::ApplicationSet,
            ..Self::application(place)
        }
    }
}
