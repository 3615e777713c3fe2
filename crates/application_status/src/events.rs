//! Derives the Event from the difference between the present and the new conditions of an Application. The controller needs no other
//! memory: after a restart it repeats no Event and records the changes that it missed.

use super::conditions::{Totals, find_newest, is_same_state, subject};
use super::fleet::{Fleet, SET};
use hub_state::Condition;
use hub_state::condition_types::{APPLY_ERROR, DEGRADED, INFO, NO_CLUSTER, ON_HOLD, OVERDUE, SHARED, UNREACHABLE};
use runtime::action::Event;

/// Returns the Event for the change from one list of our conditions to another.
pub(super) fn between(before: &[Condition], after: &[Condition], fleet: &Fleet<'_>) -> Option<Event> {
    let mut changes = Vec::new();
    for (kind, reason) in [
        (APPLY_ERROR, "ManifestWorkApplyFailed"),
        (DEGRADED, "ManifestWorkDegraded"),
        (UNREACHABLE, "ManagedClusterUnreachable"),
        (ON_HOLD, "ManagedClusterOnHold"),
        (NO_CLUSTER, "ManifestWorkNoCluster"),
        (OVERDUE, "ManifestWorkOverdue"),
        (SHARED, "ManifestWorkSharedObject"),
    ] {
        let came = only_in(after, before, kind);
        changes.extend(came.map(|condition| Event::warning(reason, condition.message.clone())));
    }
    let ill = |conditions: &[Condition], cluster: &str| {
        let mut ill = conditions.iter().filter(|condition| condition.kind != INFO);
        ill.any(|condition| subject(condition) == Some(cluster))
    };
    // No recovery is recorded for a condition that summarizes several clusters, because it is unknown which of them recovered,
    // nor for a cluster or set that no longer exists.
    let recovered = before.iter().filter(|condition| {
        let cluster = subject(condition).filter(|cluster| !ill(after, cluster));
        cluster.is_some_and(|cluster| fleet.has(cluster))
    });
    let recovered = recovered.map(|condition| format!("resolved: {}", condition.message));
    changes.extend(recovered.map(|message| Event::normal("ManifestWorkRecovered", message)));
    if changes.is_empty() {
        return completed(before, after);
    }
    Event::of_all(changes)
}

/// Returns the Event for an Application that has become healthy, or at least applied, on all clusters.
fn completed(before: &[Condition], after: &[Condition]) -> Option<Event> {
    let message = info(after)?;
    let rolled_out = |message| Totals::parse(message).filter(|_| is_rolled_out(message));
    let now = rolled_out(message)?;
    let then = info(before).and_then(rolled_out);
    let becomes = |check: fn(&Totals) -> bool| now.clusters > 0 && check(&now) && !then.as_ref().is_some_and(check);
    let reason = if becomes(|totals| totals.healthy == totals.clusters) {
        "ManifestWorkHealthy"
    } else if becomes(|totals| totals.applied == totals.clusters) {
        "ManifestWorkApplied"
    } else {
        return None;
    };
    Some(Event::normal(reason, message.to_owned()))
}

/// Returns true if each ManifestWorkReplicaSet in the message with the totals has reached all its clusters.
fn is_rolled_out(message: &str) -> bool {
    let mut sets = message
        .split("; ")
        .filter_map(|part| part.strip_prefix(SET)?.split_once(": "));
    sets.all(|(_, state)| {
        let counts = state.strip_suffix(" clusters applied");
        let counts = counts.and_then(|counts| counts.split_once(" of "));
        counts.is_some_and(|(applied, selected)| applied == selected)
    })
}

fn info(conditions: &[Condition]) -> Option<&str> {
    let info = conditions.iter().find(|condition| condition.kind == INFO);
    info.map(|condition| &*condition.message)
}

/// Returns the conditions of a type whose state does not occur in the other list. A summary changes with each cluster that recovers:
/// that is no new state.
fn only_in<'c>(
    these: &'c [Condition],
    others: &'c [Condition],
    kind: &'static str,
) -> impl Iterator<Item = &'c Condition> {
    let is_new = move |condition: &&Condition| {
        condition.kind == kind
            && !others.iter().any(|other| is_same_state(other, condition))
            && (subject(condition).is_some() || find_newest(others, these, condition).is_none())
    };
    these.iter().filter(is_new)
}
