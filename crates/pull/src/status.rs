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

use super::history;
use hub_state::pull::application::Application;
use hub_state::pull::forwarded::OperationRequest;
use hub_state::pull::mirrored_status::{Condition, Health, MirroredStatus, OperationState, Sync, patch};
use hub_state::pull::pull_work::{ApplyState, PullWork};
use hub_state::pull::text::{bounded, bounded_line, time, whole_seconds};
use jiff::Timestamp;
use ocm::pull_model as names;

#[derive(Clone, Copy, Debug)]
pub struct StatusInputs<'s> {
    /// The Application, if its deployments are recorded in its history.
    pub application: Option<&'s Application>,
    pub cluster: &'s str,
    pub pull_work: Option<&'s PullWork>,
    /// The step of the agent that has been outstanding for minutes; none if the cluster is unavailable.
    pub overdue: Option<&'s str>,
    /// Additional conditions, of types that begin with one of [`names::OWN_CONDITIONS`]; their transition times are ignored.
    pub notes: &'s [Condition],
    /// True if agents only observe.
    pub read_only: bool,
    /// True if the controller owns the status: Argo CD on the hub skips the Application.
    pub is_ours: bool,
    pub now: Timestamp,
}

/// The status words of Argo CD used in this module.
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const MISSING: &str = "Missing";
const UNKNOWN: &str = "Unknown";
const RUNNING: &str = "Running";

/// Returns the desired status of an Application with the status `current`.
pub fn desired(current: &MirroredStatus, inputs: &StatusInputs<'_>) -> MirroredStatus {
    if !inputs.is_ours {
        return MirroredStatus {
            conditions: conditions(current, Vec::new(), inputs),
            ..current.clone()
        };
    }
    let mut mirror = MirroredStatus {
        has_deployed: false,
        ..reported(current, inputs)
    };
    if mirror.health.since.is_none() {
        let same = mirror.health.status == current.health.status;
        let since = current.health.since.filter(|_| same);
        mirror.health.since = since.or(Some(whole_seconds(inputs.now)));
    }
    if let Some(waiting) = not_begun(current, inputs) {
        mirror.operation = Some(waiting);
    }
    if hides_operation(&mirror, inputs) {
        mirror.operation.clone_from(&current.operation);
    }
    mirror.conditions = conditions(current, mirror.conditions, inputs);
    let has_begun = |request: &OperationRequest| inputs.pull_work.is_some_and(|pull_work| pull_work.has_begun(request));
    let request = request(current, inputs, has_begun);
    let reported = inputs.pull_work.map(|pull_work| &pull_work.feedback.reported);
    let is_reported = reported.is_some_and(|reported| mirror.operation == reported.operation);
    mirror.history = match inputs.application.zip(inputs.pull_work) {
        Some((application, pull_work)) if is_reported => {
            let carried = pull_work.operation.as_ref();
            let forwarded = carried.filter(|operation| pull_work.has_begun(operation));
            let forwarded = forwarded.or(request.as_ref());
            history::after(application, &current.history, &pull_work.feedback, forwarded)
        }
        _ => current.history.clone(),
    };
    if let Some(state) = mirror.operation.as_mut().filter(|_| is_reported) {
        state.request = request;
    }
    if !mirror.conditions.iter().any(is_hubs_own) {
        return mirror;
    }
    // The hub's Argo CD never removes conditions that it once set. If the controller writes anyway, Argo CD may set again those
    // that still apply.
    let [before, after] = [current, &mirror].map(without_hubs_own);
    if patch(&before, &after, is_comparison_requested(inputs.pull_work)).is_some() {
        return after;
    }
    mirror
}

/// Returns true if a work carries a request to compare the Application with Git.
pub fn is_comparison_requested(pull_work: Option<&PullWork>) -> bool {
    pull_work.is_some_and(|pull_work| pull_work.refresh.is_some())
}

fn without_hubs_own(mirror: &MirroredStatus) -> MirroredStatus {
    let mut mirror = mirror.clone();
    mirror.conditions.retain(|condition| !is_hubs_own(condition));
    mirror
}

