//! How another version of the add-on goes from cluster to cluster.
//!
//! OCM's own rollout of templates does not wait for what it brings: to OCM 1.2 an add-on is rolled out as soon as its objects are there,
//! so that a version whose Pods never start is everywhere within a second. So OCM is told to bring what it is given at once, and is
//! given it little by little, by two entries for one GitOpsCluster: the first names all of its clusters and the version before,
//! the second, which counts for a cluster that both name, those that have got the wanted version by now. No cluster is ever
//! named by neither, so nothing is uninstalled. At the end the first names the wanted version, and the second goes.
//!
//! All that counts is what is on the hub: the two entries, whom the second names and since when, and what OCM says of each cluster's add-on.
//! So whoever starts anew decides the same.

mod agent;
mod strategy;

pub use agent::{Agent, Health};
pub use strategy::{Limits, Share, Strategy};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How long a cluster has to fare well at least with another version: for some seconds OCM still says so of the Pod before.
const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// After how long a cluster that does not fare well has failed where no deadline is set: images are pulled first.
const PATIENCE: SignedDuration = SignedDuration::from_mins(2);

/// How many clusters a message names.
const NAMED: usize = 3;

/// The clusters that the second entry names, and since when it does, where that is known.
pub type Moved<'a> = BTreeMap<&'a str, Option<Timestamp>>;

/// The clusters of a GitOpsCluster, and what OCM has been told of them.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// The template that all shall have.
    pub wanted: &'a str,
    /// How fast.
    pub strategy: Strategy,
    /// The template of the first entry, if it is there.
    pub first: Option<&'a str>,
    /// The template of the first entry that OCM goes by: it reads entries first, and what they say some time later.
    pub read: Option<&'a str>,
    /// The template of the second entry, if it is there.
    pub next: Option<&'a str>,
    /// All clusters.
    pub clusters: BTreeMap<&'a str, Agent<'a>>,
    /// Those that the decisions for the second entry name.
    pub moved: Moved<'a>,
    /// The time.
    pub now: Timestamp,
}

/// What OCM is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// The template of the first entry.
    pub first: &'a str,
    /// The template of the second entry, if there is to be one.
    pub next: Option<&'a str>,
    /// Whom the decisions for the second entry are to name.
    pub moved: Moved<'a>,
    /// When it is to be looked at again though nothing happens.
    pub again: Option<Timestamp>,
    /// How far it is.
    pub progress: Progress,
}

/// Whether all have the version that they shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They have, as far as they are heard of.
    Done,
    /// Not yet.
    Going,
    /// Too many have failed.
    Stopped,
}

/// How far a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whether it goes on.
    pub state: State,
    /// How that is said.
    pub message: String,
}

/// What OCM is to be told now.
#[must_use]
pub fn plan<'a>(fleet: &Fleet<'a>) -> Plan<'a> {
    match (fleet.strategy, fleet.first) {
        // The clusters of a first installation have no version that works.
        (Strategy::Progressive(limits), Some(first)) if first != fleet.wanted => paced(fleet, first, limits),
        _ => at_once(fleet),
    }
}

/// All clusters have the wanted version at once: there is no other, or nothing is to be waited for, or it is that which they had
/// before a rollout which has not come to its end.
fn at_once<'a>(fleet: &Fleet<'a>) -> Plan<'a> {
    let is_taken_back = fleet.first == Some(fleet.wanted) && fleet.next.is_some_and(|next| next != fleet.wanted);
    // What the second names stays with it until OCM has the same of the first: it would have what that said before.
    let is_read = [fleet.first, fleet.read] == [Some(fleet.wanted); 2];
    Plan {
        first: fleet.wanted,
        next: fleet.next.filter(|_| !is_taken_back && !is_read).map(|_| fleet.wanted),
        moved: if is_taken_back {
            Moved::new()
        } else {
            fleet.moved.clone()
        },
        again: None,
        progress: fleet.progress(fleet.first == Some(fleet.wanted)),
    }
}

fn paced<'a>(fleet: &Fleet<'a>, first: &'a str, limits: Limits) -> Plan<'a> {
    let at_a_time = limits.at_a_time.of(fleet.clusters.len()).max(1);
    if fleet.next != Some(fleet.wanted) {
        return begun(fleet, first, limits, at_a_time);
    }
    // One that is not heard of and does not have it has it with all others, or when it is heard of and its turn comes.
    let mut moved = fleet.moved.clone();
    moved.retain(|cluster, _| {
        let agent = fleet.clusters.get(cluster);
        agent.is_some_and(|agent| agent.is_heard || agent.applied == Some(fleet.wanted))
    });
    let (mut healthy, mut under_way, mut failed, mut again) = (0_usize, 0_usize, Vec::new(), None);
    for (cluster, since) in &moved {
        let Some(agent) = fleet.clusters.get(cluster).filter(|agent| agent.is_heard) else {
            continue;
        };
        match agent.judged(fleet.wanted, *since, limits, fleet.now) {
            Judgement::Healthy => healthy = healthy.saturating_add(1),
            Judgement::Failed => failed.push(*cluster),
            Judgement::UnderWay(until) => {
                under_way = under_way.saturating_add(1);
                again = [again, until].into_iter().flatten().min();
            }
        }
    }
    let is_stopped = failed.len() > limits.failures.of(fleet.clusters.len());
    // One that fares ill already tells least of what the other version is worth, and is no reason for the others not to get it.
    let waiting = fleet.clusters.iter().filter(|(_, agent)| agent.is_heard);
    let mut waiting: Vec<_> = waiting.filter(|(cluster, _)| !moved.contains_key(*cluster)).collect();
    waiting.sort_by_key(|(_, agent)| !matches!(agent.health, Health::Well(_)));
    let is_tried = healthy > 0 || fleet.clusters.is_empty();
    if !is_stopped && waiting.is_empty() && under_way == 0 && is_tried {
        return at_once(fleet);
    }
    if !is_stopped {
        let turns = at_a_time.saturating_sub(under_way);
        moved.extend(
            waiting
                .iter()
                .take(turns)
                .map(|(cluster, _)| (**cluster, Some(fleet.now))),
        );
    }
    let mut message = format!(
        "{healthy} of {} clusters have the wanted version, {at_a_time} at a time",
        fleet.clusters.len()
    );
    if !failed.is_empty() {
        let stopped = if is_stopped { "stopped: " } else { "" };
        let _ = write!(message, "; {stopped}{} failed: {}", failed.len(), few(&failed));
    }
    let state = if is_stopped { State::Stopped } else { State::Going };
    Plan {
        first,
        next: Some(fleet.wanted),
        moved,
        again,
        progress: Progress { state, message },
    }
}

