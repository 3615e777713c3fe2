//! The list of changes, for `diff -o`.

use super::{ObjectChange, Side};
use crate::list::List;
use crate::table;
use crate::table::clean;
use hub_state::json::Written;
use manifest::text::unique;
use manifest::yaml;
use ocm::work::Target;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A change that is the same on several targets.
#[derive(Debug)]
pub(super) struct ChangeOfTargets<'c> {
    /// The change of the first target.
    pub(super) change: &'c ObjectChange,
    /// The targets, in order.
    pub(super) targets: Vec<&'c Target>,
}

/// Groups changes by what they change.
pub(super) fn grouped(changes: &[ObjectChange]) -> Vec<ChangeOfTargets<'_>> {
    let mut groups: Vec<ChangeOfTargets<'_>> = Vec::new();
    let mut indices = HashMap::new();
    for change in changes {
        let what = (&change.what, &change.before, &change.after);
        let at = *indices.entry(what).or_insert(groups.len());
        let target = &change.target;
        match groups.get_mut(at) {
            Some(group) => group.targets.push(target),
            None => groups.push(ChangeOfTargets {
                change,
                targets: vec![target],
            }),
        }
    }
    groups
}

impl ChangeOfTargets<'_> {
    pub(super) fn targets(&self) -> String {
        let targets: Vec<String> = self.targets.iter().map(ToString::to_string).collect();
        targets.join(",")
    }

    /// Returns the kind of the change. A work that is created, deleted or changed as a whole has no sides.
    fn result(&self) -> &'static str {
        match (&self.change.before, &self.change.after) {
            (None, Some(_)) => "created",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
            (None, None) => "work",
        }
    }
}

impl List for [ObjectChange] {
    /// The wide table names all targets, the other one only a single target.
    fn table(&self, wide: bool, _: bool) -> String {
        let row = |group: ChangeOfTargets<'_>| {
            let targets = match group.targets.len() {
                2.. if !wide => group.targets.len().to_string(),
                _ => group.targets(),
            };
            [group.result().to_owned(), group.change.what.clone(), targets]
        };
        let rows = grouped(self).into_iter().map(row);
        table::lines(&["RESULT", "OBJECT", "CLUSTERS"], rows)
    }

    fn to_json(&self) -> Value {
        json!({"changes": grouped(self).iter().map(change_to_json).collect::<Vec<_>>()})
    }

    /// The names of the objects, each once.
    fn names(&self) -> Vec<String> {
        let groups = grouped(self).into_iter();
        unique(groups.map(|group| clean(&group.change.what)).collect())
    }
}

fn change_to_json(group: &ChangeOfTargets<'_>) -> Value {
    let targets: Vec<_> = group.targets.iter().map(ToString::to_string).collect();
    let side = |side: &Option<Side>| {
        let Side { work, yaml } = side.as_ref()?;
        let object = yaml::documents(yaml).next().and_then(Result::ok);
        let object = object.as_ref().map(|document| Written::whole(&document.value));
        Some(json!({"work": work, "object": object}))
    };
    json!({
        "result": group.result(),
        "object": group.change.what,
        "clusters": targets,
        "before": side(&group.change.before),
        "after": side(&group.change.after),
    })
}
