//! Findings in the formats of `-o`.

use super::{Finding, Severity};
use crate::list::List;
use crate::table::{GREEN, RED, Table, YELLOW, bold, clean};
use manifest::text::{count, unique};
use serde_json::{Value, json};

impl List for [Finding] {
    /// A line for each finding, the totals, and the addresses of the pages about them. The wide table has the ids too.
    fn table(&self, wide: bool, colours: bool) -> String {
        let row = |finding: &Finding| {
            let message = finding.message;
            let cells = [message.level.name(), finding.check, message.id, &clean(&finding.line())];
            (colour(message.level), cells.map(str::to_owned).into())
        };
        let table = Table {
            headings: &["RESULT", "CHECK", "ID", "FINDING"],
            state: 0,
            wide: &[2],
        };
        let mut text = table.format(self.iter().map(row).collect(), wide, colours);
        text.extend(["\n", &bold(&totals(self), colours), "\n"]);
        let links = unique(self.iter().filter_map(Finding::link).collect());
        if !links.is_empty() {
            text += "\nDetails:\n";
        }
        for link in links {
            text.extend(["  ", &link, "\n"]);
        }
        text
    }

    fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "result": finding.message.level.name(),
                "check": finding.check,
                "id": finding.message.id,
                "message": finding.text,
                "remediation": finding.remediation,
                "link": finding.link(),
                "checked": !finding.message.unreadable,
            })
        };
        json!({
            "errors": number(self, Severity::Error),
            "warnings": number(self, Severity::Warning),
            "findings": self.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    /// The ids of the findings.
    fn names(&self) -> Vec<String> {
        self.iter().map(|finding| finding.message.id.to_owned()).collect()
    }
}

fn number(findings: &[Finding], level: Severity) -> usize {
    findings.iter().filter(|finding| finding.message.level == level).count()
}

fn totals(findings: &[Finding]) -> String {
    let numbers = [(Severity::Error, "error"), (Severity::Warning, "warning")];
    let numbers = numbers.map(|(level, noun)| (number(findings, level), noun));
    let problems = numbers.into_iter().filter(|(number, _)| *number > 0);
    let problems: Vec<_> = problems.map(|(number, noun)| count(number, noun)).collect();
    match &*problems {
        [] => "no problems found".to_owned(),
        problems => problems.join(", "),
    }
}

fn colour(level: Severity) -> &'static str {
    match level {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
        Severity::Ok => GREEN,
    }
}
