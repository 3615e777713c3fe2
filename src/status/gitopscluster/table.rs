//! The report as a table.

use super::super::table::{BOLD, END, GREEN, RED, YELLOW};
use super::{AgentMember, GitOpsClusterCondition, GitOpsClusterReport};
use crate::table;
use crate::table::clean;
use argocd_agent::state::State;
use jiff::Timestamp;
use manifest::text::count;
use std::fmt::Write as _;

const READY: &str = "READY";

/// Formats the GitOpsCluster, its certificates, its problems, and a line for each managed cluster, the least healthy first. If
/// `wide`, clusters have the expiry of their certificates. All times are relative to `now`.
#[must_use]
pub(super) fn table(report: &GitOpsClusterReport, now: Timestamp, wide: bool, colours: bool) -> String {
    let head = head(report);
    let widths = table::widths(head.iter());
    let mut text = String::new();
    for row in &head {
        let begin = if row[0] == READY { ready_colour(report) } else { BOLD };
        let painted = (usize::from(row[0] == READY), [begin, END]);
        text += &table::line(row, &widths, colours.then_some(painted));
        text.push('\n');
    }
    if !report.certificates.is_empty() {
        let row = |(name, end): &(String, String)| [clean(name), format_expiry(end, now)];
        let certificates: Vec<_> = report.certificates.iter().map(row).collect();
        text.push('\n');
        text += &section(["CERTIFICATE", "UNTIL"], &certificates, colours, |_| None);
    }
    let problems = report.conditions.iter();
    let problems: Vec<_> = problems
        .filter(|condition| condition.status != "True" && condition.kind != "Ready")
        .map(|condition| [&condition.kind, &condition.status, &condition.message].map(|cell| clean(cell)))
        .collect();
    if !problems.is_empty() {
        let colour = |at: usize| Some((1, colour_of(&problems[at][1])));
        text.push('\n');
        text += &section(["CONDITION", "STATUS", "MESSAGE"], &problems, colours, colour);
    }
    if !report.members.is_empty() {
        let colour = |at: usize| Some((1, colour_of_state(report.members[at].state)));
        text.push('\n');
        text += &if wide {
            let row = |member: &AgentMember| {
                let end = member
                    .certificate_expiry
                    .as_ref()
                    .map_or("-".to_owned(), |end| format_expiry(end, now));
                [
                    clean(&member.name),
                    member.state().to_owned(),
                    end,
                    clean(&member.message),
                ]
            };
            let members: Vec<_> = report.members.iter().map(row).collect();
            let headings = ["CLUSTER", "STATE", "CERTIFICATE-UNTIL", "MESSAGE"];
            section(headings, &members, colours, colour)
        } else {
            let row = |member: &AgentMember| [clean(&member.name), member.state().to_owned(), clean(&member.message)];
            let members: Vec<_> = report.members.iter().map(row).collect();
            section(["CLUSTER", "STATE", "MESSAGE"], &members, colours, colour)
        };
    }
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
    let message = if message.is_empty() {
        message.clone()
    } else {
        format!(": {message}")
    };
    format!("{status}{aside}{message}")
}

fn ready_colour(report: &GitOpsClusterReport) -> &'static str {
    colour_of(report.ready().map_or("Unknown", |ready| &ready.status))
}

/// Adds rows under headings.
fn section<const N: usize>(
    headings: [&str; N],
    cells: &[[String; N]],
    colours: bool,
    colour: impl Fn(usize) -> Option<(usize, &'static str)>,
) -> String {
    let headings = headings.map(str::to_owned);
    let widths = table::widths(std::iter::once(&headings).chain(cells));
    let heading = table::line(&headings, &widths, None);
    let mut text = if colours {
        format!("{BOLD}{heading}{END}\n")
    } else {
        heading + "\n"
    };
    for (at, row) in cells.iter().enumerate() {
        let painted = colour(at).filter(|_| colours);
        text += &table::line(row, &widths, painted.map(|(column, begin)| (column, [begin, END])));
        text.push('\n');
    }
    text
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
