//! What the hub's Application says of itself: what the managed cluster's Argo CD says of its own, and where that says nothing,
//! what is the matter. An Application that nobody runs is never green, and never empty.
//!
//! The Application's resource has no status subresource, and its status is otherwise nobody's, since the hub's Argo CD skips it.
//! It is written as one merge patch of what differs.
//!
//! The peers write `Progressing` before each `Healthy`, so that an ApplicationSet's RollingSync sees a transition. It need not: its
//! controller looks at the state, not at how it came about. An Application of a step that has been synced (`Succeeded`, not
//! `OutOfSync`) goes from `Pending` to `Progressing` to `Healthy` in one look. An operation that a cluster has not begun
//! is shown as `Running`, so it is not asked for again and again either.

mod mirror;

pub use mirror::{Condition, Health, Mirror, OperationState, Sync, TEXT_MAX, patch};
pub(super) use mirror::{bounded, bounded_line, bounded_word, time};

use super::application::Application;
use super::carried::{Applied, Carried};
use super::{history, names};
use crate::status;
use k8s_openapi::jiff::Timestamp;

/// Of what an Application's status is made.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'s> {
    /// The Application, if what it deploys is to be noted in its history.
    pub application: Option<&'s Application>,
    /// The managed cluster to which it is to go.
    pub cluster: &'s str,
    /// Its work there.
    pub carried: Option<&'s Carried>,
    /// What else is to be said, as conditions of types that begin with one of [`names::OWN_CONDITIONS`]; since when does not count.
    pub notes: &'s [Condition],
    /// Whether the agents only look.
    pub read_only: bool,
    /// Whether its status is ours: Argo CD on the hub leaves it alone.
    pub is_ours: bool,
    /// The time.
    pub now: Timestamp,
}

/// The words of Argo CD that are used here.
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const MISSING: &str = "Missing";
const UNKNOWN: &str = "Unknown";
const RUNNING: &str = "Running";

/// What an Application that says `current` of itself is to say.
#[must_use]
pub fn wanted(current: &Mirror, situation: &Situation<'_>) -> Mirror {
    if !situation.is_ours {
        return Mirror {
            conditions: conditions(current, Vec::new(), situation),
            ..current.clone()
        };
    }
    let mut mirror = said(current, situation);
    if mirror.health.since.is_none() {
        let same = mirror.health.status == current.health.status;
        let since = same.then(|| current.health.since.clone()).flatten();
        mirror.health.since = since.or_else(|| Some(status::time(situation.now).into()));
    }
    if let Some(waiting) = not_begun(situation) {
        mirror.operation = Some(waiting);
    }
    if is_of_set(&mirror, situation) {
        mirror.operation.clone_from(&current.operation);
    }
    mirror.conditions = conditions(current, mirror.conditions, situation);
    mirror.history = match situation.application {
        Some(application) => history::after(application, &current.history, mirror.operation.as_ref()),
        None => current.history.clone(),
    };
    if !mirror.conditions.iter().any(is_hubs_own) {
        return mirror;
    }
    // What the hub's Argo CD has said once it never takes back. Where something is written anyway, it may say again what is still so.
    let [before, after] = [current, &mirror].map(without_hubs_own);
    if patch(&before, &after).is_some() {
        return after;
    }
    mirror
}

/// Without the conditions that the hub's own Argo CD has set.
fn without_hubs_own(mirror: &Mirror) -> Mirror {
    let mut mirror = mirror.clone();
    mirror.conditions.retain(|it| !is_hubs_own(it));
    mirror
}

fn is_hubs_own(condition: &Condition) -> bool {
    names::CONDITIONS.contains(&&*condition.kind) && !is_told(condition)
}

/// What is to be said, without what does not come from the cluster.
fn said(current: &Mirror, situation: &Situation<'_>) -> Mirror {
    let cluster = situation.cluster;
    let waiting = |what: &str| stands(PROGRESSING, &format!("waiting for {cluster}: {what}"));
    // One that is about to be sent is told of as if it were.
    let Some(carried) = situation.carried else {
        return waiting("its agent has not applied the Application");
    };
    if carried.deleting {
        return Mirror {
            // Such as why it cannot be deleted.
            conditions: told_by(cluster, carried.feedback.said.conditions.clone()),
            health: waiting("its agent is removing the Application").health,
            ..current.clone()
        };
    }
    if carried.applied == Applied::Unheard {
        return waiting("its agent has not applied the Application");
    }
    if let Some(refused) = carried.refused().filter(|_| !carried.is_current()) {
        let told = stands(
            DEGRADED,
            &format!("{cluster} could not apply the Application: {refused}"),
        );
        return Mirror {
            // What has been done was done, and is no business of what is refused.
            operation: current.operation.clone(),
            ..told
        };
    }
    if carried.missing {
        return stands(MISSING, &format!("the Application is not on {cluster}"));
    }
    let feedback = &carried.feedback;
    let is_first = current.health.status.is_none();
    // What is said of an earlier form says nothing of this one.
    if feedback.is_silent || !carried.is_current() && !situation.read_only {
        return if is_first {
            waiting("nothing has come back of the Application")
        } else {
            current.clone()
        };
    }
    let mut said = feedback.said.clone();
    said.conditions = told_by(cluster, said.conditions);
    if said.health.status.is_none() && said.sync.status.is_none() {
        let waiting = waiting("its Argo CD has not looked at the Application");
        return Mirror {
            conditions: said.conditions,
            ..waiting
        };
    }
    said.health.status.get_or_insert_with(|| UNKNOWN.into());
    said.sync.status.get_or_insert_with(|| UNKNOWN.into());
    said
}

