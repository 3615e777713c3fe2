//! The report as a table.

use crate::table;
use manifest::text::is_unprintable;
use ocm::health::Report;
use ocm::health::{HealthStatus, ObjectStatus, WorkStatus};
use std::fmt::Write as _;

const HEADINGS: [&str; 7] = ["CLUSTER", "WORK", "OBJECT", "APPLIED", "AVAILABLE", "HEALTH", "MESSAGE"];

/// The column of the health.
const HEALTH: usize = 5;

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const END: &str = "\x1b[0m";
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const GREEN: &str = "\x1b[32m";

/// A line of the table.
struct Row {
    health: HealthStatus,
    cells: [String; 7],
}

/// Formats a line for each object, the least healthy first, and the totals. Works without health per object have one line.
#[must_use]
pub(super) fn table(report: &Report, colours: bool) -> String {
    let mut rows: Vec<Row> = report.works.iter().flat_map(rows).collect();
    // The objects of a work stay in its order.
    let sort_key = |row: &Row| (row.health, row.cells[0].clone(), row.cells[1].clone());
    rows.sort_by_cached_key(sort_key);
    let headings = HEADINGS.map(str::to_owned);
    let lines = || std::iter::once(&headings).chain(rows.iter().map(|row| &row.cells));
    let widths = table::widths(lines());
    let mut text = String::new();
    let plain = |line: String| {
        if colours { format!("{BOLD}{line}{END}") } else { line }
    };
    if !rows.is_empty() {
        text.push_str(&plain(table::line(&headings, &widths, None)));
        text.push('\n');
    }
    for row in &rows {
        let painted = colours.then(|| (HEALTH, [colour(row.health), END]));
        text.push_str(&table::line(&row.cells, &widths, painted));
        text.push('\n');
    }
    if !rows.is_empty() {
        text.push('\n');
    }
    text.push_str(&plain(totals(report)));
    text.push('\n');
    if let Some(message) = &report.syncing {
        let message = clean(message);
        let why = if message.is_empty() {
            message
        } else {
            format!(": {message}")
        };
        writeln!(text, "Argo CD is syncing it{why}").expect("writing to a String never fails");
    }
    for cluster in &report.unreachable {
        let line = format!("{cluster} is unreachable: showing its last reported state");
        writeln!(text, "{}", clean(&line)).expect("writing to a String never fails");
    }
    text
}

/// Formats the totals on one line.
fn totals(report: &Report) -> String {
    let (clusters, healthy) = report.clusters();
    let mut counts = Vec::new();
    for health in HealthStatus::ALL {
        let count = report.objects(health);
        if count > 0 {
            counts.push(format!("{count} {health}"));
        }
    }
    let plural = if clusters == 1 { "" } else { "s" };
    let objects = if counts.is_empty() {
        "no objects".to_owned()
    } else {
        format!("objects: {}", counts.join(", "))
    };
    format!(
        "{} is {}: {healthy} of {clusters} cluster{plural} healthy; {objects}",
        clean(&report.application),
        report.health()
    )
}

/// Replaces control characters and line breaks: a name on the hub or a message may contain anything, including terminal escapes.
#[must_use]
pub fn progress(report: &Report) -> String {
    let first = report.works.first().filter(|work| work.health != HealthStatus::Healthy);
    match first {
        Some(work) => format!(
            "{} ({}: {})",
            totals(report),
            clean(&work.namespace),
            clean(&work.summary())
        ),
        None => totals(report),
    }
}

fn rows(work: &WorkStatus) -> Vec<Row> {
    let cluster = work.cluster().map_or("-".to_owned(), clean);
    let name = match work.cluster() {
        Some(_) => clean(&work.name),
        None => clean(&format!("{}/{}", work.namespace, work.name)),
    };
    let row = |object: String, known: [Option<bool>; 2], health: HealthStatus, message: &str| {
        let [applied, available] = known.map(|known| match known {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        });
        let cells = [
            cluster.clone(),
            name.clone(),
            object,
            applied.to_owned(),
            available.to_owned(),
            health.name().to_owned(),
            clean(message),
        ];
        Row { health, cells }
    };
    let of_object = |object: &ObjectStatus| {
        let known = [object.applied, object.available];
        row(clean(&object.full_name()), known, object.health, &object.message)
    };
    let mut rows = Vec::new();
    if work.as_a_whole || !work.message.is_empty() || work.objects.is_empty() {
        let objects = match work.objects.len() {
            _ if work.cluster().is_none() => "-".to_owned(),
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        };
        rows.push(row(objects, [None, None], work.health, &work.message));
    }
    if !work.as_a_whole {
        rows.extend(work.objects.iter().map(of_object));
    }
    rows
}

/// Removes control characters and line breaks: a name on the hub or a message may contain anything, including terminal escapes.
pub(crate) fn clean(text: &str) -> String {
    let text = text.trim().replace(['\n', '\t'], " ");
    text.replace(is_unprintable, "\u{fffd}")
}

fn colour(health: HealthStatus) -> &'static str {
    match health {
        HealthStatus::Degraded | HealthStatus::Missing => RED,
        HealthStatus::Unknown | HealthStatus::Waiting | HealthStatus::Progressing => YELLOW,
        HealthStatus::Suspended => "\x1b[36m",
        HealthStatus::Healthy => GREEN,
    }
}
