//! Reports in the formats of `-o`.

use super::table::table;
use super::{Condition, Member, Report};
use crate::list::List;
use crate::table::clean;
use jiff::Timestamp;
use manifest::value::{Map, Value};
use std::borrow::Cow;

/// GitOpsClusters.
#[derive(Debug)]
pub struct GitOpsClusterList<'r> {
    /// The reports about them.
    pub reports: &'r [Report],
    /// True if the user named one: then the value is not a list.
    pub is_one: bool,
    /// The time that the expiry of certificates is relative to.
    pub now: Timestamp,
    /// True if tables have colours.
    pub colours: bool,
}

impl List for GitOpsClusterList<'_> {
    fn table(&self, wide: bool) -> String {
        let tables = self
            .reports
            .iter()
            .map(|report| table(report, self.now, wide, self.colours));
        tables.collect::<Vec<_>>().join("\n\n")
    }

    fn value(&self) -> Value<'_> {
        match self.reports {
            [one] if self.is_one => value(one),
            all => Value::map([("items", Value::List(all.iter().map(value).collect()))]),
        }
    }

    fn names(&self) -> Vec<String> {
        let name = |report: &Report| clean(&format!("{}/{}", report.namespace, report.name));
        self.reports.iter().map(name).collect()
    }
}

/// Returns a report as a value for `-o json` and `-o yaml`. Unknown fields are null; `unlisted` counts clusters of unknown state.
#[must_use]
pub(super) fn value(report: &Report) -> Value<'static> {
    let agent = report.agent.as_ref();
    let counts = report.counts.iter();
    let counts = counts.map(|(state, count)| (Cow::Borrowed(*state), number(*count)));
    let certificate =
        |(name, end): &(String, String)| Value::map([("name", Value::text(name)), ("notAfter", Value::text(end))]);
    Value::map([
        ("namespace", Value::text(&report.namespace)),
        ("name", Value::text(&report.name)),
        ("healthy", Value::Bool(report.is_healthy())),
        ("deleting", Value::Bool(report.deleting)),
        ("current", Value::Bool(report.is_current)),
        ("principal", optional(agent.and_then(|agent| agent.server.as_ref()))),
        ("mode", optional(agent.map(|agent| &agent.mode))),
        ("placement", Value::text(&report.placement)),
        ("clusters", Value::Map(Map::from_entries(counts.collect()))),
        (
            "certificates",
            Value::List(report.certificates.iter().map(certificate).collect()),
        ),
        (
            "conditions",
            Value::List(report.conditions.iter().map(condition).collect()),
        ),
        ("agents", Value::List(report.members.iter().map(member).collect())),
        ("unlisted", number(report.unlisted)),
    ])
}

fn condition(it: &Condition) -> Value<'static> {
    Value::map([
        ("type", Value::text(&it.kind)),
        ("status", Value::text(&it.status)),
        ("reason", Value::text(&it.reason)),
        ("message", Value::text(&it.message)),
    ])
}

fn member(it: &Member) -> Value<'static> {
    Value::map([
        ("cluster", Value::text(&it.name)),
        ("state", Value::text(it.state())),
        ("certificateNotAfter", optional(it.certificate_expiry.as_ref())),
        ("message", Value::text(&it.message)),
    ])
}

fn optional(text: Option<&String>) -> Value<'static> {
    text.map_or(Value::Null, Value::text)
}

fn number(count: u64) -> Value<'static> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
