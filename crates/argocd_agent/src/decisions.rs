//! The PlacementDecisions of our own Placements.

use super::metadata;
use super::reconcile::shared::{ensure, ensure_absent};
use super::rollout::UpdatedClusters;
use assignment::GitOpsClusterRef;
use hub_state::Kind;
use jiff::Timestamp;
use ocm::argocd_agent::AddonPlacement;
use ocm::resources::DECISION_STATUSES;
use primitives::object_ref::ObjectRef;
use primitives::timestamp::format_time;
use runtime::action::Write;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of clusters in one PlacementDecision (OCM's limit).
const MAX: usize = 100;

/// The clusters of each existing PlacementDecision, by its [number](AddonPlacement::decision_number).
type DecidedClusters<'a> = BTreeMap<usize, BTreeSet<&'a str>>;

/// Returns the writes that make the PlacementDecisions of a Placement name these clusters, and no others. They never name one whose
/// ManagedCluster is being deleted: OCM deletes the add-on there before the works, and installs it again while it is decided.
pub(super) fn writes(
    gitops: GitOpsClusterRef<'_>,
    placement: AddonPlacement,
    clusters: &UpdatedClusters<'_>,
) -> Vec<Write> {
    let (cache, ObjectRef { namespace, name }) = (gitops.cache, gitops.object_ref);
    let decided = gitops.decisions(placement).filter_map(|(at, existing)| {
        Some((
            placement.decision_number(name, &at.name)?,
            existing.decided_clusters().collect(),
        ))
    });
    let mut writes = Vec::new();
    let mut stay = BTreeSet::new();
    let staying = clusters
        .keys()
        .copied()
        .filter(|cluster| !cache.is_in_deletion(cluster));
    for (number, share) in shares(staying.collect(), &decided.collect()) {
        let at = ObjectRef::new(namespace, &placement.decision(name, number));
        let write = ensure(
            cache,
            Kind::OwnDecisions,
            decision(gitops.object_ref, placement, number),
        );
        // The status is a subresource, which is written once the object is as desired: both writes of one version would conflict.
        let unwritten = cache.object(Kind::OwnDecisions, &at).filter(|_| write.is_none());
        writes.extend(write);
        let decisions = status(&share, clusters);
        if let Some(before) = unwritten.filter(|existing| existing.object["status"]["decisions"] != decisions) {
            let body = json!({"metadata": {"resourceVersion": before.version}, "status": {"decisions": decisions}});
            writes.push(Write::patch(&DECISION_STATUSES, at.clone(), body));
        }
        stay.insert(at);
    }
    let obsolete = gitops.decisions(placement).filter(|(at, _)| !stay.contains(*at));
    writes.extend(obsolete.filter_map(|(at, existing)| ensure_absent(Kind::OwnDecisions, at, existing)));
    writes
}

/// Returns the decisions of these clusters. The field `reason`, which is free text, holds the time since when a cluster has the next
/// version: no other field would survive a restart.
fn status(share: &BTreeSet<&str>, clusters: &UpdatedClusters<'_>) -> Value {
    let since = |cluster| clusters.get(cluster).copied().flatten().map(format_time);
    let decisions = share
        .iter()
        .map(|cluster| json!({"clusterName": cluster, "reason": since(cluster).unwrap_or_default()}));
    decisions.collect()
}

/// Returns the time in the `reason` of such a decision.
pub(super) fn since(decision: &Value) -> Option<Timestamp> {
    decision["reason"].as_str()?.parse().ok()
}

/// Returns the clusters of each PlacementDecision. A cluster stays in its PlacementDecision, so adding or removing one cluster
/// changes one object. Without clusters, the result is one PlacementDecision with an empty list.
fn shares<'a>(mut left: BTreeSet<&'a str>, existing: &DecidedClusters<'_>) -> DecidedClusters<'a> {
    let mut shares = BTreeMap::new();
    for (number, held) in existing {
        let stay = held.iter().filter_map(|cluster| left.take(*cluster));
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

/// Returns a PlacementDecision without its status. All are in one decision group: OCM counts groups from 0 without gaps, and ours
/// are no groups.
pub fn decision(gitops_cluster: &ObjectRef, placement: AddonPlacement, number: usize) -> Value {
    let ObjectRef { namespace, name } = gitops_cluster;
    let mut metadata = metadata(gitops_cluster, namespace, &placement.decision(name, number));
    let labels = &mut metadata["labels"];
    labels["cluster.open-cluster-management.io/placement"] = placement.name(name).into();
    labels["cluster.open-cluster-management.io/decision-group-index"] = "0".into();
    labels["cluster.open-cluster-management.io/decision-group-name"] = "".into();
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("cluster{number:04}")).collect()
    }

    fn set(clusters: &[String]) -> BTreeSet<&str> {
        clusters.iter().map(String::as_str).collect()
    }

    /// Returns the number of PlacementDecisions, and of those that changed.
    fn changed(before: &DecidedClusters<'_>, after: &DecidedClusters<'_>) -> (usize, usize) {
        let changed = before.iter().zip(after).filter(|(before, after)| before != after);
        (after.len(), changed.count())
    }

    #[test]
    fn changing_one_cluster_changes_one_decision() {
        let fleet = fleet(1001);
        let mut clusters = set(&fleet[..1000]);
        let before = shares(clusters.clone(), &DecidedClusters::new());
        assert_eq!(before.len(), 10);
        assert_eq!(before, shares(clusters.clone(), &before), "nothing moves by itself");
        clusters.remove("cluster0123");
        let after = shares(clusters.clone(), &before);
        assert_eq!(changed(&before, &after), (10, 1));
        clusters.insert("cluster1000");
        let filled = shares(clusters.clone(), &after);
        assert_eq!(changed(&after, &filled), (10, 1), "the gap is filled first");
        assert_eq!(filled.into_values().flatten().collect::<BTreeSet<_>>(), clusters);
    }

    #[test]
    fn lists_each_cluster_in_one_decision_of_at_most_100() {
        let fleet = fleet(250);
        let existing = DecidedClusters::from([(2, set(&fleet[..150])), (5, set(&fleet[..3])), (7, ["gone"].into())]);
        let shares = shares(set(&fleet), &existing);
        assert!(shares.values().all(|share| (1..=MAX).contains(&share.len())));
        let all: Vec<_> = shares.into_values().flatten().collect();
        assert_eq!((all.len(), all.into_iter().collect()), (250, set(&fleet)));
    }

    #[test]
    fn reads_back_since_when_a_cluster_has_the_next_version() {
        let time = Timestamp::from_second(1_800_000_000).ok();
        let decided = status(&["a", "b"].into(), &[("a", time), ("b", None)].into());
        let decided = decided.as_array().expect("a list");
        assert_eq!(decided.iter().map(since).collect::<Vec<_>>(), [time, None]);
    }

    #[test]
    fn writes_an_empty_decision_for_no_cluster() {
        let existing = DecidedClusters::from([(3, ["gone"].into())]);
        assert_eq!(shares(BTreeSet::new(), &existing), [(1, BTreeSet::new())].into());
        let decision = decision(&ObjectRef::new("argocd", "fleet"), AddonPlacement::Next, 1);
        assert_eq!(
            decision["metadata"],
            json!({
                "namespace": "argocd",
                "name": "fleet-argocd-agent-next-decision-1",
                "annotations": {"argocd-ocm-cmp.github.io/gitopscluster": "argocd/fleet"},
                "labels": {
                    "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                    "cluster.open-cluster-management.io/decision-group-index": "0",
                    "cluster.open-cluster-management.io/decision-group-name": "",
                    "cluster.open-cluster-management.io/placement": "fleet-argocd-agent-next",
                },
            })
        );
    }
}
