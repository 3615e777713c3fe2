//! The PlacementDecisions of our own Placements.

use super::rollout::UpdatedClusters;
use super::{labels, owner};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use primitives::timestamp::format_time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of clusters in one PlacementDecision (OCM's limit).
pub const MAX: usize = 100;

/// The clusters of each existing PlacementDecision, by its [number](names::decision_number).
pub type DecidedClusters = BTreeMap<usize, BTreeSet<Box<str>>>;

/// Returns the desired PlacementDecisions, each with its status, which is a subresource. A cluster stays in its
/// PlacementDecision, so adding or removing one cluster changes one object; the caller deletes existing objects that are not in
/// the result. Without clusters, the result is one PlacementDecision with an empty list.
#[must_use]
pub fn decisions(gitops_cluster: (&str, &str), clusters: &BTreeSet<&str>, existing: &DecidedClusters) -> Vec<Value> {
    let placement = names::placement(gitops_cluster.1);
    written(gitops_cluster, &placement, clusters, existing, &|_| String::new())
}

/// Returns the PlacementDecisions of the Placement for clusters that already have the next version. The field `reason`, which is
/// free text, holds the time since when a cluster has it: no other field would survive a restart.
#[must_use]
pub fn next_decisions(
    gitops_cluster: (&str, &str),
    updated: &UpdatedClusters<'_>,
    existing: &DecidedClusters,
) -> Vec<Value> {
    let placement = names::next_placement(gitops_cluster.1);
    let since = |cluster: &str| {
        updated
            .get(cluster)
            .copied()
            .flatten()
            .map(format_time)
            .unwrap_or_default()
    };
    written(
        gitops_cluster,
        &placement,
        &updated.keys().copied().collect(),
        existing,
        &since,
    )
}

/// Returns the time in the `reason` of such a decision.
#[must_use]
pub fn since(decision: &Value) -> Option<Timestamp> {
    decision["reason"].as_str()?.parse().ok()
}

fn written(
    gitops_cluster: (&str, &str),
    placement: &str,
    clusters: &BTreeSet<&str>,
    existing: &DecidedClusters,
    reason: &dyn Fn(&str) -> String,
) -> Vec<Value> {
    let shares = shares(clusters, existing);
    shares
        .iter()
        .map(|(number, share)| decision(gitops_cluster, (placement, *number), share, reason))
        .collect()
}

fn shares<'a>(clusters: &BTreeSet<&'a str>, existing: &DecidedClusters) -> BTreeMap<usize, BTreeSet<&'a str>> {
    let mut left = clusters.clone();
    let mut shares = BTreeMap::new();
    for (number, held) in existing {
        let stay = held.iter().filter_map(|cluster| left.take(&**cluster));
        let share: BTreeSet<&str> = stay.take(MAX).collect();
        if !share.is_empty() {
            shares.insert(*number, share);
        }
    }
    let mut number = 1;
    for cluster in left {
        while shares.get(&number).is_some_and(|share| share.len() >= MAX) {
            number = number.saturating_add(1);
        }
        shares.entry(number).or_default().insert(cluster);
    }
    if shares.is_empty() {
        shares.insert(1, BTreeSet::new());
    }
    shares
}

