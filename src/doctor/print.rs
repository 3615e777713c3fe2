//! Findings as a table for people, and as a value for programs.

use super::{Finding, Level};
use crate::status::{BOLD, END, GREEN, RED, YELLOW, clean};
use crate::table;
use manifest::value::Value;

const HEADINGS: [&str; 3] = ["RESULT", "CHECK", "FINDING"];

/// Formats a line for each finding, errors first, and the totals.
#[must_use]
pub fn table(findings: &[Finding], colours: bool) -> String {
    let headings = HEADINGS.map(str::to_owned);
    let cells = |it: &Finding| {
        [
            it.message.level.name().to_owned(),
            it.check.to_owned(),
            clean(&it.line()),
        ]
    };
    let rows: Vec<_> = findings.iter().map(cells).collect();
    let widths = table::widths(std::iter::once(&headings).chain(&rows));
    let bold = |line: String| {
        if colours { format!("{BOLD}{line}{END}") } else { line }
    };
    let mut text = bold(table::line(&headings, &widths, None)) + "\n";
    for (row, finding) in rows.iter().zip(findings) {
        let painted = colours.then(|| (0, [colour(finding.message.level), END]));
        text += &table::line(row, &widths, painted);
        text.push('\n');
    }
    text.push('\n');
    text += &bold(totals(findings));
    text.push('\n');
    text
}

/// Returns the findings as a value.
#[must_use]
pub fn value(findings: &[Finding]) -> Value<'static> {
    let number = |level| Value::Int(i64::try_from(number(findings, level)).unwrap_or(i64::MAX));
    let finding = |it: &Finding| {
        Value::map([
            ("result", Value::text(it.message.level.name())),
            ("check", Value::text(it.check)),
            ("id", Value::text(it.message.id)),
            ("message", Value::text(&it.text)),
            ("remediation", Value::text(&it.remediation)),
            ("checked", Value::Bool(!it.message.unreadable)),
        ])
    };
    Value::map([
        ("errors", number(Level::Error)),
        ("warnings", number(Level::Warning)),
        ("findings", Value::List(findings.iter().map(finding).collect())),
    ])
}

fn number(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|it| it.message.level == level).count()
}

fn totals(findings: &[Finding]) -> String {
    let [errors, warnings] = [Level::Error, Level::Warning].map(|level| number(findings, level));
    match (errors, warnings) {
        (0, 0) => "no problems found".to_owned(),
        _ => [(errors, "error"), (warnings, "warning")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| super::message::count(number, what))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Error => RED,
        Level::Warning => YELLOW,
        Level::Ok => GREEN,
    }
}
