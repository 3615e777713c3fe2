//! The report in the formats of `-o`.

use super::ApplicationStatus;
use super::table::table;
use crate::diagnosis::{DiagnosedApplication, Diagnosis, SyncOperation};
use crate::list::List;
use crate::table::clean;
use ocm::health::{HealthStatus, WorkStatus};
use ocm::hold::Hold;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl List for ApplicationStatus {
    fn table(&self, wide: bool, colours: bool) -> String {
        table(self, wide, colours)
    }

    fn to_json(&self) -> Value {
        let report = &self.report;
        let (clusters, healthy) = report.clusters();
        let counts = HealthStatus::ALL.map(|health| (health.name(), report.objects(health)));
        let counts: BTreeMap<_, _> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        json!({
            "application": report.application,
            "health": self.health(),
            "clusters": {"total": clusters, "healthy": healthy},
            "objects": counts,
            "syncing": report.syncing.is_some(),
            "works": report.works.iter().map(work).collect::<Vec<_>>(),
            "unreachable": report.unreachable,
            "holds": self.holds.iter().map(Hold::describe).collect::<Vec<_>>(),
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "argocd": self.application.as_ref().map(argocd),
        })
    }

    fn names(&self) -> Vec<String> {
        let name = |work: &WorkStatus| clean(&format!("{}/{}", work.namespace, work.name));
        self.report.works.iter().map(name).collect()
    }
}

fn problem(diagnosis: &Diagnosis) -> Value {
    json!({
        "cause": diagnosis.cause,
        "message": diagnosis.message(),
        "remediation": diagnosis.remedy,
        "permanent": diagnosis.permanent,
    })
}

/// Returns the state of the Application in Argo CD.
fn argocd(application: &DiagnosedApplication) -> Value {
    let operation = |sync: &SyncOperation| json!({"phase": sync.phase, "message": sync.message});
    json!({
        "sync": application.sync,
        "health": application.health,
        "conditions": application.conditions,
        "operation": application.operation.as_ref().map(operation),
    })
}

fn work(work: &WorkStatus) -> Value {
    json!({
        "kind": work.kind,
        "namespace": work.namespace,
        "name": work.name,
        "health": work.health,
        "message": work.summary(),
        "objects": work.objects,
    })
}
