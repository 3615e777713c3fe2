//! The plan of a dry run: the objects that it would write, and the problems that it would report.

use super::action::{Action, InvolvedObject, Verb};
use primitives::object_ref::ObjectRef;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Update,
    Create,
    Delete,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub read: usize,
    pub created: usize,
    /// The objects that would be changed, also only in labels, annotations or status.
    pub updated: usize,
    pub deleted: usize,
}

/// The result of a dry run. Each object counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    read: BTreeMap<&'static str, usize>,
    changes: BTreeMap<(&'static str, ObjectRef), Change>,
    problems: BTreeSet<String>,
}

impl Plan {
    pub fn add(&mut self, action: &Action) {
        for write in &action.writes {
            let change = match write.verb {
                Verb::Create(_) => Change::Create,
                Verb::Patch(_) | Verb::JsonPatch(_) => Change::Update,
                Verb::Delete { .. } => Change::Delete,
            };
            let object = (write.resource.kind, write.object_ref.clone());
            let known = self.changes.entry(object).or_insert(change);
            *known = change.max(*known);
        }
        let InvolvedObject {
            resource, object_ref, ..
        } = &action.involved_object;
        let warnings = action.events.iter().filter(|event| event.warning);
        let lines = warnings.map(|event| format!("{} {object_ref}: {}", resource.kind, event.message));
        self.problems.extend(lines);
    }

    pub fn set_read(&mut self, kind: &'static str, objects: usize) {
        self.read.insert(kind, objects);
    }

    pub fn totals(&self) -> BTreeMap<&'static str, Totals> {
        let mut totals: BTreeMap<_, Totals> = BTreeMap::new();
        for (kind, read) in &self.read {
            totals.entry(*kind).or_default().read = *read;
        }
        for ((kind, _), change) in &self.changes {
            let totals = totals.entry(*kind).or_default();
            let count = match change {
                Change::Create => &mut totals.created,
                Change::Update => &mut totals.updated,
                Change::Delete => &mut totals.deleted,
            };
            *count = count.saturating_add(1);
        }
        totals
    }

    /// Returns a line for each problem that the controllers would report in an Event.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Event, Write};
    use ocm::resources::{APPLICATIONS, WORKS};
    use serde_json::json;

    #[test]
    fn counts_each_object_once_by_its_greatest_change() {
        let object_ref = |name: &str| ObjectRef::new("eu1", name);
        let patch = |name: &str| Write::patch(&WORKS, object_ref(name), json!({}));
        let delete = Write::delete(&WORKS, object_ref("old"), ("1", "2"));
        let action = Action::new(
            InvolvedObject::new(&APPLICATIONS, ObjectRef::new("argocd", "shop"), "3".into()),
            vec![patch("shop"), patch("shop"), patch("old"), delete],
            vec![Event::warning("NoCluster", "cluster eu9 does not exist".to_owned())],
        );
        let mut plan = Plan::default();
        plan.set_read("ManifestWork", 7);
        plan.add(&action);
        plan.add(&action);
        let works = Totals {
            read: 7,
            created: 0,
            updated: 1,
            deleted: 1,
        };
        assert_eq!(plan.totals(), BTreeMap::from([("ManifestWork", works)]));
        let problems: Vec<_> = plan.problems().collect();
        assert_eq!(problems, ["Application argocd/shop: cluster eu9 does not exist"]);
    }
}
