//! Rollouts of a new version of the add-on, cluster by cluster.
//!
//! OCM's own rollout of templates does not wait for health: OCM 1.2 considers an add-on rolled out as soon as its objects exist,
//! so a version whose Pods never start is on every cluster within a second. Therefore OCM applies its input at once (strategy
//! `All`), and we change this input gradually, with two install strategy entries for one GitOpsCluster. The first entry names all
//! clusters and the previous version. The second entry names the clusters that have the desired version by now, and has
//! precedence for a cluster that both name. At least one entry names each cluster at any time, so nothing is uninstalled. At the
//! end the first entry names the desired version, and the second is deleted.
//!
//! All state is on the hub: the two entries, the clusters of the second entry and the time of their addition, and OCM's status of
//! each cluster's add-on. So the controller makes the same decision after a restart.

mod agent;
mod strategy;

pub(crate) use agent::{Agent, template_reference};
pub(crate) use strategy::Limits;

use jiff::{SignedDuration, Timestamp};
use pki::CLOCK_SKEW;
use primitives::time_math::after;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The minimum time that a cluster must be healthy with the new version: for some seconds OCM still reports the health of the
/// previous Pod.
const MIN_HEALTHY_TIME: SignedDuration = SignedDuration::from_secs(30);

/// The time after which an unhealthy cluster counts as failed if no deadline is set. It covers image pulls.
const DEFAULT_PROGRESS_DEADLINE: SignedDuration = SignedDuration::from_mins(2);

/// The maximum number of clusters that a message names.
const MAX_NAMED: usize = 3;

/// The clusters that the PlacementDecisions of the second entry name, and the time of their addition, if known.
pub(crate) type UpdatedClusters<'a> = BTreeMap<&'a str, Option<Timestamp>>;

/// The clusters of a GitOpsCluster, and the current OCM configuration for them.
#[derive(Clone, Debug)]
pub(crate) struct RolloutInput<'a> {
    pub(crate) desired: &'a str,
    /// The pace of the rollout, unless it is to all clusters at once.
    pub(crate) limits: Option<Limits>,
    /// The template of the first entry.
    pub(crate) first: Option<&'a str>,
    /// The template of the first entry that OCM has processed: OCM reads the entries first, and their templates some time later.
    pub(crate) read: Option<&'a str>,
    /// The template of the second entry.
    pub(crate) next: Option<&'a str>,
    pub(crate) clusters: BTreeMap<&'a str, Agent<'a>>,
    pub(crate) updated: UpdatedClusters<'a>,
    pub(crate) now: Timestamp,
}

/// The desired OCM configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    pub(crate) first: &'a str,
    /// The template of the second entry, if it is needed.
    pub(crate) next: Option<&'a str>,
    pub(crate) updated: UpdatedClusters<'a>,
    /// The time of the next reconciliation, if no watch event triggers one earlier.
    pub(crate) requeue_after: Option<Timestamp>,
    pub(crate) progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All reachable clusters have the desired version.
    Done,
    /// Some reachable clusters do not have it yet.
    InProgress,
    /// Too many clusters have failed.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub state: State,
    pub message: String,
}

pub(crate) fn plan<'a>(fleet: &RolloutInput<'a>) -> Plan<'a> {
    match (fleet.limits, fleet.first) {
        // On a first installation no cluster has a working version.
        (Some(limits), Some(first)) if first != fleet.desired => paced(fleet, first, limits),
        _ => at_once(fleet),
    }
}

/// Returns the plan that gives all clusters the desired version at once: there is no other version, or there is nothing to wait
/// for, or the desired version is the one from before an unfinished rollout.
fn at_once<'a>(fleet: &RolloutInput<'a>) -> Plan<'a> {
    let is_taken_back = fleet.first == Some(fleet.desired) && fleet.next.is_some_and(|next| next != fleet.desired);
    // The second entry keeps its clusters until OCM has read the same template in the first: otherwise they would get the first
    // entry's previous template.
    let is_read = [fleet.first, fleet.read] == [Some(fleet.desired); 2];
    Plan {
        first: fleet.desired,
        next: fleet.next.filter(|_| !is_taken_back && !is_read).map(|_| fleet.desired),
        updated: if is_taken_back {
            UpdatedClusters::new()
        } else {
            fleet.updated.clone()
        },
        requeue_after: None,
        progress: fleet.progress(fleet.first == Some(fleet.desired)),
    }
}

