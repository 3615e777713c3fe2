//! The metrics and labels that a PromQL expression names.

use super::exposed::exposed;
use std::collections::BTreeSet;

/// The labels that Prometheus adds to all scraped metrics.
const OF_TARGETS: [&str; 4] = ["instance", "job", "namespace", "pod"];

const KEYWORDS: [&str; 5] = ["and", "bool", "offset", "or", "unless"];
const GROUPINGS: [&str; 6] = ["by", "group_left", "group_right", "ignoring", "on", "without"];

/// The names in an expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// The metrics with the labels that select them.
    metrics: Vec<(String, Vec<String>)>,
    /// The labels of groupings and joins.
    groupings: Vec<String>,
}

/// Parses an expression.
pub(super) fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut rest = expression;
    // True inside the labels of a metric or of a grouping.
    let (mut in_braces, mut in_grouping, mut awaits_grouping) = (false, false, false);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let length = match first {
            '"' => 2 + rest[1..].find('"').expect("the end of a text"),
            '[' => 1 + rest.find(']').expect("the end of a range"),
            c if c.is_ascii_digit() => rest.find(|c| !is_word(c) && c != '.').unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        rest = after;
        match first {
            '{' => in_braces = true,
            '}' => in_braces = false,
            '(' => in_grouping = std::mem::take(&mut awaits_grouping),
            ')' => in_grouping = false,
            c if !is_word(c) || c.is_ascii_digit() => {}
            _ if in_braces => named.metrics.last_mut().expect("a metric").1.push(word.to_owned()),
            _ if in_grouping => named.groupings.push(word.to_owned()),
            _ if GROUPINGS.contains(&word) => awaits_grouping = true,
            _ if KEYWORDS.contains(&word) || after.starts_with('(') || after.starts_with(" by (") => {}
            _ => named.metrics.push((word.to_owned(), Vec::new())),
        }
    }
    named
}

/// Asserts that all metrics and labels of an expression exist: exposed by the program, or recorded.
pub(super) fn check(expression: &str, recorded: &BTreeSet<String>) {
    let exposed = exposed();
    let known: BTreeSet<&str> = exposed
        .values()
        .flat_map(|metric| metric.labels.iter().map(String::as_str))
        .chain(OF_TARGETS)
        .collect();
    let Named { metrics, groupings } = named(expression);
    assert!(!metrics.is_empty(), "no metric: {expression}");
    for (name, labels) in metrics {
        let of_histogram = name.strip_suffix("_bucket").and_then(|base| exposed.get(base));
        let metric = exposed.get(&name).or(of_histogram);
        // The metrics that Prometheus creates for alerts.
        let is_made = name == "ALERTS" || recorded.contains(&name);
        assert!(metric.is_some() || is_made, "there is no metric {name}: {expression}");
        for label in labels {
            let exists = match metric {
                Some(metric) => metric.labels.contains(&label) || OF_TARGETS.contains(&&*label),
                None if name == "ALERTS" => ["alertname", "alertstate"].contains(&&*label),
                None => known.contains(&*label),
            };
            assert!(exists, "{name} has no label {label}: {expression}");
        }
    }
    for label in groupings {
        let exists = known.contains(&*label) || label == "le";
        assert!(exists, "nothing has a label {label}: {expression}");
    }
}

#[test]
fn finds_metrics_and_labels_of_an_expression() {
    let names = named(
        r#"sum by (job, le) (rate(a_total{x="by (z) {", y!~"1"}[5m])) / on (job) b:c > 0.1 and max(d) * 4e2 or e"#,
    );
    let metrics = [
        ("a_total", vec!["x", "y"]),
        ("b:c", vec![]),
        ("d", vec![]),
        ("e", vec![]),
    ];
    let owned = |labels: Vec<&str>| labels.into_iter().map(str::to_owned).collect();
    let expected = Named {
        metrics: metrics.map(|(name, labels)| (name.to_owned(), owned(labels))).into(),
        groupings: owned(vec!["job", "le", "job"]),
    };
    assert_eq!(names, expected);
}
