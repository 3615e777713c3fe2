//! The report as a table.

use super::{AgentMember, GitOpsClusterCondition, GitOpsClusterReport};
use crate::table;
use crate::table::{BOLD, GREEN, RED, Table, YELLOW, clean};
use argocd_agent::state::State;
use jiff::Timestamp;
use manifest::text::{count, with_reason};
use std::fmt::Write as _;

const READY: &str = "READY";

/// Formats the GitOpsCluster, its certificates, its problems, and a line for each managed cluster, the least healthy first. If
/// `wide`, clusters have the expiry of their certificates. All times are relative to `now`.
pub(super) fn table(report: &GitOpsClusterReport, now: Timestamp, wide: bool, colours: bool) -> String {
    let head = head(report);
    let mut text = table::painted(&head, |at| {
        let painted = match &*head[at][0] {
            READY => (1, colour_of(report.ready().map_or("Unknown", |ready| &ready.status))),
            _ => (0, BOLD),
        };
        colours.then_some(painted)
    });
    let mut add = |headings: &[&str], wide_columns: &[usize], rows: Vec<(&'static str, Vec<String>)>| {
        if !rows.is_empty() {
            let table = Table {
                headings,
                state: 1,
                wide: wide_columns,
            };
            text.extend(["\n", &table.format(rows, wide, colours)]);
        }
    };
    let certificate = |(name, end): &(String, String)| ("", vec![clean(name), format_expiry(end, now)]);
    let certificates = report.certificates.iter().map(certificate).collect();
    add(&["CERTIFICATE", "UNTIL"], &[], certificates);
    let problems = report.conditions.iter();
    let problems = problems.filter(|condition| condition.status != "True" && condition.kind != "Ready");
    let problem = |condition: &GitOpsClusterCondition| {
        let cells = [&condition.kind, &condition.status, &condition.message];
        (colour_of(&condition.status), cells.map(|cell| clean(cell)).into())
    };
    add(
        &["CONDITION", "STATUS", "MESSAGE"],
        &[],
        problems.map(problem).collect(),
    );
    let member = |member: &AgentMember| {
        let end = member.certificate_expiry.as_ref();
        let cells = vec![
            clean(&member.name),
            member.state(),
            end.map_or("-".to_owned(), |end| format_expiry(end, now)),
            clean(&member.message),
        ];
        (colour_of_state(member.state), cells)
    };
    let headings = ["CLUSTER", "STATE", "CERTIFICATE-UNTIL", "MESSAGE"];
    add(&headings, &[2], report.members.iter().map(member).collect());
    if report.unlisted > 0 {
        let more = count(usize::try_from(report.unlisted).unwrap_or(usize::MAX), "more cluster");
        writeln!(text, "\n{more} not listed in the status").expect("writing to a String never fails");
    }
    text
}

fn head(report: &GitOpsClusterReport) -> Vec<[String; 2]> {
    let mut rows = vec![("GITOPSCLUSTER", format!("{}/{}", report.namespace, report.name))];
    rows.push((READY, ready(report)));
    if let Some(agent) = &report.agent {
        let unknown = || "not known yet".to_owned();
        rows.push(("PRINCIPAL", agent.server.clone().unwrap_or_else(unknown)));
        rows.push(("MODE", agent.mode.clone()));
    }
    rows.push(("PLACEMENT", report.placement.clone()));
    let counts = report.counts.iter().map(|(state, count)| format!("{count} {state}"));
    let counts: Vec<_> = counts.collect();
    if !counts.is_empty() {
        rows.push(("CLUSTERS", counts.join(", ")));
    }
    rows.into_iter()
        .map(|(key, value)| [key.to_owned(), clean(&value)])
        .collect()
}

fn ready(report: &GitOpsClusterReport) -> String {
    let Some(GitOpsClusterCondition { status, message, .. }) = report.ready() else {
        return "no controller has written its status: check that one runs with --controllers gitopscluster".to_owned();
    };
    let aside = match (report.deleting, report.is_current) {
        (true, _) => ", and it is being deleted",
        (false, false) => ", before its last change",
        (false, true) => "",
    };
    with_reason(&format!("{status}{aside}"), message)
}

/// Formats a time as kubectl formats an AGE, with the time itself: `29d (2026-12-21T10:00:00Z)`. Returns other text as it is.
fn format_expiry(end: &str, now: Timestamp) -> String {
    let Ok(at) = end.parse::<Timestamp>() else {
        return clean(end);
    };
    let remaining = at.duration_since(now);
    if remaining.is_negative() {
        format!("ended {} ago ({end})", table::age(remaining.abs()))
    } else {
        format!("{} ({end})", table::age(remaining))
    }
}

fn colour_of(status: &str) -> &'static str {
    match status {
        "True" => GREEN,
        "False" => RED,
        _ => YELLOW,
    }
}

fn colour_of_state(state: Option<State>) -> &'static str {
    match state {
        Some(State::Degraded | State::Disconnected) => RED,
        Some(State::Installing | State::Pending | State::Unreachable) | None => YELLOW,
        Some(State::Connected) => GREEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_time_is_shown_unchanged() {
        assert_eq!(format_expiry("soon\n", Timestamp::UNIX_EPOCH), "soon");
        let epoch = "1970-01-01T00:00:00Z";
        assert_eq!(format_expiry(epoch, Timestamp::UNIX_EPOCH), format!("0s ({epoch})"));
    }
}
