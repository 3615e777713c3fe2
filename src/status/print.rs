//! The report in the formats of `-o`.

use super::table::{clean, table};
use crate::list::List;
use manifest::value::{Map, Value};
use ocm::health::Report;
use ocm::health::{HealthStatus, ObjectStatus, WorkStatus};
use std::borrow::Cow;

/// The works of an Application.
#[derive(Debug)]
pub struct StatusList<'r> {
    /// The report about them.
    pub report: &'r Report,
    /// True if the table has colours.
    pub colours: bool,
}

impl List for StatusList<'_> {
    fn table(&self, _wide: bool) -> String {
        table(self.report, self.colours)
    }

    fn value(&self) -> Value<'_> {
        value(self.report)
    }

    fn names(&self) -> Vec<String> {
        let name = |work: &WorkStatus| clean(&format!("{}/{}", work.namespace, work.name));
        self.report.works.iter().map(name).collect()
    }
}

/// Returns a report as a value for `-o json` and `-o yaml`.
#[must_use]
pub(super) fn value(report: &Report) -> Value<'static> {
    let (clusters, healthy) = report.clusters();
    let counts = HealthStatus::ALL.map(|health| (Cow::Borrowed(health.name()), report.objects(health)));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(name, count)| (name, number(count))).collect();
    let mut fields = vec![
        ("application", Value::text(&report.application)),
        ("health", Value::text(report.health().name())),
        (
            "clusters",
            Value::map([("total", number(clusters)), ("healthy", number(healthy))]),
        ),
        ("objects", Value::Map(Map::from_entries(counts))),
        ("syncing", Value::Bool(report.syncing.is_some())),
        ("works", Value::List(report.works.iter().map(work).collect())),
    ];
    let unreachable: Vec<_> = report.unreachable.iter().map(Value::text).collect();
    fields.push(("unreachable", Value::List(unreachable)));
    Value::map(fields)
}

fn work(work: &WorkStatus) -> Value<'static> {
    Value::map([
        ("kind", Value::text(work.kind)),
        ("namespace", Value::text(&work.namespace)),
        ("name", Value::text(&work.name)),
        ("health", Value::text(work.health.name())),
        ("message", Value::text(work.summary())),
        ("objects", Value::List(work.objects.iter().map(object).collect())),
    ])
}

fn object(object: &ObjectStatus) -> Value<'static> {
    let known = |known: Option<bool>| known.map_or(Value::Null, Value::Bool);
    Value::map([
        ("group", Value::text(&object.group)),
        ("kind", Value::text(&object.kind)),
        ("namespace", Value::text(&object.namespace)),
        ("name", Value::text(&object.name)),
        ("applied", known(object.applied)),
        ("available", known(object.available)),
        ("health", Value::text(object.health.name())),
        ("message", Value::text(&object.message)),
    ])
}

fn number(count: usize) -> Value<'static> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