/// An Application of which nothing is known but this.
fn stands(health: &str, message: &str) -> Mirror {
    Mirror {
        health: Health {
            status: Some(health.into()),
            message: Some(bounded(message)),
            since: None,
        },
        sync: Sync {
            status: Some(UNKNOWN.into()),
            ..Sync::default()
        },
        ..Mirror::default()
    }
}

/// The state of an operation that has been taken from the hub's Application, and is not begun. `argocd app sync` and an ApplicationSet
/// would think that all is done if it were not shown.
fn not_begun(situation: &Situation<'_>) -> Option<OperationState> {
    let carried = situation.carried?;
    let operation = carried.operation.as_ref()?;
    if carried.has_done(operation) || carried.has_begun(operation) {
        return None;
    }
    Some(OperationState {
        phase: RUNNING.into(),
        started_at: operation.asked().and_then(time)?,
        finished_at: None,
        message: Some(format!("waiting for {} to begin", situation.cluster).into()),
        retries: None,
        revision: None,
    })
}

/// Whether an operation runs that the controller of ApplicationSets has asked for, to what end is not known yet. It is not shown: of an
/// Application that is `OutOfSync` and `Running`, that controller says Waiting, Pending and Progressing in turn, several times a
/// second, and asks for the operation each time. On its own hub that is over when Argo CD has synced; here it would last until the
/// agent reports next.
fn is_of_set(mirror: &Mirror, situation: &Situation<'_>) -> bool {
    let runs = mirror.operation.as_ref().is_some_and(|it| &*it.phase == RUNNING);
    let Some(carried) = situation.carried.filter(|_| runs) else {
        return false;
    };
    let asked = match &carried.operation {
        Some(operation) if !carried.has_begun(operation) => operation.is_of_set(),
        _ => carried.feedback.initiated_by.as_deref() == Some(names::SET_CONTROLLER),
    };
    asked && mirror.sync.status.as_deref() != Some("Synced")
}

/// The same conditions with the name of the cluster before what they say.
fn told_by(cluster: &str, conditions: Vec<Condition>) -> Vec<Condition> {
    let told = conditions.into_iter().map(|condition| Condition {
        message: bounded_line(&format!("{cluster}: {}", condition.message)),
        ..condition
    });
    told.collect()
}

/// Whether a condition of one of Argo CD's types came back from a cluster. Others are those of the hub's Argo CD, which sets
/// `InvalidSpecError` on an Application that it skips as well, whenever it hears of one whose destination or AppProject it does not know:
/// a write for that alone would go on for ever.
fn is_told(condition: &Condition) -> bool {
    let is_name = |text: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.bytes().all(is_of_it)
    };
    let said = condition.message.split_once(": ");
    names::CONDITIONS.contains(&&*condition.kind) && said.is_some_and(|(cluster, _)| is_name(cluster))
}

/// The conditions, in the order in which Argo CD keeps them: the cluster's, ours, and those that are neither's.
fn conditions(current: &Mirror, said: Vec<Condition>, situation: &Situation<'_>) -> Vec<Condition> {
    let is_ours = |kind: &str| names::OWN_CONDITIONS.iter().any(|own| kind.starts_with(own));
    let mut all: Vec<Condition> = said.into_iter().filter(is_told).collect();
    let others = current.conditions.iter();
    all.extend(others.filter(|it| !is_ours(&it.kind) && !is_told(it)).cloned());
    let refused = situation.carried.and_then(Carried::refused);
    let refused = refused.map(|refused| Condition {
        kind: names::APPLY_ERROR.into(),
        message: bounded_line(&format!("{}: {refused}", situation.cluster)),
        since: None,
    });
    for note in situation.notes.iter().cloned().chain(refused) {
        let before = current.conditions.iter();
        let same = before
            .filter(|it| it.since.is_some())
            .find(|it| it.kind == note.kind && it.message == note.message);
        let since = same.and_then(|same| same.since.clone());
        all.push(Condition {
            since: since.or_else(|| Some(status::time(situation.now).into())),
            ..note
        });
    }
    all.sort();
    all
}

#[cfg(test)]
mod tests;
