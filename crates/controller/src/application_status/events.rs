//! Derives Events from the difference between the present and the new conditions of an Application. The controller needs no other
//! memory: after a restart it repeats no Event and records the changes that it missed.

use super::Fleet;
use super::conditions::{APPLY_ERROR, DEGRADED, INFO, Totals, UNREACHABLE, is_same_state, subject};
use crate::model::Condition;
use crate::runtime::action::Event;

/// The maximum number of Events of a kind for one change; one more Event summarizes the rest.
const MAX_EVENTS: usize = 3;

/// Returns the Events for the change from one list of our conditions to another.
pub(super) fn between(before: &[Condition], after: &[Condition], fleet: &Fleet) -> Vec<Event> {
    let mut events = Vec::new();
    for (kind, reason) in [
        (APPLY_ERROR, "ManifestWorkApplyFailed"),
        (DEGRADED, "ManifestWorkDegraded"),
        (UNREACHABLE, "ManagedClusterUnreachable"),
    ] {
        let came = only_in(after, before, kind).into_iter().map(|it| it.message.clone());
        events.extend(first_few(came.collect()).into_iter().map(|message| Event {
            warning: true,
            reason,
            message,
        }));
    }
    let ill = |conditions: &[Condition], cluster: &str| {
        let mut ill = conditions.iter().filter(|it| it.kind != INFO);
        ill.any(|it| subject(it) == Some(cluster))
    };
    // No recovery is recorded for a condition that summarizes several clusters, because it is unknown which of them recovered,
    // nor for a cluster or set that no longer exists.
    let recovered = before.iter().filter(|it| {
        let cluster = subject(it).filter(|cluster| !ill(after, cluster));
        cluster.is_some_and(|cluster| fleet.has(cluster))
    });
    let resolved = recovered.map(|it| format!("resolved: {}", it.message)).collect();
    events.extend(
        first_few(resolved)
            .into_iter()
            .map(|message| normal("ManifestWorkRecovered", message)),
    );
    let totals = |conditions: &[Condition]| {
        let info = conditions.iter().find(|it| it.kind == INFO);
        info.map(|it| (Totals::read(&it.message), it.message.clone()))
    };
    if let Some((Some(now), message)) = totals(after) {
        let then = totals(before).and_then(|(totals, _)| totals);
        let becomes = |is: fn(&Totals) -> bool| is(&now) && !then.as_ref().is_some_and(is);
        if becomes(|totals| totals.applied == totals.clusters && totals.clusters > 0) {
            events.push(normal("ManifestWorkApplied", message.clone()));
        }
        if becomes(|totals| totals.healthy == totals.clusters && totals.clusters > 0) {
            events.push(normal("ManifestWorkHealthy", message));
        }
    }
    events
}

fn normal(reason: &'static str, message: String) -> Event {
    Event {
        warning: false,
        reason,
        message,
    }
}

/// Returns the conditions of a type whose state does not occur in the other list.
fn only_in<'c>(these: &'c [Condition], others: &[Condition], kind: &str) -> Vec<&'c Condition> {
    let is_new = |it: &&Condition| it.kind == kind && !others.iter().any(|other| is_same_state(other, it));
    these.iter().filter(is_new).collect()
}

fn first_few(mut messages: Vec<String>) -> Vec<String> {
    let more = messages.len().saturating_sub(MAX_EVENTS);
    if more > 0 {
        messages.truncate(MAX_EVENTS);
        messages.push(format!("and {more} more"));
    }
    messages
}
