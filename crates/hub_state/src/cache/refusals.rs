//! The writes that the API server refused, by the object that was reconciled and by GitOpsCluster.

use crate::model::Kind;
use primitives::object_ref::ObjectRef;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A write that the API server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The object that cannot be written, and the reason.
    pub why: Box<str>,
    /// The GitOpsCluster that the write was for, whose status can show the refusal.
    pub gitops: Option<ObjectRef>,
    /// True if it was a write of the status that would show the refusal.
    pub is_of_status: bool,
}

/// The controller, and the object that it reconciled.
type Object = (&'static str, Kind, ObjectRef);

/// The last writes that were refused. A controller can have several parts that write for the same object: each part has its own
/// entry.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    all: HashMap<Object, BTreeMap<usize, Refusal>>,
    gitops: HashMap<ObjectRef, BTreeMap<(Object, usize), Box<str>>>,
}

impl Refusals {
    /// Returns why the last write of any part of a controller for an object was refused.
    pub(super) fn get(&self, object: &Object) -> Option<&Refusal> {
        self.all.get(object)?.values().next()
    }

    /// Returns why the last write of this part of a controller was refused.
    pub(super) fn of_part(&self, object: &Object, part: usize) -> Option<&Refusal> {
        self.all.get(object)?.get(&part)
    }

    /// Returns why writes for a GitOpsCluster were refused, each reason once.
    pub(super) fn of_gitops(&self, object_ref: &ObjectRef) -> BTreeSet<&str> {
        let all = self.gitops.get(object_ref).into_iter().flat_map(BTreeMap::values);
        all.map(|why| &**why).collect()
    }

    /// Records whether the last write of a part was refused. Returns the GitOpsClusters for which that changes something.
    pub(super) fn put(&mut self, object: &Object, part: usize, refusal: Option<Refusal>) -> BTreeSet<ObjectRef> {
        let key = || (object.clone(), part);
        let mut changed = BTreeSet::new();
        let before = self.all.get_mut(object).and_then(|parts| parts.remove(&part));
        if let Some(object_ref) = before.and_then(|before| before.gitops) {
            if let Some(of_it) = self.gitops.get_mut(&object_ref) {
                of_it.remove(&key());
                if of_it.is_empty() {
                    self.gitops.remove(&object_ref);
                }
            }
            changed.insert(object_ref);
        }
        match refusal {
            Some(refusal) => {
                if let Some(object_ref) = &refusal.gitops {
                    let of_it = self.gitops.entry(object_ref.clone()).or_default();
                    of_it.insert(key(), refusal.why.clone());
                    changed.insert(object_ref.clone());
                }
                self.all.entry(object.clone()).or_default().insert(part, refusal);
            }
            None if self.all.get(object).is_some_and(BTreeMap::is_empty) => drop(self.all.remove(object)),
            None => {}
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_one_refusal_per_part_of_a_controller() {
        let all = ObjectRef::new("argocd", "all");
        let object = ("argocd-agent", Kind::Clusters, ObjectRef::new("", "eu1"));
        let refused = |why: &str| {
            Some(Refusal {
                why: why.into(),
                gitops: Some(all.clone()),
                is_of_status: false,
            })
        };
        let mut refusals = Refusals::default();
        for (part, why) in [(1, "no works"), (2, "no Secrets")] {
            assert_eq!(refusals.put(&object, part, refused(why)), BTreeSet::from([all.clone()]));
        }
        assert_eq!(refusals.of_gitops(&all), BTreeSet::from(["no Secrets", "no works"]));
        assert!(refusals.put(&object, 3, None).is_empty(), "a third is accepted");
        refusals.put(&object, 1, None);
        assert_eq!(refusals.of_gitops(&all), BTreeSet::from(["no Secrets"]));
        assert!(refusals.of_part(&object, 1).is_none() && refusals.of_part(&object, 2).is_some());
        refusals.put(&object, 2, None);
        assert!(refusals.all.is_empty() && refusals.gitops.is_empty(), "{refusals:?}");
    }
}