/// The second entry has no version yet, or one that is not wanted any more. Before it has the wanted one it names at most as many
/// clusters as may change at a time, of those that do not fare well as they are. The others have the version of the first meanwhile.
fn begun<'a>(fleet: &Fleet<'a>, first: &'a str, limits: Limits, at_a_time: usize) -> Plan<'a> {
    let unread = Plan {
        first,
        next: fleet.next,
        moved: fleet.moved.clone(),
        again: None,
        progress: fleet.progress(false),
    };
    if fleet.next.is_some() && fleet.read != Some(first) {
        // Who is no longer named by the second would have what the first said before.
        return unread;
    }
    let mut moved = fleet.moved.clone();
    moved.retain(|cluster, since| {
        let agent = fleet.clusters.get(cluster).filter(|agent| agent.is_heard);
        let judged = |next| agent.map(|agent| agent.judged(next, *since, limits, fleet.now));
        fleet.next.and_then(judged).is_some_and(|it| it != Judgement::Healthy)
    });
    let moved: Moved<'_> = moved.into_iter().take(at_a_time).collect();
    let is_said = fleet.moved.keys().eq(moved.keys());
    // OCM has read that, too: it reads the entries and the decisions each for themselves.
    let is_read = fleet.next.is_none_or(|next| {
        let mut others = fleet
            .clusters
            .iter()
            .filter(|(cluster, _)| !moved.contains_key(*cluster));
        others.all(|(_, agent)| agent.told != Some(next))
    });
    Plan {
        next: if is_said && is_read {
            Some(fleet.wanted)
        } else {
            fleet.next
        },
        moved,
        ..unread
    }
}

/// How a cluster fares with another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Healthy,
    /// Perhaps until this time.
    UnderWay(Option<Timestamp>),
    Failed,
}

impl Agent<'_> {
    /// How it fares with a template that it was to have since then.
    fn judged(&self, template: &str, since: Option<Timestamp>, limits: Limits, now: Timestamp) -> Judgement {
        let start = since.max(self.changed);
        let end = |from: Option<Timestamp>, duration| Some(from?.saturating_add(duration).unwrap_or(Timestamp::MAX));
        let is_applied = self.applied == Some(template);
        let (until, judgement) = match self.health {
            Health::Well(well) if is_applied => {
                let settled = end(start.max(well), SETTLE.max(limits.success));
                (Some(settled.unwrap_or(now)), Judgement::Healthy)
            }
            Health::Well(_) => {
                let deadline = limits.deadline.and_then(|deadline| end(start, deadline));
                (deadline, Judgement::Failed)
            }
            Health::Ill(ill) => {
                let patience = limits.deadline.unwrap_or(PATIENCE);
                (end(start.max(ill), patience), Judgement::Failed)
            }
        };
        match until {
            Some(until) if until <= now => judgement,
            until => Judgement::UnderWay(until),
        }
    }
}

impl Fleet<'_> {
    /// How many clusters have the wanted version, however they fare with it. Before OCM is told that all shall have it, it is not all.
    fn progress(&self, is_told: bool) -> Progress {
        let has = |agent: &Agent<'_>| agent.applied == Some(self.wanted);
        let there = self.clusters.values().filter(|agent| has(agent)).count();
        let lacks = self.clusters.iter().filter(|(_, agent)| !has(agent));
        let (heard, silent): (Vec<_>, Vec<_>) = lacks.partition(|(_, agent)| agent.is_heard);
        let mut message = format!("{there} of {} clusters have the wanted version", self.clusters.len());
        for (which, what) in [(&heard, "not yet"), (&silent, "nothing is heard of")] {
            if !which.is_empty() {
                let names: Vec<_> = which.iter().map(|(cluster, _)| **cluster).collect();
                let _ = write!(message, "; {what} {}", few(&names));
            }
        }
        let is_done = is_told && heard.is_empty();
        Progress {
            state: if is_done { State::Done } else { State::Going },
            message,
        }
    }
}

/// The first of many names.
fn few(names: &[&str]) -> String {
    let mut text = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        let _ = write!(text, " and {} more", names.len().saturating_sub(NAMED));
    }
    text
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
