//! Builds the status of the hub's Application from the status that the managed cluster's Argo CD reports, or, without a report,
//! from the known problem. An Application that no Argo CD runs is never shown as healthy, and never without a status.
//!
//! The Application resource has no status subresource, and the hub's Argo CD skips the Application, so the controller owns the
//! status. It writes one merge patch of the differences.
//!
//! The peer integrations write `Progressing` before each `Healthy`, so that a RollingSync of an ApplicationSet sees a transition.
//! That is not necessary: the ApplicationSet controller looks at the state, not at transitions. An Application of a step that was
//! synced (`Succeeded`, not `OutOfSync`) passes from `Pending` to `Progressing` to `Healthy` in one reconcile. An operation that
//! a cluster has not started is shown as `Running`, so that controller does not request it repeatedly either.

mod mirror;

pub use mirror::{Condition, Health, Mirror, OperationState, Sync, TEXT_MAX, patch};
pub(super) use mirror::{bounded, bounded_line, bounded_word, time};

use super::application::Application;
use super::carried::{Applied, Carried};
use super::history;
use jiff::Timestamp;
use ocm::health;
use ocm::pull_model as names;

/// The inputs of an Application's status.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'s> {
    /// The Application, if its deployments are recorded in its history.
    pub application: Option<&'s Application>,
    /// The target managed cluster.
    pub cluster: &'s str,
    /// The ManifestWork on that cluster.
    pub carried: Option<&'s Carried>,
    /// Additional conditions, of types that begin with one of [`names::OWN_CONDITIONS`]; their transition times are ignored.
    pub notes: &'s [Condition],
    /// True if agents only observe.
    pub read_only: bool,
    /// True if the controller owns the status: Argo CD on the hub skips the Application.
    pub is_ours: bool,
    /// The current time.
    pub now: Timestamp,
}

/// The status words of Argo CD used in this module.
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const MISSING: &str = "Missing";
const UNKNOWN: &str = "Unknown";
const RUNNING: &str = "Running";

/// Returns the desired status of an Application with the status `current`.
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
        mirror.health.since = since.or_else(|| Some(health::time(situation.now).into()));
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
    // The hub's Argo CD never removes conditions that it once set. If the controller writes anyway, Argo CD may set again those
    // that still apply.
    let [before, after] = [current, &mirror].map(without_hubs_own);
    if patch(&before, &after).is_some() {
        return after;
    }
    mirror
}

/// Returns the status without the conditions that the hub's own Argo CD set.
fn without_hubs_own(mirror: &Mirror) -> Mirror {
    let mut mirror = mirror.clone();
    mirror.conditions.retain(|it| !is_hubs_own(it));
    mirror
}

fn is_hubs_own(condition: &Condition) -> bool {
    names::CONDITIONS.contains(&&*condition.kind) && !is_told(condition)
}

/// Returns the desired status without additional conditions and history.
fn said(current: &Mirror, situation: &Situation<'_>) -> Mirror {
    let cluster = situation.cluster;
    let waiting = |what: &str| stands(PROGRESSING, &format!("waiting for {cluster}: {what}"));
    // An Application whose work is about to be created is shown as if it existed.
    let Some(carried) = situation.carried else {
        return waiting("its agent has not applied the Application");
    };
    if carried.deleting {
        return Mirror {
            // Such as the reason why a deletion is blocked.
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
            // A rejected payload does not affect completed operations.
            operation: current.operation.clone(),
            ..told
        };
    }
    if carried.missing {
        return stands(MISSING, &format!("the Application is not on {cluster}"));
    }
    let feedback = &carried.feedback;
    let is_first = current.health.status.is_none();
    // Feedback on an earlier payload does not apply to the current one.
    if feedback.is_silent || !carried.is_current() && !situation.read_only {
        return if is_first {
            waiting("no feedback yet")
        } else {
            current.clone()
        };
    }
    let mut said = feedback.said.clone();
    said.conditions = told_by(cluster, said.conditions);
    if said.health.status.is_none() && said.sync.status.is_none() {
        let waiting = waiting("its Argo CD has not reconciled the Application");
        return Mirror {
            conditions: said.conditions,
            ..waiting
        };
    }
    said.health.status.get_or_insert_with(|| UNKNOWN.into());
    said.sync.status.get_or_insert_with(|| UNKNOWN.into());
    said
}

/// Returns the status of an Application of which only this health is known.
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

/// Returns the state of an operation that was removed from the hub's Application and has not started. Without it, `argocd app
/// sync` and an ApplicationSet would consider the operation done.
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
        message: Some(format!("waiting for {} to start the operation", situation.cluster).into()),
        retries: None,
        revision: None,
    })
}

/// Returns true if an operation that the ApplicationSet controller requested is running and its result is unknown. The operation
/// is hidden: for an Application that is `OutOfSync` and `Running`, that controller alternates between Waiting, Pending and
/// Progressing several times a second, and requests the operation each time. On its own hub this ends when Argo CD has synced;
/// here it would last until the agent reports next.
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

/// Returns the conditions with the name of the cluster before each message.
fn told_by(cluster: &str, conditions: Vec<Condition>) -> Vec<Condition> {
    let told = conditions.into_iter().map(|condition| Condition {
        message: bounded_line(&format!("{cluster}: {}", condition.message)),
        ..condition
    });
    told.collect()
}

/// Returns true if a condition of one of Argo CD's types was fed back from a cluster. Others are those of the hub's Argo CD,
/// which sets `InvalidSpecError` even on an Application that it skips, at each watch event of one with an unknown destination or
/// AppProject: a write for that condition alone would cause an endless loop.
fn is_told(condition: &Condition) -> bool {
    let is_name = |text: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.bytes().all(is_of_it)
    };
    let said = condition.message.split_once(": ");
    names::CONDITIONS.contains(&&*condition.kind) && said.is_some_and(|(cluster, _)| is_name(cluster))
}

/// Returns the conditions in the order in which Argo CD keeps them: the cluster's, ours, and those of others.
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
            since: since.or_else(|| Some(health::time(situation.now).into())),
            ..note
        });
    }
    all.sort();
    all
}

#[cfg(test)]
mod tests;
