//! Forwards requests on the hub's Application to the managed cluster exactly once: its `operation` (a sync, a rollback), and the
//! annotation that requests a refresh.
//!
//! All state is in the API server, because the controller may stop between any two writes. So each request has its own ID and
//! passes these steps:
//!
//! 1. It is on the hub's Application. The controller adds it to the work.
//! 2. The work carries it: the controller removes it from the Application, and users can make another request. A refresh stays there
//!    until the cluster has done it.
//! 3. The Application no longer has it, and the cluster reports that it no longer has it either, for the payload in the work:
//!    Argo CD removes completed requests. Then the controller removes it from the work. Not earlier: an operation that is removed
//!    while it runs would never end.
//!
//! The work keeps a request as long as the Application has it, otherwise the controller would add it again. A second operation
//! waits on the Application until the first one, or one of the cluster's own, is done; Argo CD then rejects a third ("another
//! operation is in progress"). On the cluster it would be lost, because Argo CD clears the field when the first one is done. If
//! the agent cannot apply the first operation, the second one replaces it.
//!
//! The agent applies the whole Application if any of it changes. If an operation is done but not yet reported as such, that runs
//! it again. So refreshes are neither added nor removed while the work carries an operation. A change of the Application does not
//! wait, because it may fix an operation that does not end: the operation may then run on the new payload as well.

use hub_state::pull::application::Application;
use hub_state::pull::forwarded::{Forwarded, OperationRequest, RefreshRequest, Requests};
use hub_state::pull::pull_work::PullWork;
use hub_state::pull::text::time;

/// The kind of a hard refresh, which includes a normal one.
const HARD: &str = "hard";

/// Returns the requests for the work, and those that can be removed from the hub's Application. `pull_work` is its work on the
/// present target cluster: requests for another cluster are ignored.
pub fn requests(application: &Application, pull_work: Option<&PullWork>) -> (Requests, Forwarded) {
    let requested = &application.requests;
    let Some(pull_work) = pull_work else {
        return (requested.clone(), Forwarded::default());
    };
    let (operation, operation_taken) = match &requested.operation {
        Some(requested) if is_done_already(requested, application, pull_work) => (operation(None, pull_work).0, true),
        requested => operation(requested.as_ref(), pull_work),
    };
    let (mut refresh, refresh_taken) = refresh(requested.refresh.as_ref(), pull_work);
    if operation.is_some() && operation == pull_work.operation {
        refresh.clone_from(&pull_work.refresh);
    }
    let forwarded = Forwarded {
        operation: operation_taken,
        refresh: refresh_taken,
    };
    (Requests { operation, refresh }, forwarded)
}

/// Returns true if the ApplicationSet controller requests a sync that has ended, because it has not seen the result yet.
///
/// If the Application showed the result before the request, the result does not count for that controller: a sync of a RollingSync
/// must start in a later second than its step (`OperationState.StartedAt` in Argo CD's `applicationset/progressivesync`), and the
/// cluster's clock may be late. Then the sync runs again, as it does without the pull model.
fn is_done_already(requested: &OperationRequest, application: &Application, pull_work: &PullWork) -> bool {
    let current = &application.current;
    let written = application.operation_state_written;
    let requested_at = requested.requested_at().and_then(time);
    let has_shown_result = current.sync.status.as_deref() == Some("Synced")
        && current
            .operation
            .as_ref()
            .is_some_and(|operation| operation.finished_at.is_some())
        && requested_at
            .zip(written)
            .is_some_and(|(requested, written)| requested > written);
    requested.is_of_set() && pull_work.is_synced() && !has_shown_result
}

fn operation(requested: Option<&OperationRequest>, pull_work: &PullWork) -> (Option<OperationRequest>, bool) {
    let Some(before) = &pull_work.operation else {
        return (requested.filter(|_| !pull_work.is_busy()).cloned(), false);
    };
    let is_done = pull_work.has_done(before);
    let Some(requested) = requested else {
        return ((!is_done).then(|| before.clone()), false);
    };
    // An operation that is not known to be done is not repeated; Argo CD's API server also rejects another one in that case. The
    // time in `managedFields` may move because the requester changes another field. The ApplicationSet controller repeats its
    // request until it sees the operation end: a later run would sync what is in Git by then, perhaps after the turn of its step.
    if requested.id == before.id || !is_done && requested.is_alike(before) {
        (Some(before.clone()), true)
    } else if is_done || !pull_work.is_current() && pull_work.refused().is_some() {
        (Some(requested.clone()), false)
    } else {
        (Some(before.clone()), false)
    }
}

/// Decides on the refresh, which can be requested at any time: Argo CD merges concurrent refreshes.
fn refresh(requested: Option<&RefreshRequest>, pull_work: &PullWork) -> (Option<RefreshRequest>, bool) {
    let Some(before) = &pull_work.refresh else {
        return (requested.cloned(), false);
    };
    let is_done = pull_work.has_compared();
    match requested {
        None => ((!is_done).then(|| before.clone()), false),
        Some(requested) if requested.nonce == before.nonce => (Some(before.clone()), true),
        Some(requested) => {
            let stays_hard = |before: &str| !is_done && before == HARD;
            let mut refresh = requested.clone();
            if stays_hard(&before.kind) {
                refresh.kind.clone_from(&before.kind);
            }
            if before.hydrate.as_deref().is_some_and(stays_hard) || !is_done && refresh.hydrate.is_none() {
                refresh.hydrate.clone_from(&before.hydrate);
            }
            (Some(refresh), false)
        }
    }
}

#[cfg(test)]
mod simulated_hub;

#[cfg(test)]
mod tests;
