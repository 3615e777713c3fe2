//! The PlacementDecisions of a GitOpsCluster on the hub.

use super::shared::{ensure, ensure_absent};
use crate as agent;
use assignment::GitOpsClusterRef;
use hub_state::model::Object;
use ocm::resources::{DECISION_STATUSES, DECISIONS};
use primitives::object_ref::ObjectRef;
use runtime::action::Write;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the clusters in these PlacementDecisions, by the numbers of the objects.
pub(super) fn decided_by_number(
    gitops: GitOpsClusterRef<'_>,
    existing: &[(&ObjectRef, &Object)],
    number: fn(&str, &str) -> Option<usize>,
) -> agent::decisions::DecidedClusters {
    let decided = existing.iter().filter_map(|(at, it)| {
        let number = number(&gitops.object_ref.name, &at.name)?;
        Some((number, it.decided_clusters().map(Into::into).collect()))
    });
    decided.collect()
}

/// Returns the writes that create or update these PlacementDecisions and delete all others of those that exist.
pub(super) fn write_decisions(
    gitops: GitOpsClusterRef<'_>,
    desired: Vec<Value>,
    existing: Vec<(&ObjectRef, &Object)>,
) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut stay = BTreeSet::new();
    for mut decision in desired {
        let status = decision["status"].take();
        let at = ObjectRef::new(
            &gitops.object_ref.namespace,
            decision["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let before = existing.iter().find(|(other, _)| **other == at).map(|(_, it)| *it);
        if let Some(object) = decision.as_object_mut() {
            object.remove("status");
        }
        let write = ensure(&DECISIONS, decision, before);
        // The status is a subresource, which is written once the object is as desired: both writes of one version would conflict.
        let unwritten = before.filter(|_| write.is_none());
        writes.extend(write);
        if let Some(before) = unwritten.filter(|it| it.object["status"]["decisions"] != status["decisions"]) {
            writes.push(Write::patch(
                &DECISION_STATUSES,
                at.clone(),
                json!({"metadata": {"resourceVersion": before.version}, "status": status}),
            ));
        }
        stay.insert(at);
    }
    let obsolete = existing.into_iter().filter(|(at, _)| !stay.contains(*at));
    writes.extend(obsolete.filter_map(|(at, it)| ensure_absent(&DECISIONS, at, it)));
    writes
}
