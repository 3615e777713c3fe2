//! Reports in the formats of `-o`.

use super::table::table;
use super::{AgentMember, GitOpsClusterCondition, GitOpsClusterReport};
use crate::list::List;
use crate::table::clean;
use jiff::Timestamp;
use manifest::value::{Map, Value};
use std::borrow::Cow;

/// GitOpsClusters.
#[derive(Debug)]
pub struct GitOpsClusterList<'r> {
    /// The reports about them.
    pub reports: &'r [GitOpsClusterReport],
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

    fn to_value(&self) -> Value<'_> {
        match self.reports {
            [one] if self.is_one => build_report_value(one),
            all => Value::map([("items", Value::List(all.iter().map(build_report_value).collect()))]),
        }
    }

    fn names(&self) -> Vec<String> {
        let name = |report: &GitOpsClusterReport| clean(&format!("{}/{}", report.namespace, report.name));
        self.reports.iter().map(name).collect()
    }
}

/// Returns a report as a value for `-o json` and `-o yaml`. Unknown fields are null; `unlisted` counts clusters of unknown state.
#[must_use]
pub(super) fn build_report_value(report: &GitOpsClusterReport) -> Value<'static> {
    let agent = report.agent.as_ref();
    let counts = report.counts.iter();
    let counts = counts.map(|(state, count)| (Cow::Borrowed(*state), Value::from_count(*count)));
    let certificate = |(name, end): &(String, String)| {
        Value::map([("name", Value::from_text(name)), ("notAfter", Value::from_text(end))])
    };
    Value::map([
        ("namespace", Value::from_text(&report.namespace)),
        ("name", Value::from_text(&report.name)),
        ("healthy", Value::Bool(report.is_healthy())),
        ("deleting", Value::Bool(report.deleting)),
        ("current", Value::Bool(report.is_current)),
        ("principal", optional(agent.and_then(|agent| agent.server.as_ref()))),
        ("mode", optional(agent.map(|agent| &agent.mode))),
        ("placement", Value::from_text(&report.placement)),
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
        ("unlisted", Value::from_count(report.unlisted)),
    ])
}

fn condition(condition: &GitOpsClusterCondition) -> Value<'static> {
    Value::map([
        ("type", Value::from_text(&condition.kind)),
        ("status", Value::from_text(&condition.status)),
        ("reason", Value::from_text(&condition.reason)),
        ("message", Value::from_text(&condition.message)),
    ])
}

fn member(member: &AgentMember) -> Value<'static> {
    Value::map([
        ("cluster", Value::from_text(&member.name)),
        ("state", Value::from_text(member.state())),
        ("certificateNotAfter", optional(member.certificate_expiry.as_ref())),
        ("message", Value::from_text(&member.message)),
    ])
}

fn optional(text: Option<&String>) -> Value<'static> {
    text.map_or(Value::Null, Value::from_text)
}
