//! Computes the summary: the number of clusters of a set, by sync and health status.
//!
//! If each cluster has one Application of the set, the rules are those of all writers of such reports. A cluster with several
//! Applications counts as its worst one: `clusters` is the number of clusters, and equals both `synced` plus `notSynced` and
//! `healthy` plus `notHealthy`; `inProgress` counts those of `notHealthy` whose Applications are all healthy or progressing.

use super::line::Line;
use hub_state::report::Summary;

/// Computes the summary of lines sorted by cluster. Applications that are on no cluster are ignored.
pub(super) fn summarize(lines: &[&Line<'_>]) -> Summary {
    let known = lines.iter().position(|line| !line.cluster.is_empty());
    let known = &lines[known.unwrap_or(lines.len())..];
    let all: Vec<_> = known.chunk_by(|one, other| one.cluster == other.cluster).collect();
    let (clusters, synced, healthy) = (all.len(), count(&all, Line::is_synced), count(&all, Line::is_healthy));
    let no_worse_than_progressing = count(&all, |line| line.is_healthy() || line.is_progressing());
    let text = |count: usize| count.to_string();
    Summary {
        clusters: text(clusters),
        healthy: text(healthy),
        in_progress: text(no_worse_than_progressing.saturating_sub(healthy)),
        not_healthy: text(clusters.saturating_sub(healthy)),
        not_synced: text(clusters.saturating_sub(synced)),
        synced: text(synced),
    }
}

/// Returns the number of clusters for all of whose Applications this is true.
fn count<'l>(clusters: &[&[&Line<'l>]], check: fn(&Line<'l>) -> bool) -> usize {
    let with_all = clusters.iter().filter(|cluster| cluster.iter().all(|line| check(line)));
    with_all.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary of Applications on these clusters, with their sync and health: `clusters`, `synced`, `notSynced`,
    /// `healthy`, `notHealthy` and `inProgress`.
    fn summary(lines: &[(&str, &str, &str)]) -> [String; 6] {
        let line = |&(cluster, sync, health)| Line {
            cluster,
            sync,
            health,
            ..Line::default()
        };
        let lines: Vec<Line<'_>> = lines.iter().map(line).collect();
        let counts = summarize(&lines.iter().collect::<Vec<_>>());
        [
            counts.clusters,
            counts.synced,
            counts.not_synced,
            counts.healthy,
            counts.not_healthy,
            counts.in_progress,
        ]
    }

    #[test]
    fn counts_clusters_by_argo_cds_health_and_sync_status() {
        assert_eq!(summary(&[]), ["0"; 6]);
        let lines = [
            ("eu1", "Synced", "Healthy"),
            ("eu2", "OutOfSync", "Healthy"),
            ("eu3", "Synced", "Progressing"),
            ("eu4", "Synced", "Degraded"),
            ("eu5", "Unknown", "Unknown"),
            ("eu6", "", ""),
            ("eu7", "Synced", "Suspended"),
        ];
        assert_eq!(summary(&lines), ["7", "4", "3", "2", "5", "1"]);
    }

    #[test]
    fn counts_a_cluster_once_by_its_worst_application() {
        let healthy = ("eu1", "Synced", "Healthy");
        let progressing = ("eu1", "Synced", "Progressing");
        let degraded = ("eu1", "OutOfSync", "Degraded");
        assert_eq!(summary(&[healthy, healthy]), ["1", "1", "0", "1", "0", "0"]);
        assert_eq!(summary(&[healthy, progressing]), ["1", "1", "0", "0", "1", "1"]);
        assert_eq!(
            summary(&[healthy, progressing, degraded]),
            ["1", "0", "1", "0", "1", "0"]
        );
        let other = ("eu2", "Synced", "Healthy");
        assert_eq!(summary(&[degraded, other]), ["2", "1", "1", "1", "1", "0"]);
    }

    #[test]
    fn ignores_applications_without_a_cluster() {
        assert_eq!(summary(&[("", "Unknown", "Missing")]), ["0"; 6]);
        let lines = [("", "OutOfSync", "Missing"), ("eu1", "Synced", "Healthy")];
        assert_eq!(summary(&lines), ["1", "1", "0", "1", "0", "0"]);
    }
}
