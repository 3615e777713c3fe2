//! The report as a table.

use super::ApplicationStatus;
use crate::diagnosis::{DiagnosedApplication, Diagnosis};
use crate::table::{CYAN, GREEN, RED, Table, YELLOW, bold, clean};
use manifest::text::{count, with_reason};
use ocm::health::{HealthStatus, ObjectStatus, WorkStatus};
use std::fmt::Write as _;

/// The columns of the objects of works.
const COLUMNS: Table<'_> = Table {
    headings: &[
        "CLUSTER",
        "WORK",
        "OBJECT",
        "APPLIED",
        "AVAILABLE",
        "HEALTH",
        "IN ARGO CD",
        "MESSAGE",
    ],
    state: 5,
    wide: &[6],
};

/// A line of a table.
pub(super) struct Row {
    pub(super) health: HealthStatus,
    pub(super) cells: Vec<String>,
}

/// Formats a table with an empty line below it; no table without rows.
pub(super) fn format_rows(table: &Table<'_>, rows: Vec<Row>, wide: bool, colours: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows = rows.into_iter().map(|row| (colour(row.health), row.cells)).collect();
    table.format(rows, wide, colours) + "\n"
}

/// Formats a line for each object, the least healthy first, and the totals. Works without health per object have one line. The wide
/// table has the health in Argo CD too.
pub(super) fn table(status: &ApplicationStatus, wide: bool, colours: bool) -> String {
    let report = &status.report;
    let mut rows: Vec<Row> = report.works.iter().flat_map(rows).collect();
    // The objects of a work stay in its order.
    let sort_key = |row: &Row| (row.health, row.cells[0].clone(), row.cells[1].clone());
    rows.sort_by_cached_key(sort_key);
    let mut text = format_rows(&COLUMNS, rows, wide, colours);
    let mut add = |line: String| writeln!(text, "{line}").expect("writing to a String never fails");
    if !report.works.is_empty() {
        add(bold(&totals(status), colours));
    }
    if let Some(message) = report.syncing.as_ref().filter(|_| !report.works.is_empty()) {
        add(with_reason("Argo CD is syncing it", &clean(message)));
    }
    for cluster in &report.unreachable {
        add(clean(&format!(
            "{cluster} is unreachable: showing its last reported state"
        )));
    }
    if let Some(command) = &status.look {
        add(format!("to see more: {command}"));
    }
    for hold in &status.holds {
        add(clean(&hold.describe()));
    }
    for problem in &status.problems {
        add(bold(&problem_line(status, problem), colours));
    }
    if let Some(application) = status.application.as_ref().filter(|_| !status.problems.is_empty()) {
        for line in state(application) {
            add(clean(&line));
        }
    }
    text
}

/// Formats a problem of an Application as one line.
fn problem_line(status: &ApplicationStatus, problem: &Diagnosis) -> String {
    let report = &status.report;
    let result = if report.works.is_empty() {
        "has no works"
    } else if problem.permanent {
        "is not delivered"
    } else {
        "waits"
    };
    clean(&format!("{} {result}: {}", report.application, problem.line()))
}

/// Formats the state of an Application in Argo CD.
fn state(application: &DiagnosedApplication) -> Vec<String> {
    let known = |text: &str| if text.is_empty() { "Unknown" } else { text }.to_owned();
    let (sync, health) = (known(&application.sync), known(&application.health));
    let mut lines = vec![format!("Argo CD: sync {sync}, health {health}")];
    lines.extend(
        application
            .conditions
            .iter()
            .map(|condition| format!("{}: {}", condition.kind, condition.message)),
    );
    let operation = application.operation.iter();
    lines.extend(operation.map(|operation| format!("last sync {}: {}", operation.phase, operation.message)));
    lines
}

/// Formats the totals on one line.
fn totals(status: &ApplicationStatus) -> String {
    let report = &status.report;
    let (clusters, healthy) = report.clusters();
    let mut counts = Vec::new();
    for health in HealthStatus::ALL {
        let objects = report.objects(health);
        if objects > 0 {
            counts.push(format!("{objects} {health}"));
        }
    }
    let objects = if counts.is_empty() {
        "no objects".to_owned()
    } else {
        format!("objects: {}", counts.join(", "))
    };
    format!(
        "{} is {}: {healthy} of {} healthy; {objects}",
        clean(&report.application),
        status.health(),
        count(clusters, "cluster")
    )
}

/// Formats the progress on one line: the totals, and the first reason to wait.
pub(crate) fn progress(status: &ApplicationStatus) -> String {
    if let Some(problem) = status.problems.first() {
        return problem_line(status, problem);
    }
    let mut works = status.report.works.iter();
    match works.find(|work| work.health != HealthStatus::Healthy) {
        Some(work) => format!(
            "{} ({}: {})",
            totals(status),
            clean(&work.namespace),
            clean(&work.summary())
        ),
        None => totals(status),
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
        let cells = vec![
            cluster.clone(),
            name.clone(),
            object,
            applied.to_owned(),
            available.to_owned(),
            health.name().to_owned(),
            health.in_argo_cd().to_owned(),
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
            number => count(number, "object"),
        };
        rows.push(row(objects, [None, None], work.health, &work.message));
    }
    if !work.as_a_whole {
        rows.extend(work.objects.iter().map(of_object));
    }
    rows
}

fn colour(health: HealthStatus) -> &'static str {
    match health {
        HealthStatus::Degraded | HealthStatus::Missing => RED,
        HealthStatus::Unknown | HealthStatus::Waiting | HealthStatus::Progressing => YELLOW,
        HealthStatus::Suspended => CYAN,
        HealthStatus::Healthy => GREEN,
    }
}