fn paced<'a>(fleet: &RolloutInput<'a>, first: &'a str, limits: Limits) -> Plan<'a> {
    let max_concurrency = limits.max_concurrency.resolve(fleet.clusters.len()).max(1);
    if fleet.next != Some(fleet.desired) {
        return initial_plan(fleet, first, limits, max_concurrency);
    }
    // An unreachable cluster without the desired version gets it at the end of the rollout, or in its turn once it is reachable.
    let mut updated = fleet.updated.clone();
    updated.retain(|cluster, _| {
        let agent = fleet.clusters.get(cluster);
        agent.is_some_and(|agent| agent.is_available || agent.applied == Some(fleet.desired))
    });
    let (mut healthy, mut under_way, mut failed, mut requeue_after) = (0_usize, 0_usize, Vec::new(), None);
    for (cluster, since) in &updated {
        let Some(agent) = fleet.clusters.get(cluster).filter(|agent| agent.is_available) else {
            continue;
        };
        match agent.evaluate(fleet.desired, *since, limits, fleet.now) {
            ClusterHealth::Healthy => healthy = healthy.saturating_add(1),
            ClusterHealth::Failed => failed.push(*cluster),
            ClusterHealth::UnderWay(until) => {
                under_way = under_way.saturating_add(1);
                requeue_after = [requeue_after, until].into_iter().flatten().min();
            }
        }
    }
    let is_stopped = failed.len() > limits.max_failures.resolve(fleet.clusters.len());
    // A cluster that is already unhealthy says least about the new version, so it is updated last and does not block the others.
    let waiting = fleet.clusters.iter().filter(|(_, agent)| agent.is_available);
    let mut waiting: Vec<_> = waiting.filter(|(cluster, _)| !updated.contains_key(*cluster)).collect();
    waiting.sort_by_key(|(_, agent)| !agent.is_healthy);
    let is_tried = healthy > 0 || fleet.clusters.is_empty();
    if !is_stopped && waiting.is_empty() && under_way == 0 && is_tried {
        return at_once(fleet);
    }
    if !is_stopped {
        let turns = max_concurrency.saturating_sub(under_way);
        updated.extend(
            waiting
                .iter()
                .take(turns)
                .map(|(cluster, _)| (**cluster, Some(fleet.now))),
        );
    }
    let mut message = format!(
        "{healthy} of {} clusters have the desired version, {max_concurrency} at a time",
        fleet.clusters.len()
    );
    if !failed.is_empty() {
        let stopped = if is_stopped { "stopped: " } else { "" };
        let _ = write!(message, "; {stopped}{} failed: {}", failed.len(), few(&failed));
    }
    let state = if is_stopped { State::Stopped } else { State::InProgress };
    Plan {
        first,
        next: Some(fleet.desired),
        updated,
        requeue_after,
        progress: Progress { state, message },
    }
}

