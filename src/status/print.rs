//! The report in the formats of `-o`.

use super::ApplicationStatus;
use super::table::table;
use crate::diagnosis::{ApplicationCondition, DiagnosedApplication, Diagnosis, SyncOperation};
use crate::list::List;
use crate::table::clean;
use manifest::value::{Map, Value};
use ocm::health::{HealthStatus, ObjectStatus, WorkStatus};
use std::borrow::Cow;

/// The works of an Application.
#[derive(Debug)]
pub struct StatusList<'r> {
    /// The report about them.
    pub status: &'r ApplicationStatus,
    /// True if the table has colours.
    pub colours: bool,
}

impl List for StatusList<'_> {
    fn table(&self, wide: bool) -> String {
        table(self.status, wide, self.colours)
    }

    fn to_value(&self) -> Value<'_> {
        build_status_value(self.status)
    }

    fn names(&self) -> Vec<String> {
        let name = |work: &WorkStatus| clean(&format!("{}/{}", work.namespace, work.name));
        self.status.report.works.iter().map(name).collect()
    }
}

/// Returns a status as a value for `-o json` and `-o yaml`.
#[must_use]
pub(super) fn build_status_value(status: &ApplicationStatus) -> Value<'static> {
    let report = &status.report;
    let (clusters, healthy) = report.clusters();
    let counts = HealthStatus::ALL.map(|health| (Cow::Borrowed(health.name()), report.objects(health)));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(name, count)| (name, Value::from_count(count))).collect();
    let mut fields = vec![
        ("application", Value::from_text(&report.application)),
        ("health", Value::from_text(status.health().name())),
        (
            "clusters",
            Value::map([
                ("total", Value::from_count(clusters)),
                ("healthy", Value::from_count(healthy)),
            ]),
        ),
        ("objects", Value::Map(Map::from_entries(counts))),
        ("syncing", Value::Bool(report.syncing.is_some())),
        ("works", Value::List(report.works.iter().map(work).collect())),
    ];
    let unreachable: Vec<_> = report.unreachable.iter().map(Value::from_text).collect();
    fields.push(("unreachable", Value::List(unreachable)));
    let holds = status
        .holds
        .iter()
        .map(|hold| Value::from_text(hold.describe()))
        .collect();
    fields.push(("holds", Value::List(holds)));
    fields.push(("problems", Value::List(status.problems.iter().map(problem).collect())));
    fields.push(("argocd", status.application.as_ref().map_or(Value::Null, argocd)));
    Value::map(fields)
}

fn problem(diagnosis: &Diagnosis) -> Value<'static> {
    Value::map([
        ("cause", Value::from_text(diagnosis.cause.name())),
        ("message", Value::from_text(diagnosis.message())),
        ("remediation", Value::from_text(&diagnosis.remedy)),
        ("permanent", Value::Bool(diagnosis.permanent)),
    ])
}

/// Returns the state of the Application in Argo CD.
fn argocd(application: &DiagnosedApplication) -> Value<'static> {
    let condition = |condition: &ApplicationCondition| {
        Value::map([
            ("type", Value::from_text(&condition.kind)),
            ("message", Value::from_text(&condition.message)),
        ])
    };
    let operation = |operation: &SyncOperation| {
        Value::map([
            ("phase", Value::from_text(&operation.phase)),
            ("message", Value::from_text(&operation.message)),
        ])
    };
    Value::map([
        ("sync", Value::from_text(&application.sync)),
        ("health", Value::from_text(&application.health)),
        (
            "conditions",
            Value::List(application.conditions.iter().map(condition).collect()),
        ),
        (
            "operation",
            application.operation.as_ref().map_or(Value::Null, operation),
        ),
    ])
}

fn work(work: &WorkStatus) -> Value<'static> {
    Value::map([
        ("kind", Value::from_text(work.kind)),
        ("namespace", Value::from_text(&work.namespace)),
        ("name", Value::from_text(&work.name)),
        ("health", Value::from_text(work.health.name())),
        ("message", Value::from_text(work.summary())),
        ("objects", Value::List(work.objects.iter().map(object).collect())),
    ])
}

fn object(object: &ObjectStatus) -> Value<'static> {
    let known = |known: Option<bool>| known.map_or(Value::Null, Value::Bool);
    Value::map([
        ("group", Value::from_text(&object.group)),
        ("kind", Value::from_text(&object.kind)),
        ("namespace", Value::from_text(&object.namespace)),
        ("name", Value::from_text(&object.name)),
        ("applied", known(object.applied)),
        ("available", known(object.available)),
        ("health", Value::from_text(object.health.name())),
        ("message", Value::from_text(&object.message)),
    ])
}
