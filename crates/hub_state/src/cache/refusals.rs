//! The writes that the API server refused, by the object that was reconciled and by GitOpsCluster.

use crate::model::Kind;
use primitives::object_ref::ObjectRef;
use std::collections::{BTreeMap, BTreeSet};

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
type RefusedObject = (&'static str, Kind, ObjectRef);

/// The last writes that the API server refused. A controller can have several parts that write for the same object: each part has its own
/// entry.
#[derive(Debug, Default)]
pub struct Refusals(BTreeMap<(RefusedObject, usize), Refusal>);

impl Refusals {
    /// Returns why the last write of any part of a controller for an object was refused, unless the status that would show it cannot be
    /// written.
    pub fn get(&self, object: &RefusedObject) -> Option<&str> {
        let mut parts = self.0.range((object.clone(), 0)..=(object.clone(), usize::MAX));
        let (_, refusal) = parts.next()?;
        (!refusal.is_of_status).then_some(&*refusal.why)
    }

    /// Returns why the last write of this part of a controller for an object was refused.
    pub fn of_part(&self, object: &RefusedObject, part: usize) -> Option<&str> {
        self.0.get(&(object.clone(), part)).map(|refusal| &*refusal.why)
    }

    /// Returns why writes for a GitOpsCluster were refused, each reason once.
    pub fn of_gitops(&self, object_ref: &ObjectRef) -> BTreeSet<&str> {
        let refusals = self.0.values();
        let of_gitops = refusals.filter(|refusal| refusal.gitops.as_ref() == Some(object_ref));
        of_gitops.map(|refusal| &*refusal.why).collect()
    }

    /// Records whether the last write of a part was refused. Returns the GitOpsClusters for which that changes something.
    pub(super) fn put(&mut self, object: &RefusedObject, part: usize, refusal: Option<Refusal>) -> BTreeSet<ObjectRef> {
        let key = (object.clone(), part);
        let after = refusal.as_ref().and_then(|refusal| refusal.gitops.clone());
        let before = match refusal {
            Some(refusal) => self.0.insert(key, refusal),
            None => self.0.remove(&key),
        };
        before
            .and_then(|before| before.gitops)
            .into_iter()
            .chain(after)
            .collect()
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
        assert!(refusals.0.is_empty(), "{refusals:?}");
    }
}
