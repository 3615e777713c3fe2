//! `status`: prints the health of an Application on its clusters, work by work and object by object.
//!
//! ```text
//! hub ─▶ works ─────────────────────▶ ocm::health ─▶ Report ───┐
//!     └▶ Application, ManagedClusters ─▶ diagnosis ─▶ problems ─┴▶ ApplicationStatus ─▶ table, JSON or YAML
//! ```

pub(crate) mod gitopscluster;
pub(crate) mod overview;
mod print;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::progress;

use crate::diagnosis::{DiagnosedApplication, Diagnosis};
use ocm::health::{HealthReport, HealthStatus};
use ocm::hold::Hold;

/// The status of an Application.
#[derive(Debug)]
pub(crate) struct ApplicationStatus {
    /// Its works on the hub.
    pub(crate) report: HealthReport,
    /// Its state in Argo CD, if the user is permitted to read it.
    pub(crate) application: Option<DiagnosedApplication>,
    /// The problems because of which its current version is not delivered.
    pub(crate) problems: Vec<Diagnosis>,
    /// The holds of its clusters that have not ended.
    pub(crate) holds: Vec<Hold>,
    /// The command that shows the first Degraded object as it is on its cluster, if the cluster can be reached.
    pub(crate) look: Option<String>,
}

impl ApplicationStatus {
    /// Returns the health. With a problem, the works are of an earlier version.
    pub(crate) fn health(&self) -> HealthStatus {
        match self.report.health() {
            HealthStatus::Healthy if self.is_permanent() => HealthStatus::Degraded,
            HealthStatus::Healthy if !self.problems.is_empty() => HealthStatus::Progressing,
            health => health,
        }
    }

    /// Returns true if waiting does not help.
    pub(crate) fn is_permanent(&self) -> bool {
        self.problems.iter().any(|diagnosis| diagnosis.permanent)
    }
}
