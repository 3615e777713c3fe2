//! The ApplicationSets, the Applications that they have made, and their reports.

use super::{Sort, Touched, missing, remove};
use crate::controller::seen::{ApplicationSet, Place};
use crate::report::Found;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The ApplicationSets on the hub.
#[derive(Debug, Default)]
pub(super) struct Sets {
    all: HashMap<Place, ApplicationSet>,
    reports: HashMap<Place, Found>,
    /// Whether all reports have been told, and so whether the hub has any.
    has_reports: bool,
    members: HashMap<Place, BTreeSet<Place>>,
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

    /// An Application is of this set, and was of that.
    pub(super) fn join(&mut self, application: &Place, was: Option<&Place>, is: Option<&Place>) {
        if was == is {
            return;
        }
        if let Some(was) = was {
            remove(&mut self.members, was, application);
        }
        if let Some(is) = is {
            self.members.entry(is.clone()).or_default().insert(application.clone());
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
