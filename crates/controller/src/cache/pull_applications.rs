//! An index of the Applications of the basic pull model by namespace, managed cluster and work name.

use crate::model::Application;
use crate::pull::work;
use crate::runtime::table::Index;
use ocm::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The Applications of the basic pull model.
#[derive(Debug, Default)]
pub(super) struct PullApplications {
    all: BTreeSet<ObjectRef>,
    /// The Applications by destination cluster.
    to: Index<Box<str>, ObjectRef>,
    /// The Applications by the names of their works.
    by_work: Index<Box<str>, ObjectRef>,
}

impl PullApplications {
    /// Records a change of an Application.
    pub(super) fn index_change(
        &mut self,
        object_ref: &ObjectRef,
        before: Option<&Application>,
        after: Option<&Application>,
    ) {
        let target = |application: Option<&Application>| application?.pull.as_ref()?.cluster.clone();
        let (was, is) = (target(before), target(after));
        if was != is {
            if let Some(cluster) = &was {
                self.to.remove(cluster, object_ref);
            }
            if let Some(cluster) = is {
                self.to.insert(cluster, object_ref.clone());
            }
        }
        let names = |application: Option<&Application>| application?.pull.as_deref().map(work::names);
        let (were, are) = (names(before), names(after));
        if were != are {
            for name in were.iter().flatten() {
                self.by_work.remove(&**name, object_ref);
            }
            for name in are.into_iter().flatten() {
                self.by_work.insert(name.into(), object_ref.clone());
            }
        }
        if after.is_some_and(|application| application.pull.is_some()) {
            self.all.insert(object_ref.clone());
        } else {
            self.all.remove(object_ref);
        }
    }

    /// Returns all Applications of the basic pull model.
    pub(super) fn all(&self) -> impl Iterator<Item = &ObjectRef> {
        self.all.iter()
    }

    /// Returns the Applications of a namespace.
    pub(super) fn of(&self, namespace: &Arc<str>) -> impl Iterator<Item = &ObjectRef> {
        let first = ObjectRef::first_of(namespace);
        self.all
            .range(first..)
            .take_while(move |object_ref| object_ref.namespace == *namespace)
    }

    /// Returns the Applications whose works have this name.
    pub(super) fn named(&self, work: &str) -> impl Iterator<Item = &ObjectRef> {
        self.by_work.get(work)
    }

    /// Returns the Applications whose destination is a managed cluster.
    pub(super) fn to(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.to.get(cluster)
    }
}
