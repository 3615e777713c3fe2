//! Checks that `docs/metrics.md` lists exactly the existing metrics and alerts.

use super::exposed::exposed;
use super::read_file;
use super::rules::{names, rules};
use runtime::metrics::Reason;
use std::collections::BTreeSet;

fn page() -> String {
    read_file("docs/metrics.md")
}

/// Returns the cells of the rows of the table with this head, without the head.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let (_, table) = page.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

#[test]
fn page_lists_every_metric_with_type_and_labels() {
    let page = page();
    let listed = rows(&page, "| Metric | Type | Labels | Meaning |");
    let listed: BTreeSet<_> = listed
        .iter()
        .map(|row| {
            assert!(!row[3].is_empty(), "{}: no meaning", row[0]);
            let labels = row[2].split(", ").filter(|label| !label.is_empty());
            let labels: BTreeSet<_> = labels.map(str::to_owned).collect();
            (row[0].clone(), row[1].clone(), labels)
        })
        .collect();
    let code = |text: &String| format!("`{text}`");
    let exposed: BTreeSet<_> = exposed()
        .iter()
        .map(|(name, metric)| {
            (
                code(name),
                metric.kind.clone(),
                metric.labels.iter().map(code).collect(),
            )
        })
        .collect();
    assert_eq!(listed, exposed);
}

#[test]
fn page_lists_every_error_reason() {
    let page = page();
    let listed: Vec<_> = rows(&page, "| Reason | What has happened |").concat();
    let listed: Vec<_> = listed.iter().step_by(2).map(|name| name.trim_matches('`')).collect();
    assert_eq!(listed, Reason::ALL.map(Reason::name));
}

#[test]
fn page_lists_every_recorded_series() {
    let page = page();
    let listed: BTreeSet<_> = rows(&page, "| Series | What it is |")
        .iter()
        .map(|row| row[0].trim_matches('`').to_owned())
        .collect();
    assert_eq!(listed, names("record"));
}

#[test]
fn page_has_a_remediation_for_every_alert() {
    let page = page();
    let (_, alerts) = page.split_once("\n## Alerts\n").expect("alerts");
    let listed: Vec<_> = alerts
        .split("\n### ")
        .skip(1)
        .map(|section| {
            let (name, text) = section.split_once('\n').expect("a section");
            assert!(text.trim().len() > 100, "{name} has no remediation");
            name
        })
        .collect();
    let rules = rules();
    let fires: Vec<_> = rules.iter().filter_map(|rule| rule["alert"].as_str()).collect();
    assert_eq!(listed, fires, "the order of monitoring/rules.yaml");
}
