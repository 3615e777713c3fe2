//! Reports in the formats of `-o`.

use super::table::table;
use super::{AgentMember, GitOpsClusterReport};
use crate::list::List;
use crate::table::clean;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// GitOpsClusters.
#[derive(Debug)]
pub(crate) struct GitOpsClusterList<'r> {
    /// The reports about them.
    pub(crate) reports: &'r [GitOpsClusterReport],
    /// True if the user named one: then the value is not a list.
    pub(crate) is_one: bool,
    /// The time that the expiry of certificates is relative to.
    pub(crate) now: Timestamp,
}

impl List for GitOpsClusterList<'_> {
    fn table(&self, wide: bool, colours: bool) -> String {
        let tables = self.reports.iter().map(|report| table(report, self.now, wide, colours));
        tables.collect::<Vec<_>>().join("\n\n")
    }

    fn to_json(&self) -> Value {
        match self.reports {
            [one] if self.is_one => to_json(one),
            all => json!({"items": all.iter().map(to_json).collect::<Vec<_>>()}),
        }
    }

    fn names(&self) -> Vec<String> {
        let name = |report: &GitOpsClusterReport| clean(&format!("{}/{}", report.namespace, report.name));
        self.reports.iter().map(name).collect()
    }
}

/// Returns a report as a value for `-o json` and `-o yaml`. Unknown fields are null; `unlisted` counts clusters of unknown state.
pub(super) fn to_json(report: &GitOpsClusterReport) -> Value {
    let agent = report.agent.as_ref();
    let certificate = |(name, end): &(String, String)| json!({"name": name, "notAfter": end});
    json!({
        "namespace": report.namespace,
        "name": report.name,
        "healthy": report.is_healthy(),
        "deleting": report.deleting,
        "current": report.is_current,
        "principal": agent.and_then(|agent| agent.server.as_ref()),
        "mode": agent.map(|agent| &agent.mode),
        "placement": report.placement,
        "clusters": report.counts.iter().copied().collect::<BTreeMap<_, _>>(),
        "certificates": report.certificates.iter().map(certificate).collect::<Vec<_>>(),
        "conditions": report.conditions,
        "agents": report.members.iter().map(member).collect::<Vec<_>>(),
        "unlisted": report.unlisted,
    })
}

fn member(member: &AgentMember) -> Value {
    json!({
        "cluster": member.name,
        "state": member.state(),
        "certificateNotAfter": member.certificate_expiry,
        "message": member.message,
    })
}
