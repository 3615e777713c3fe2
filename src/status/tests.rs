//! The table and the values of `status`.

use super::table::table;
use super::{ApplicationStatus, progress};
use crate::diagnosis::{ApplicationCondition, DiagnosedApplication, Diagnosis, ProblemCause};
use crate::list::List as _;
use hub_state::json::borrowed;
use manifest::yaml;
use ocm::health::{Clock, HealthReport, HealthStatus, WorkStatus, evaluate};
use ocm::hold::Hold;
use std::collections::BTreeSet;
use testing::status::{broken, fine, object, status, work};
use testing::works::texts;
use testing::{holds, is_plain_line};

fn clock() -> Clock {
    Clock::at("2026-06-01T12:00:00Z".parse().expect("a time"))
}

fn evaluated(text: &str) -> WorkStatus {
    evaluate(text, &clock()).expect("a work")
}

/// Returns the status of an Application without problems.
fn status_of(report: HealthReport) -> ApplicationStatus {
    ApplicationStatus {
        look: None,
        report,
        application: None,
        problems: Vec::new(),
        holds: Vec::new(),
    }
}

fn report() -> ApplicationStatus {
    let works = [
        work("eu2", &object("a"), "{}"),
        work("eu1", &object("a"), &status("True", 2, &[fine("a")])),
        work("eu3", "", &status("True", 2, &[fine("a"), broken("b\\n\\u001b[31m")])),
        r#"{"kind":"ManifestWorkReplicaSet","metadata":{"name":"shop-x","namespace":"fleet"}}"#.to_owned(),
    ];
    let works = works.iter().map(|text| evaluated(text)).collect();
    let silent = ["eu2", "other"].map(str::to_owned).into();
    let hold = Hold {
        cluster: "eu1".to_owned(),
        until: None,
        reason: Some("audit".to_owned()),
    };
    let syncing = Some("waiting for\nhealthy state".to_owned());
    ApplicationStatus {
        holds: vec![hold],
        ..status_of(HealthReport::new("team_shop", works, &silent, syncing))
    }
}

#[test]
fn table_lists_worst_first_and_totals_last() {
    let text = table(&report(), false, false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "CLUSTER   WORK           OBJECT                         APPLIED   AVAILABLE   HEALTH     MESSAGE",
            "eu3       shop           Deployment.apps shop/b \u{fffd}[31m   yes       yes         Degraded   back-off pulling image",
            "-         fleet/shop-x   -                              -         -           Waiting    \
             waiting for OCM's work manager; it needs the feature gate ManifestWorkReplicaSet",
            "eu2       shop           1 object                       -         -           Waiting    \
             waiting for the agent of managed cluster eu2 to apply it",
            "eu1       shop           Deployment.apps shop/a         yes       yes         Healthy",
            "eu3       shop           Deployment.apps shop/a         yes       yes         Healthy",
            "",
            "team_shop is Degraded: 1 of 3 clusters healthy; objects: 1 Degraded, 1 Waiting, 2 Healthy",
            "Argo CD is syncing it: waiting for healthy state",
            "eu2 is unreachable: showing its last reported state",
            "managed cluster eu1 is on hold: audit",
        ]
    );
    let coloured = table(&report(), false, true);
    let mut plain = coloured.clone();
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
        assert!(plain.contains(code), "{coloured}");
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, text);
}

#[test]
fn wide_table_has_the_health_in_argo_cd() {
    let text = table(&report(), true, false);
    let columns = |line: usize| -> Vec<&str> {
        let cells = text.lines().nth(line).unwrap_or_default().split("   ");
        cells.map(str::trim).filter(|text| !text.is_empty()).collect()
    };
    assert_eq!(columns(0)[5..], ["HEALTH", "IN ARGO CD", "MESSAGE"], "{text}");
    assert_eq!(columns(2)[5..7], ["Waiting", "Progressing"], "{text}");
}

#[test]
fn permanent_problem_is_not_healthy() {
    let problem = |permanent| Diagnosis {
        cause: ProblemCause::Path,
        context: "",
        problem: "the path shop\ndoes not exist".to_owned(),
        remedy: "commit it".to_owned(),
        permanent,
    };
    let fine = evaluated(&work("eu1", &object("a"), &status("True", 2, &[fine("a")])));
    let with = |works: Vec<WorkStatus>, permanent| ApplicationStatus {
        application: Some(DiagnosedApplication {
            sync: "Unknown".to_owned(),
            conditions: vec![ApplicationCondition {
                kind: "ComparisonError".to_owned(),
                message: "no\npath".to_owned(),
            }],
            ..DiagnosedApplication::default()
        }),
        problems: vec![problem(permanent)],
        ..status_of(HealthReport::new("shop", works, &BTreeSet::new(), None))
    };
    let lines = |status: &ApplicationStatus| -> Vec<String> {
        let table = table(status, false, false);
        table.lines().map(str::to_owned).collect()
    };
    let state = ["Argo CD: sync Unknown, health Unknown", "ComparisonError: no path"];
    assert_eq!(
        lines(&with(Vec::new(), true)),
        [
            &["shop has no works: the path shop does not exist: commit it"],
            &state[..]
        ]
        .concat()
    );
    let old = with(vec![fine.clone()], true);
    assert_eq!(
        lines(&old)[3..],
        [
            &[
                "shop is Degraded: 1 of 1 cluster healthy; objects: 1 Healthy",
                "shop is not delivered: the path shop does not exist: commit it"
            ],
            &state[..]
        ]
        .concat()
    );
    assert_eq!(old.health(), HealthStatus::Degraded);
    assert_eq!(with(vec![fine], false).health(), HealthStatus::Progressing);
    let printed = yaml::write(&borrowed(&old.to_json()));
    for line in ["problems:\n- cause: path\n", "  sync: Unknown\n", "health: Degraded\n"] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

#[test]
fn yaml_output_has_health_totals_and_objects() {
    let printed = yaml::write(&borrowed(&report().to_json()));
    for line in [
        "application: team_shop\n",
        "clusters:\n  healthy: 1\n  total: 3\n",
        "health: Degraded\nholds:\n- \"managed cluster eu1 is on hold: audit\"\nobjects:\n  Degraded: 1\n  Healthy: 2\n  Waiting: 1\nproblems: []\nsyncing: true\nunreachable:\n",
        "  - applied: null\n    available: null\n    group: apps\n    health: Waiting\n",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

#[test]
fn table_of_any_work_has_one_line_per_row() {
    holds(800, texts, |text| {
        let Ok(status) = evaluate(&text, &clock()) else {
            return;
        };
        let rows = status.objects.len();
        let report = status_of(HealthReport::new("shop", vec![status], &BTreeSet::new(), None));
        let table = table(&report, false, false);
        let is_line = |line: &str| is_plain_line(line) && line == line.trim_end();
        assert!(
            table.lines().count() <= rows + 5 && table.lines().all(is_line),
            "{table:?}"
        );
        assert!(is_plain_line(&progress(&report)));
        let value = report.to_json();
        let value = borrowed(&value);
        let printed = yaml::write(&value);
        let read: Vec<_> = yaml::documents(&printed)
            .map(|result| result.map(|document| document.value))
            .collect();
        assert_eq!(read, [Ok(value)], "-o yaml prints the value");
    });
}
