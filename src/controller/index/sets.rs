//! The ApplicationSets, the Applications that they have made, and their reports.

use super::{Sort, Touched, missing, remove};
use crate::controller::seen::{Application, ApplicationSet, Place};
use crate::report::Found;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The ApplicationSets on the hub.
#[derive(Debug, Default)]
pub(super) struct Sets {
    all: HashMap<Place, ApplicationSet>,
    reports: HashMap<Place, Found>,
    /// Whether all reports have been told, and so whether the hub has any.
    has_reports: bool,
    /// The Applications that each set has made.
    members: HashMap<Place, BTreeSet<Place>>,
    /// The same by the managed cluster that they name themselves, or else by their namespace.
    on: HashMap<Arc<str>, BTreeSet<Place>>,
}

impl Sets {
    pub(super) fn get(&self, place: &Place) -> Option<&ApplicationSet> {
        self.all.get(place)
    }

    /// The reports, where the hub knows them.
    pub(super) fn reports(&self) -> Option<&HashMap<Place, Found>> {
        self.has_reports.then_some(&self.reports)
    }

    /// The Applications that a set has made.
    pub(super) fn members(&self, set: &Place) -> impl Iterator<Item = &Place> {
        self.members.get(set).into_iter().flatten()
    }

    /// The Applications that a set has made which may be on a managed cluster by what they say themselves.
    pub(super) fn on(&self, cluster: &str) -> impl Iterator<Item = &Place> {
        self.on.get(cluster).into_iter().flatten()
    }

    /// A set is so, or is gone.
    pub(super) fn put(&mut self, place: Place, set: Option<ApplicationSet>) -> Vec<Touched> {
        match set {
            Some(set) => self.all.insert(place.clone(), set),
            None => self.all.remove(&place),
        };
        vec![Touched::set(place)]
    }

    /// These sets are all.
    pub(super) fn only(&mut self, all: &HashSet<Place>) -> Vec<Touched> {
        let gone = missing(self.all.keys(), all).into_iter();
        gone.flat_map(|place| self.put(place, None)).collect()
    }

    /// A report is so, or is gone.
    pub(super) fn put_report(&mut self, place: Place, report: Option<Found>) -> Vec<Touched> {
        match report {
            Some(report) => self.reports.insert(place.clone(), report),
            None => self.reports.remove(&place),
        };
        vec![Touched::set(place)]
    }

    /// These reports are all.
    pub(super) fn only_reports(&mut self, all: &HashSet<Place>) -> Vec<Touched> {
        let gone = missing(self.reports.keys(), all).into_iter();
        let mut touched: Vec<_> = gone.flat_map(|place| self.put_report(place, None)).collect();
        if !self.has_reports {
            self.has_reports = true;
            touched.extend(self.all.keys().cloned().map(Touched::set));
        }
        touched
    }

    /// An Application was so, and is so now.
    pub(super) fn note(&mut self, place: &Place, before: Option<&Application>, after: Option<&Application>) {
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

impl Touched {
    /// An ApplicationSet.
    pub(super) fn set(place: Place) -> Self {
        Self {
            sort: Sort::ApplicationSet,
            ..Self::application(place)
        }
    }
}