/// Returns the plan while the second entry has no version yet, or one that is no longer desired. Before the second entry gets the
/// desired version, it names only clusters that are not healthy with its current version, and at most as many as may change at a
/// time. The other clusters get the version of the first entry meanwhile.
fn initial_plan<'a>(fleet: &RolloutInput<'a>, first: &'a str, limits: Limits, max_concurrency: usize) -> Plan<'a> {
    let unread = Plan {
        first,
        next: fleet.next,
        updated: fleet.updated.clone(),
        requeue_after: None,
        progress: fleet.progress(false),
    };
    if fleet.next.is_some() && fleet.read != Some(first) {
        // A cluster that leaves the second entry now would get the first entry's previous template.
        return unread;
    }
    let mut updated = fleet.updated.clone();
    updated.retain(|cluster, since| {
        let agent = fleet.clusters.get(cluster).filter(|agent| agent.is_available);
        let health = |next| agent.map(|agent| agent.evaluate(next, *since, limits, fleet.now));
        fleet
            .next
            .and_then(health)
            .is_some_and(|health| health != ClusterHealth::Healthy)
    });
    let updated: UpdatedClusters<'_> = updated.into_iter().take(max_concurrency).collect();
    let is_written = fleet.updated.keys().eq(updated.keys());
    // Wait until OCM has read this too: it reads the entries and the PlacementDecisions independently.
    let is_read = fleet.next.is_none_or(|next| {
        let mut others = fleet
            .clusters
            .iter()
            .filter(|(cluster, _)| !updated.contains_key(*cluster));
        others.all(|(_, agent)| agent.assigned != Some(next))
    });
    Plan {
        next: if is_written && is_read {
            Some(fleet.desired)
        } else {
            fleet.next
        },
        updated,
        ..unread
    }
}

/// The health of a cluster with a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClusterHealth {
    Healthy,
    /// The result is due at this time, if known.
    UnderWay(Option<Timestamp>),
    Failed,
}

impl Agent<'_> {
    /// Evaluates the health of the agent with a template that the cluster was assigned at `since`.
    fn evaluate(&self, template: &str, since: Option<Timestamp>, limits: Limits, now: Timestamp) -> ClusterHealth {
        // The cluster's agent writes these times: with a clock that is far ahead, it would keep the cluster under way, and others waiting.
        let drop_future = |time: Option<Timestamp>| time.filter(|time| *time <= after(now, CLOCK_SKEW));
        let [changed, reported] = [self.changed, self.since].map(drop_future);
        let start = since.max(changed);
        let end = |from: Option<Timestamp>, duration| Some(after(from?, duration));
        let is_applied = self.applied == Some(template);
        let (until, result) = if self.is_healthy && is_applied {
            let settled = end(start.max(reported), MIN_HEALTHY_TIME.max(limits.min_success_time));
            (Some(settled.unwrap_or(now)), ClusterHealth::Healthy)
        } else if self.is_healthy {
            let deadline = limits.progress_deadline.and_then(|deadline| end(start, deadline));
            (deadline, ClusterHealth::Failed)
        } else {
            let patience = limits.progress_deadline.unwrap_or(DEFAULT_PROGRESS_DEADLINE);
            (end(start.max(reported), patience), ClusterHealth::Failed)
        };
        match until {
            Some(until) if until <= now => result,
            until => ClusterHealth::UnderWay(until),
        }
    }
}

impl RolloutInput<'_> {
    /// Counts the clusters that have the desired version, healthy or not. The rollout is done only if the first entry has the
    /// desired version.
    fn progress(&self, is_configured: bool) -> Progress {
        let has = |agent: &Agent<'_>| agent.applied == Some(self.desired);
        let updated = self.clusters.values().filter(|agent| has(agent)).count();
        let lacks = self.clusters.iter().filter(|(_, agent)| !has(agent));
        let (reachable, unreachable): (Vec<_>, Vec<_>) = lacks.partition(|(_, agent)| agent.is_available);
        let mut message = format!("{updated} of {} clusters have the desired version", self.clusters.len());
        for (which, what) in [(&reachable, "pending:"), (&unreachable, "unreachable:")] {
            if !which.is_empty() {
                let names: Vec<_> = which.iter().map(|(cluster, _)| **cluster).collect();
                let _ = write!(message, "; {what} {}", few(&names));
            }
        }
        let is_done = is_configured && reachable.is_empty();
        Progress {
            state: if is_done { State::Done } else { State::InProgress },
            message,
        }
    }
}

fn few(names: &[&str]) -> String {
    let mut text = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMED {
        let _ = write!(text, " and {} more", names.len().saturating_sub(MAX_NAMED));
    }
    text
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