/// Builds a PlacementDecision. All are in one decision group: OCM counts groups from 0 without gaps, and ours are no groups.
fn decision(
    gitops_cluster: (&str, &str),
    (placement, number): (&str, usize),
    clusters: &BTreeSet<&str>,
    reason: &dyn Fn(&str) -> String,
) -> Value {
    let mut labels = labels();
    labels["cluster.open-cluster-management.io/placement"] = placement.into();
    labels["cluster.open-cluster-management.io/decision-group-index"] = "0".into();
    labels["cluster.open-cluster-management.io/decision-group-name"] = "".into();
    let decisions: Vec<Value> = clusters
        .iter()
        .map(|cluster| json!({"clusterName": cluster, "reason": reason(cluster)}))
        .collect();
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {
            "namespace": gitops_cluster.0, "name": names::decision_of(placement, number), "labels": labels, "annotations": owner(gitops_cluster),
        },
        "status": {"decisions": decisions},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GITOPS_CLUSTER: (&str, &str) = ("argocd", "fleet");

    fn fleet(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("cluster{number:04}")).collect()
    }

    fn set(clusters: &[String]) -> BTreeSet<&str> {
        clusters.iter().map(String::as_str).collect()
    }

    /// Returns the state after these PlacementDecisions are written.
    fn present(decisions: &[Value]) -> DecidedClusters {
        let clusters = |decision: &Value| {
            let decisions = decision["status"]["decisions"].as_array().expect("a list");
            let name = |decision: &Value| decision["clusterName"].as_str().expect("a name").into();
            decisions.iter().map(name).collect()
        };
        let number =
            |decision: &Value| names::decision_number(GITOPS_CLUSTER.1, decision["metadata"]["name"].as_str()?);
        let entry = |decision| Some((number(decision)?, clusters(decision)));
        decisions.iter().filter_map(entry).collect()
    }

    fn all(present: &DecidedClusters) -> BTreeSet<&str> {
        present.values().flatten().map(|cluster| &**cluster).collect()
    }

    #[test]
    fn changing_one_cluster_changes_one_decision() {
        let fleet = fleet(1001);
        let mut clusters = set(&fleet[..1000]);
        let before = decisions(GITOPS_CLUSTER, &clusters, &DecidedClusters::new());
        assert_eq!(before.len(), 10);
        assert_eq!(
            before,
            decisions(GITOPS_CLUSTER, &clusters, &present(&before)),
            "nothing moves by itself"
        );
        clusters.remove("cluster0123");
        let after = decisions(GITOPS_CLUSTER, &clusters, &present(&before));
        let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
        assert_eq!((after.len(), changed.count()), (10, 1));
        clusters.insert("cluster1000");
        let filled = decisions(GITOPS_CLUSTER, &clusters, &present(&after));
        let changed = after.iter().zip(&filled).filter(|(before, after)| before != after);
        assert_eq!((filled.len(), changed.count()), (10, 1), "the gap is filled first");
        let existing = present(&filled);
        assert_eq!(all(&existing), clusters);
    }

    #[test]
    fn lists_each_cluster_in_one_decision_of_at_most_100() {
        let fleet = fleet(250);
        let clusters = set(&fleet);
        let too_many: BTreeSet<Box<str>> = fleet.iter().take(150).map(|name| name.as_str().into()).collect();
        let twice: BTreeSet<Box<str>> = fleet[..3].iter().map(|name| name.as_str().into()).collect();
        let gone: BTreeSet<Box<str>> = ["gone".into()].into();
        let existing = DecidedClusters::from([(2, too_many), (5, twice), (7, gone)]);
        let decisions = decisions(GITOPS_CLUSTER, &clusters, &existing);
        let present = present(&decisions);
        assert_eq!(all(&present), clusters);
        assert_eq!(present.values().map(BTreeSet::len).sum::<usize>(), 250);
        assert!(present.values().all(|share| (1..=MAX).contains(&share.len())));
    }

    #[test]
    fn reads_back_since_when_a_cluster_has_the_next_version() {
        let time = Timestamp::from_second(1_800_000_000).ok();
        let updated = UpdatedClusters::from([("a", time), ("b", None)]);
        let decisions = next_decisions(GITOPS_CLUSTER, &updated, &DecidedClusters::new());
        assert_eq!(decisions[0]["metadata"]["name"], "fleet-argocd-agent-next-decision-1");
        let placement = &decisions[0]["metadata"]["labels"]["cluster.open-cluster-management.io/placement"];
        assert_eq!(placement, "fleet-argocd-agent-next");
        let decided = decisions[0]["status"]["decisions"].as_array().expect("a list");
        assert_eq!(decided.iter().map(since).collect::<Vec<_>>(), [time, None]);
    }

    #[test]
    fn writes_an_empty_decision_for_no_cluster() {
        let existing = DecidedClusters::from([(3, ["gone".into()].into())]);
        let decisions = decisions(GITOPS_CLUSTER, &BTreeSet::new(), &existing);
        assert_eq!(present(&decisions), DecidedClusters::from([(1, BTreeSet::new())]));
        insta::assert_snapshot!(serde_json::to_string_pretty(&decisions[0]).expect("it is JSON"), @r#"
        {
          "apiVersion": "cluster.open-cluster-management.io/v1beta1",
          "kind": "PlacementDecision",
          "metadata": {
            "annotations": {
              "argocd-ocm-cmp.github.io/gitopscluster": "argocd/fleet"
            },
            "labels": {
              "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
              "cluster.open-cluster-management.io/decision-group-index": "0",
              "cluster.open-cluster-management.io/decision-group-name": "",
              "cluster.open-cluster-management.io/placement": "fleet-argocd-agent"
            },
            "name": "fleet-argocd-agent-decision-1",
            "namespace": "argocd"
          },
          "status": {
            "decisions": []
          }
        }
        "#);
    }
}
