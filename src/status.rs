//! `status`: prints the health of an Application on its clusters, work by work and object by object.
//!
//! ```text
//! hub ─▶ works ─────────────────────▶ ocm::health ─▶ Report ───┐
//!     └▶ Application, ManagedClusters ─▶ diagnosis ─▶ problems ─┴▶ ApplicationStatus ─▶ table, JSON or YAML
//! ```

pub mod gitopscluster;
pub mod overview;
mod print;
mod table;
#[cfg(test)]
mod tests;

pub use print::StatusList;
pub use table::progress;

use crate::diagnosis::{DiagnosedApplication, Diagnosis};
use ocm::health::{HealthReport, HealthStatus};
use ocm::hold::Hold;

/// The status of an Application.
#[derive(Debug)]
pub struct ApplicationStatus {
    /// Its works on the hub.
    pub report: HealthReport,
    /// Its state in Argo CD, if the user is permitted to read it.
    pub application: Option<DiagnosedApplication>,
    /// The problems because of which its current version is not delivered.
    pub problems: Vec<Diagnosis>,
    /// The holds of its clusters that have not ended.
    pub holds: Vec<Hold>,
    /// The command that shows the first Degraded object as it is on its cluster, if the cluster can be reached.
    pub look: Option<String>,
}

impl ApplicationStatus {
    /// Returns the health. With a problem, the works are of an earlier version.
    #[must_use]
    pub fn health(&self) -> HealthStatus {
        match self.report.health() {
            HealthStatus::Healthy if self.is_permanent() => HealthStatus::Degraded,
            HealthStatus::Healthy if !self.problems.is_empty() => HealthStatus::Progressing,
            health => health,
        }
    }

    /// Returns true if waiting does not help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.problems.iter().any(|diagnosis| diagnosis.permanent)
    }
}
