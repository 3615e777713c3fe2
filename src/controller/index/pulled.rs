//! Which Applications are of the basic pull model, by where they are and where they go.

use super::remove;
use crate::controller::seen::{Application, Place};
use crate::pull::work;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The Applications of the basic pull model.
#[derive(Debug, Default)]
pub(super) struct Pulled {
    all: BTreeSet<Place>,
    /// By the managed cluster that they name.
    to: HashMap<Box<str>, BTreeSet<Place>>,
    /// By the names that their works have.
    by_work: HashMap<Box<str>, BTreeSet<Place>>,
}

impl Pulled {
    /// An Application was so, and is so now.
    pub(super) fn note(&mut self, place: &Place, before: Option<&Application>, after: Option<&Application>) {
        let target = |application: Option<&Application>| application?.pull.as_ref()?.cluster.clone();
        let (was, is) = (target(before), target(after));
        if was != is {
            if let Some(cluster) = &was {
                remove(&mut self.to, cluster, place);
            }
            if let Some(cluster) = is {
                self.to.entry(cluster).or_default().insert(place.clone());
            }
        }
        let names = |application: Option<&Application>| application?.pull.as_deref().map(work::names);
        let (were, are) = (names(before), names(after));
        if were != are {
            for name in were.iter().flatten() {
                remove(&mut self.by_work, &**name, place);
            }
            for name in are.into_iter().flatten() {
                self.by_work.entry(name.into()).or_default().insert(place.clone());
            }
        }
        if after.is_some_and(|application| application.pull.is_some()) {
            self.all.insert(place.clone());
        } else {
            self.all.remove(place);
        }
    }

    /// Every one.
    pub(super) fn all(&self) -> impl Iterator<Item = &Place> {
        self.all.iter()
    }

    /// Those of a namespace.
    pub(super) fn of(&self, namespace: &Arc<str>) -> impl Iterator<Item = &Place> {
        let first = Place::first_of(namespace);
        self.all
            .range(first..)
            .take_while(move |place| place.namespace == *namespace)
    }

    /// Those whose works have this name.
    pub(super) fn named(&self, work: &str) -> impl Iterator<Item = &Place> {
        self.by_work.get(work).into_iter().flatten()
    }

    /// Those that go to a managed cluster.
    pub(super) fn to(&self, cluster: &str) -> impl Iterator<Item = &Place> {
        self.to.get(cluster).into_iter().flatten()
    }
}
