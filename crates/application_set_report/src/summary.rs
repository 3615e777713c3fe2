//! Computes the summary: the number of clusters of a set, by sync and health status.
//!
//! If each cluster has one Application of the set, the rules are those of all writers of such reports. A cluster with several
//! Applications counts as its worst one: `clusters` is the number of clusters, and equals both `synced` plus `notSynced` and
//! `healthy` plus `notHealthy`; `inProgress` counts those of `notHealthy` whose Applications are all healthy or progressing.

use hub_state::report::{Entry, Summary};

pub(super) fn is_healthy(entry: &Entry<'_>) -> bool {
    entry.health_status == "Healthy"
}

pub(super) fn is_progressing(entry: &Entry<'_>) -> bool {
    entry.health_status == "Progressing"
}

pub(super) fn is_synced(entry: &Entry<'_>) -> bool {
    entry.sync_status == "Synced"
}

/// Computes the summary of entries sorted by cluster. Applications that are on no cluster are ignored.
pub(super) fn summarize(entries: &[&Entry<'_>]) -> Summary {
    let known = entries.iter().position(|entry| !entry.cluster.is_empty());
    let known = &entries[known.unwrap_or(entries.len())..];
    let clusters: Vec<_> = known.chunk_by(|one, other| one.cluster == other.cluster).collect();
    let count = |check: &dyn Fn(&Entry<'_>) -> bool| {
        let with_all = clusters
            .iter()
            .filter(|cluster| cluster.iter().all(|entry| check(entry)));
        with_all.count()
    };
    let (all, synced, healthy) = (clusters.len(), count(&is_synced), count(&is_healthy));
    let no_worse_than_progressing = count(&|entry| is_healthy(entry) || is_progressing(entry));
    Summary {
        clusters: all.to_string(),
        healthy: healthy.to_string(),
        in_progress: no_worse_than_progressing.saturating_sub(healthy).to_string(),
        not_healthy: all.saturating_sub(healthy).to_string(),
        not_synced: all.saturating_sub(synced).to_string(),
        synced: synced.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the summary of Applications on these clusters, with their sync and health: `clusters`, `synced`, `notSynced`,
    /// `healthy`, `notHealthy` and `inProgress`.
    fn summary(lines: &[(&'static str, &'static str, &'static str)]) -> [String; 6] {
        let entry = |&(cluster, sync, health): &(&'static str, &'static str, &'static str)| Entry {
            cluster: cluster.into(),
            sync_status: sync.into(),
            health_status: health.into(),
            ..Entry::default()
        };
        let entries: Vec<_> = lines.iter().map(entry).collect();
        let counts = summarize(&entries.iter().collect::<Vec<_>>());
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
    fn counts_a_cluster_once_by_its_worst_application() {
        let [healthy, other] = ["eu1", "eu2"].map(|cluster| (cluster, "Synced", "Healthy"));
        let progressing = ("eu1", "Synced", "Progressing");
        let degraded = ("eu1", "OutOfSync", "Degraded");
        let on_none = ("", "OutOfSync", "Missing");
        let states = [
            ("eu1", "Synced", "Healthy"),
            ("eu2", "OutOfSync", "Healthy"),
            ("eu3", "Synced", "Progressing"),
            ("eu4", "Synced", "Degraded"),
            ("eu5", "Unknown", "Unknown"),
            ("eu7", "Synced", "Suspended"),
        ];
        for (lines, expected) in [
            (&[][..], ["0"; 6]),
            (&states, ["6", "4", "2", "2", "4", "1"]),
            (&[healthy, healthy], ["1", "1", "0", "1", "0", "0"]),
            (&[healthy, progressing], ["1", "1", "0", "0", "1", "1"]),
            (&[healthy, progressing, degraded], ["1", "0", "1", "0", "1", "0"]),
            (&[degraded, other], ["2", "1", "1", "1", "1", "0"]),
            (&[on_none], ["0"; 6]),
            (&[on_none, healthy], ["1", "1", "0", "1", "0", "0"]),
        ] {
            assert_eq!(summary(lines), expected, "{lines:?}");
        }
    }
}
