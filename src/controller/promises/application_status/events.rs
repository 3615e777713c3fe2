//! The Events: what is new from the conditions that stand on an Application to those that it gets. So nothing must be remembered:
//! a controller that was started again tells nothing twice, and what happened meanwhile is told.

use super::Fleet;
use super::conditions::{APPLY_ERROR, DEGRADED, INFO, Totals, UNREACHABLE, is_same_state, subject};
use crate::controller::action::Event;
use crate::controller::seen::Condition;

/// How many Events of a kind there are at most of one change, before one for the rest.
const MOST: usize = 3;

/// What has happened between the conditions of our types as they were and as they are.
pub(super) fn between(before: &[Condition], after: &[Condition], fleet: &Fleet) -> Vec<Event> {
    let mut events = Vec::new();
    for (kind, reason) in [
        (APPLY_ERROR, "ManifestWorkApplyFailed"),
        (DEGRADED, "ManifestWorkDegraded"),
        (UNREACHABLE, "ManagedClusterUnreachable"),
    ] {
        let came = only_in(after, before, kind).into_iter().map(|it| it.message.clone());
        events.extend(few(came.collect()).into_iter().map(|message| Event {
            warning: true,
            reason,
            message,
        }));
    }
    let ill = |conditions: &[Condition], cluster: &str| {
        let mut ill = conditions.iter().filter(|it| it.kind != INFO);
        ill.any(|it| subject(it) == Some(cluster))
    };
    // What stands for several is not told to recover, because which of them have is not known; nor what is there no more.
    let recovered = before.iter().filter(|it| {
        let cluster = subject(it).filter(|cluster| !ill(after, cluster));
        cluster.is_some_and(|cluster| fleet.has(cluster))
    });
    let told = recovered.map(|it| format!("no longer so: {}", it.message)).collect();
    events.extend(
        few(told)
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

/// The conditions of a type of which the others do not say that the same is the matter.
fn only_in<'c>(these: &'c [Condition], others: &[Condition], kind: &str) -> Vec<&'c Condition> {
    let is_new = |it: &&Condition| it.kind == kind && !others.iter().any(|other| is_same_state(other, it));
    these.iter().filter(is_new).collect()
}

fn few(mut messages: Vec<String>) -> Vec<String> {
    let more = messages.len().saturating_sub(MOST);
    if more > 0 {
        messages.truncate(MOST);
        messages.push(format!("and {more} more"));
    }
    messages
}
