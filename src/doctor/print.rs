//! Findings in the formats of `-o`.

use super::{Finding, Severity};
use crate::list::List;
use crate::status::{BOLD, END, GREEN, RED, YELLOW};
use crate::table;
use crate::table::clean;
use manifest::text::{count, unique};
use manifest::value::Value;

/// The findings about a hub.
#[derive(Debug)]
pub struct FindingList<'f> {
    /// The findings, errors first.
    pub findings: &'f [Finding],
    /// True if the table has colours.
    pub colours: bool,
}

impl List for FindingList<'_> {
    /// A line for each finding, the totals, and the addresses of the pages about them. The wide table has the ids too.
    fn table(&self, wide: bool) -> String {
        let mut text = if wide {
            self.rows(["RESULT", "CHECK", "ID", "FINDING"], |finding| {
                let [result, check, line] = cells(finding);
                [result, check, finding.message.id.to_owned(), line]
            })
        } else {
            self.rows(["RESULT", "CHECK", "FINDING"], cells)
        };
        text.push('\n');
        text += &self.bold(totals(self.findings));
        text.push('\n');
        let links = unique(self.findings.iter().filter_map(Finding::link).collect());
        if !links.is_empty() {
            text += "\nDetails:\n";
        }
        for link in links {
            text.extend(["  ", &link, "\n"]);
        }
        text
    }

    fn to_value(&self) -> Value<'_> {
        let number = |level| Value::from_count(number(self.findings, level));
        let finding = |finding: &Finding| {
            Value::map([
                ("result", Value::from_text(finding.message.level.name())),
                ("check", Value::from_text(finding.check)),
                ("id", Value::from_text(finding.message.id)),
                ("message", Value::from_text(&finding.text)),
                ("remediation", Value::from_text(&finding.remediation)),
                ("link", finding.link().map_or(Value::Null, Value::from_text)),
                ("checked", Value::Bool(!finding.message.unreadable)),
            ])
        };
        Value::map([
            ("errors", number(Severity::Error)),
            ("warnings", number(Severity::Warning)),
            ("findings", Value::List(self.findings.iter().map(finding).collect())),
        ])
    }

    /// The ids of the findings.
    fn names(&self) -> Vec<String> {
        self.findings
            .iter()
            .map(|finding| finding.message.id.to_owned())
            .collect()
    }
}

impl FindingList<'_> {
    /// Formats a line of headings, and a line for each finding. The first cell is the result.
    fn rows<const N: usize>(&self, headings: [&str; N], cells: impl Fn(&Finding) -> [String; N]) -> String {
        let headings = headings.map(str::to_owned);
        let rows: Vec<_> = self.findings.iter().map(cells).collect();
        let widths = table::widths(std::iter::once(&headings).chain(&rows));
        let mut text = self.bold(table::line(&headings, &widths, None)) + "\n";
        for (row, finding) in rows.iter().zip(self.findings) {
            let painted = self.colours.then(|| (0, [colour(finding.message.level), END]));
            text += &table::line(row, &widths, painted);
            text.push('\n');
        }
        text
    }

    fn bold(&self, line: String) -> String {
        if self.colours {
            format!("{BOLD}{line}{END}")
        } else {
            line
        }
    }
}

fn cells(finding: &Finding) -> [String; 3] {
    [
        finding.message.level.name().to_owned(),
        finding.check.to_owned(),
        clean(&finding.line()),
    ]
}

fn number(findings: &[Finding], level: Severity) -> usize {
    findings.iter().filter(|finding| finding.message.level == level).count()
}

fn totals(findings: &[Finding]) -> String {
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|level| number(findings, level));
    match (errors, warnings) {
        (0, 0) => "no problems found".to_owned(),
        _ => [(errors, "error"), (warnings, "warning")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| count(number, what))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn colour(level: Severity) -> &'static str {
    match level {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
        Severity::Ok => GREEN,
    }
}