fn is_hubs_own(condition: &Condition) -> bool {
    names::CONDITIONS.contains(&&*condition.kind) && !is_from_cluster(condition)
}

/// Returns the desired status without additional conditions and history.
fn reported(current: &MirroredStatus, inputs: &StatusInputs<'_>) -> MirroredStatus {
    let cluster = inputs.cluster;
    let waiting = |what: &str| health_only(PROGRESSING, &format!("waiting for {cluster}: {what}"));
    // An Application whose work is about to be created is shown as if it existed.
    let Some(pull_work) = inputs.pull_work else {
        // Without a cluster, the first condition has the reason.
        if let Some(why) = inputs.notes.first().filter(|_| cluster.is_empty()) {
            return health_only(PROGRESSING, &format!("not delivered: {}", why.message));
        }
        return waiting("its agent has not applied the Application");
    };
    if pull_work.deleting {
        return MirroredStatus {
            // Such as the reason why a deletion is blocked.
            conditions: with_cluster_name(cluster, pull_work.feedback.reported.conditions.clone()),
            health: waiting("its agent is removing the Application").health,
            ..current.clone()
        };
    }
    if pull_work.applied == ApplyState::Unknown {
        return waiting("its agent has not applied the Application");
    }
    if let Some(refused) = pull_work.refused().filter(|_| !pull_work.is_current()) {
        return MirroredStatus {
            // A rejected payload does not affect completed operations.
            operation: current.operation.clone(),
            ..health_only(
                DEGRADED,
                &format!("{cluster} could not apply the Application: {refused}"),
            )
        };
    }
    if pull_work.missing {
        return health_only(MISSING, &format!("the Application is not on {cluster}"));
    }
    let feedback = &pull_work.feedback;
    let is_first = current.health.status.is_none();
    // Feedback on an earlier payload does not apply to the current one.
    if feedback.is_silent || !pull_work.is_current() && !inputs.read_only {
        return match inputs.overdue {
            _ if is_first => waiting("no feedback yet"),
            // The agent has stopped, so the last report is outdated.
            Some(why) => MirroredStatus {
                health: health_only(PROGRESSING, why).health,
                ..current.clone()
            },
            None => current.clone(),
        };
    }
    let mut reported = feedback.reported.clone();
    reported.conditions = with_cluster_name(cluster, reported.conditions);
    if reported.health.status.is_none() && reported.sync.status.is_none() {
        let waiting = waiting("its Argo CD has not reconciled the Application");
        return MirroredStatus {
            conditions: reported.conditions,
            ..waiting
        };
    }
    reported.health.status.get_or_insert_with(|| UNKNOWN.into());
    reported.sync.status.get_or_insert_with(|| UNKNOWN.into());
    reported
}

/// Returns the status of an Application of which only this health is known.
fn health_only(health: &str, message: &str) -> MirroredStatus {
    MirroredStatus {
        health: Health {
            status: Some(health.into()),
            message: Some(bounded(message)),
            since: None,
        },
        sync: Sync {
            status: Some(UNKNOWN.into()),
            ..Sync::default()
        },
        ..MirroredStatus::default()
    }
}

/// Returns the state of an operation that was removed from the hub's Application and has not started. Without it, `argocd app
/// sync` and an ApplicationSet would consider the operation done.
fn not_begun(current: &MirroredStatus, inputs: &StatusInputs<'_>) -> Option<OperationState> {
    let pull_work = inputs.pull_work?;
    let operation = pull_work.operation.as_ref()?;
    if pull_work.has_done(operation) || pull_work.has_begun(operation) {
        return None;
    }
    Some(OperationState {
        phase: RUNNING.into(),
        started_at: operation.requested_at().and_then(time)?,
        finished_at: None,
        message: Some(format!("waiting for {} to start the operation", inputs.cluster).into()),
        retries: None,
        revision: None,
        revisions: Vec::new(),
        request: request(current, inputs, |request| request.id == operation.id),
    })
}

