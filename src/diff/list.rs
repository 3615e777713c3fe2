//! The list of changes, for `diff -o`.

use super::{ObjectChange, Side};
use crate::list::List;
use crate::table;
use crate::table::clean;
use manifest::text::unique;
use manifest::value::Value;
use manifest::yaml;
use ocm::work::Target;
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

/// The changes on the hub.
#[derive(Debug)]
pub(crate) struct ChangeList<'c>(pub &'c [ObjectChange]);

impl List for ChangeList<'_> {
    /// The wide table names all targets, the other one only a single target.
    fn table(&self, wide: bool) -> String {
        let headings = ["RESULT", "OBJECT", "CLUSTERS"].map(str::to_owned);
        let row = |group: ChangeOfTargets<'_>| {
            let targets = match group.targets.len() {
                2.. if !wide => group.targets.len().to_string(),
                _ => group.targets(),
            };
            [group.result().to_owned(), group.change.what.clone(), targets]
        };
        let rows: Vec<_> = std::iter::once(headings)
            .chain(grouped(self.0).into_iter().map(row))
            .collect();
        table::lines(&rows)
    }

    fn to_value(&self) -> Value<'_> {
        let groups = grouped(self.0);
        Value::map([("changes", Value::List(groups.iter().map(to_change_value).collect()))])
    }

    /// The names of the objects, each once.
    fn names(&self) -> Vec<String> {
        let groups = grouped(self.0).into_iter();
        unique(groups.map(|group| clean(&group.change.what)).collect())
    }
}

fn to_change_value<'c>(group: &ChangeOfTargets<'c>) -> Value<'c> {
    let targets = group.targets.iter().map(|target| Value::from_text(target.to_string()));
    let side = |side: &'c Option<Side>| {
        let Some(Side { work, yaml }) = side else {
            return Value::Null;
        };
        let object = yaml::documents(yaml).next().and_then(Result::ok);
        let object = object.map_or(Value::Null, |document| document.value);
        Value::map([("work", Value::from_text(work)), ("object", object)])
    };
    Value::map([
        ("result", Value::from_text(group.result())),
        ("object", Value::from_text(&group.change.what)),
        ("clusters", Value::List(targets.collect())),
        ("before", side(&group.change.before)),
        ("after", side(&group.change.after)),
    ])
}