/// Returns an operation that the controller forwarded, as it is on the hub: the agent may have changed that in its work. The hub's
/// Application has it until the work carries it, and its status from then on.
fn request(
    current: &MirroredStatus,
    inputs: &StatusInputs<'_>,
    is_it: impl Fn(&OperationRequest) -> bool,
) -> Option<OperationRequest> {
    let requested = inputs
        .application
        .and_then(|application| application.requests.operation.as_ref());
    let shown = current.operation.as_ref().and_then(|state| state.request.as_ref());
    requested
        .into_iter()
        .chain(shown)
        .find(|request| is_it(request))
        .cloned()
}

/// Returns true if an operation that the ApplicationSet controller requested is running and its result is unknown. The operation
/// is hidden: for an Application that is `OutOfSync` and `Running`, that controller alternates between Waiting, Pending and
/// Progressing several times a second, and requests the operation each time. On its own hub this ends when Argo CD has synced;
/// here it would last until the agent reports next.
fn hides_operation(mirror: &MirroredStatus, inputs: &StatusInputs<'_>) -> bool {
    let runs = mirror
        .operation
        .as_ref()
        .is_some_and(|operation| &*operation.phase == RUNNING);
    let Some(pull_work) = inputs.pull_work.filter(|_| runs) else {
        return false;
    };
    let asked = match &pull_work.operation {
        Some(operation) if !pull_work.has_begun(operation) => operation.is_of_set(),
        _ => pull_work.feedback.initiated_by.as_deref() == Some(names::SET_CONTROLLER),
    };
    asked && mirror.sync.status.as_deref() != Some("Synced")
}

fn with_cluster_name(cluster: &str, conditions: Vec<Condition>) -> Vec<Condition> {
    let named = conditions.into_iter().map(|condition| Condition {
        message: bounded_line(&format!("{cluster}: {}", condition.message)),
        ..condition
    });
    named.collect()
}

/// Returns true if a condition of one of Argo CD's types was fed back from a cluster. Others are those of the hub's Argo CD,
/// which sets `InvalidSpecError` even on an Application that it skips, at each watch event of one with an unknown destination or
/// AppProject: a write for that condition alone would cause an endless loop.
fn is_from_cluster(condition: &Condition) -> bool {
    let is_name = |text: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.bytes().all(is_of_it)
    };
    let reported = condition.message.split_once(": ");
    names::CONDITIONS.contains(&&*condition.kind) && reported.is_some_and(|(cluster, _)| is_name(cluster))
}

/// Returns the conditions in the order in which Argo CD keeps them: the cluster's, ours, and those of others.
fn conditions(current: &MirroredStatus, reported: Vec<Condition>, inputs: &StatusInputs<'_>) -> Vec<Condition> {
    let mut all: Vec<Condition> = reported.into_iter().filter(is_from_cluster).collect();
    let others = current.conditions.iter();
    all.extend(
        others
            .filter(|condition| !names::is_own_condition(&condition.kind) && !is_from_cluster(condition))
            .cloned(),
    );
    let refused = inputs.pull_work.and_then(PullWork::refused);
    let refused = refused.map(|refused| Condition {
        kind: names::APPLY_ERROR.into(),
        message: bounded_line(&format!("{}: {refused}", inputs.cluster)),
        since: None,
    });
    for note in inputs.notes.iter().cloned().chain(refused) {
        // A cluster that gives another reason has no new problem: each newer time would send a notification.
        let is_same = |condition: &&Condition| {
            condition.kind == note.kind && subject(&condition.message) == subject(&note.message)
        };
        let mut same = current.conditions.iter().filter(is_same);
        let since = same.find_map(|condition| condition.since);
        all.push(Condition {
            since: since.or(Some(whole_seconds(inputs.now))),
            ..note
        });
    }
    all.sort();
    all
}

/// Returns the cluster or object of a message, or all of it.
fn subject(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(subject, _)| subject)
}

#[cfg(test)]
mod tests;
