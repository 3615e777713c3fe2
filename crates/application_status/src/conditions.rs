//! Builds the conditions of an Application: few and short for any number of clusters, and with stable texts for the same state.

use super::fleet::{ClusterStatus, Fleet, SET};
use hub_state::condition_types::{
    APPLY_ERROR, DEGRADED, INFO, NO_CLUSTER, ON_HOLD, OVERDUE, SHARED, UNREACHABLE, unreachable,
};
use hub_state::{Condition, WorkState};
use manifest::text::{and_more_objects, count};
use ocm::health::HealthStatus;
use primitives::object_ref::ObjectRef;
use runtime::text::bounded;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of conditions of one type; one more condition summarizes the rest.
const MAX_CONDITIONS: usize = 10;

/// Returns true if two lists are equal, ignoring order and transition times.
pub(super) fn are_same(one: &[Condition], other: &[Condition]) -> bool {
    let sorted = |conditions: &[Condition]| {
        let mut all: Vec<_> = conditions
            .iter()
            .map(|condition| (condition.kind.clone(), condition.message.clone()))
            .collect();
        all.sort();
        all
    };
    sorted(one) == sorted(other)
}

/// Returns true if two conditions describe the same state, possibly with different messages.
pub(super) fn is_same_state(one: &Condition, other: &Condition) -> bool {
    one.kind == other.kind
        && match subject(one) {
            Some(subject) => self::subject(other) == Some(subject),
            None => one.message == other.message,
        }
}

/// Returns the cluster or ManifestWorkReplicaSet that a condition is about, or `None` for the totals and for a condition that
/// summarizes several.
pub(super) fn subject(condition: &Condition) -> Option<&str> {
    if condition.kind == INFO || condition.message.starts_with("and ") {
        return None;
    }
    condition.message.split_once(": ").map(|(subject, _)| subject)
}

/// Returns the newest earlier condition of the same type, if none of the clusters of a desired condition has got the problem since.
/// When a cluster recovers, the next one gets a condition instead of a place in the summary, and a newer time would send a
/// notification. A long summary lacks names in its middle: then the number of clusters must not have grown.
pub(super) fn find_newest<'c>(
    before: &'c [Condition],
    desired: &[Condition],
    condition: &Condition,
) -> Option<&'c Condition> {
    let alike = || before.iter().filter(|other| other.kind == condition.kind);
    let known: BTreeSet<&str> = alike().flat_map(named_clusters).collect();
    let mut named = named_clusters(condition).peekable();
    let lacks_names = |other: &Condition| subject(other).is_none() && other.message.contains('…');
    let are_known = named.peek().is_some()
        && (named.all(|cluster| known.contains(cluster))
            || alike().any(lacks_names)
                && count_clusters(desired, &condition.kind) <= count_clusters(before, &condition.kind));
    let time = |condition: &&Condition| condition.last_transition_time.clone();
    alike().max_by_key(time).filter(|_| are_known)
}

/// Returns the number of clusters that conditions of a type are about.
fn count_clusters(conditions: &[Condition], kind: &str) -> usize {
    let clusters = |condition: &Condition| match subject(condition) {
        Some(_) => Some(1_usize),
        None => condition.message.strip_prefix("and ")?.split(' ').next()?.parse().ok(),
    };
    let alike = conditions.iter().filter(|condition| condition.kind == kind);
    alike.filter_map(clusters).sum()
}

/// Returns the clusters that a condition names, also those of a summary.
fn named_clusters(condition: &Condition) -> impl Iterator<Item = &str> {
    let summary = condition
        .message
        .strip_prefix("and ")
        .filter(|_| condition.kind != INFO);
    let names = summary
        .and_then(|summary| summary.split_once(": "))
        .map(|(_, names)| names.split(", "));
    subject(condition).into_iter().chain(names.into_iter().flatten())
}

/// Returns the conditions of an Application, given its present ones; none if it has no works.
pub(super) fn compute(fleet: &Fleet<'_>, before: &[Condition]) -> Vec<Condition> {
    if fleet.is_empty() {
        return Vec::new();
    }
    let clusters = |message_of: &dyn Fn(&ClusterStatus) -> Option<String>| -> BTreeMap<String, String> {
        let messages = fleet.clusters.iter().map(|(name, cluster)| (name, message_of(cluster)));
        messages
            .filter_map(|(name, message)| Some((name.clone(), message?)))
            .collect()
    };
    let joined = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("; "));
    let mut refused = clusters(&|cluster| joined(&cluster.refused));
    let mut degraded = clusters(&|cluster| joined(&cluster.degraded));
    let mut overdue = clusters(&|cluster| joined(&cluster.overdue));
    let sets = |message_of: &dyn Fn(&WorkState) -> Option<String>| -> Vec<(String, String)> {
        let messages = fleet.sets.iter().map(|(name, set)| (name, message_of(set)));
        messages
            .filter_map(|(name, message)| Some((format!("{SET}{name}"), message?)))
            .collect()
    };
    let with_health = |set: &WorkState, health| (set.health == health).then(|| set.message.clone());
    // If clusters report errors, the state of their set adds nothing.
    if degraded.is_empty() && refused.is_empty() {
        degraded.extend(sets(&|set| with_health(set, HealthStatus::Degraded)));
    }
    if overdue.is_empty() {
        overdue.extend(sets(&|set| set.overdue.clone()));
    }
    let without_clusters = sets(&|set| with_health(set, HealthStatus::Suspended));
    // While a cluster is progressing, its earlier error is kept, so that the condition does not flap. A newer one replaces it.
    for condition in before {
        let named = subject(condition).and_then(|name| Some((name, fleet.clusters.get(name)?)));
        let Some((name, cluster)) = named.filter(|(_, cluster)| cluster.is_progressing()) else {
            continue;
        };
        let text = condition.message.get(name.len().saturating_add(2)..);
        let text = text.unwrap_or_default().to_owned();
        match condition.kind.as_str() {
            APPLY_ERROR if cluster.refused.is_empty() => {
                refused.insert(name.to_owned(), joined(&cluster.retried).unwrap_or(text))
            }
            DEGRADED if cluster.degraded.is_empty() => degraded.insert(name.to_owned(), text),
            _ => None,
        };
    }
    let unreachable = clusters(&|cluster| unreachable(cluster.availability).map(str::to_owned));
    let mut conditions = Vec::new();
    for (kind, messages) in [
        (APPLY_ERROR, refused),
        (DEGRADED, degraded),
        (UNREACHABLE, unreachable),
        (ON_HOLD, clusters(&|cluster| cluster.hold.clone())),
        (NO_CLUSTER, without_clusters.into_iter().collect()),
        (OVERDUE, overdue),
        (SHARED, clusters(&|cluster| shared(&cluster.shared))),
    ] {
        conditions.extend(first_few(messages).into_iter().map(|message| condition(kind, message)));
    }
    conditions.push(condition(INFO, totals(fleet)));
    conditions
}

/// Returns the message about objects that other Applications deliver too, or `None` if there are none.
fn shared(by_application: &BTreeMap<ObjectRef, Vec<Box<str>>>) -> Option<String> {
    let (other, objects) = by_application.first_key_value()?;
    let object = objects.first()?;
    let more = and_more_objects(objects.len().saturating_sub(1));
    let others = if by_application.len() > 1 { " and others" } else { "" };
    let verb = if objects.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{object}{more} {verb} also delivered by Application {other}{others}: remove it from one of them"
    ))
}

fn condition(kind: &str, message: String) -> Condition {
    Condition {
        kind: kind.to_owned(),
        message: bounded(message),
        last_transition_time: None,
        more: serde_json::Map::new(),
    }
}

/// Returns one text for each cluster up to the maximum, and one text for the rest.
fn first_few(messages: BTreeMap<String, String>) -> Vec<String> {
    let rest: Vec<String> = messages.keys().skip(MAX_CONDITIONS).cloned().collect();
    let mut texts: Vec<String> = messages
        .into_iter()
        .take(MAX_CONDITIONS)
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    match rest.len() {
        0 => {}
        more => texts.push(format!("and {}: {}", count(more, "more cluster"), rest.join(", "))),
    }
    texts
}

/// The totals over the clusters of an Application, as its condition [`INFO`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub clusters: usize,
    pub applied: usize,
    pub healthy: usize,
    /// The numbers of objects and works, if the message has them.
    pub size: Option<[usize; 2]>,
}

impl Totals {
    /// Parses the message that the controller has written; returns `None` for a message of another version, and during a deletion.
    pub fn parse(message: &str) -> Option<Self> {
        let (applied, rest) = message.strip_prefix("applied on ")?.split_once(" of ")?;
        let (clusters, rest) = rest.split_once(" clusters, healthy on ")?;
        let healthy = rest.split([';', ',']).next()?;
        let number = |counted: &str| counted.split(' ').next()?.parse().ok();
        let size = || {
            let (objects, works) = rest.split_once("; ")?.1.split_once(" in ")?;
            Some([number(objects)?, number(works)?])
        };
        Some(Self {
            clusters: clusters.parse().ok()?,
            applied: applied.parse().ok()?,
            healthy: healthy.parse().ok()?,
            size: size(),
        })
    }
}

fn totals(fleet: &Fleet<'_>) -> String {
    let all = || fleet.clusters.values();
    if fleet.deleting {
        let works = count(fleet.works, "work");
        return format!("deleting: {works} left on {}", count(all().count(), "cluster"));
    }
    let with_health = |health| all().filter(|cluster| cluster.health == health).count();
    let (clusters, applied) = (all().count(), all().filter(|cluster| cluster.applied).count());
    let healthy = with_health(HealthStatus::Healthy);
    let mut states = vec![format!(
        "applied on {applied} of {clusters} clusters, healthy on {healthy}"
    )];
    let others = HealthStatus::ALL
        .into_iter()
        .filter(|health| *health != HealthStatus::Healthy);
    let others = others
        .map(|health| (health, with_health(health)))
        .filter(|(_, clusters)| *clusters > 0);
    states.extend(others.map(|(health, clusters)| format!("{clusters} {}", health.name().to_lowercase())));
    let works = fleet.works.saturating_sub(fleet.sets.len());
    let mut parts = vec![
        states.join(", "),
        format!("{} in {}", count(fleet.objects, "object"), count(works, "work")),
    ];
    let sets = fleet.sets.iter().take(MAX_CONDITIONS);
    parts.extend(sets.map(|(object_ref, set)| format!("{SET}{object_ref}: {}", set.message)));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged;
    use jiff::Timestamp;

    /// Notifications are sent for each newer time.
    #[test]
    fn only_another_cluster_makes_the_newest_condition_newer() {
        let degraded = |clusters: &[usize], before: &[Condition], second: i64| {
            let messages = clusters
                .iter()
                .map(|number| (format!("eu{number:02}"), "a reason".to_owned()));
            let desired = first_few(messages.collect()).into_iter();
            let desired: Vec<_> = desired.map(|message| condition(DEGRADED, message)).collect();
            let now = Timestamp::from_second(second).expect("a time");
            merged(Vec::new(), before, &desired, now)
        };
        let newest = |conditions: &[Condition]| {
            let times = conditions
                .iter()
                .map(|condition| condition.last_transition_time.clone());
            times.max().flatten().expect("a time")
        };
        let twelve: Vec<usize> = (1..=12).collect();
        let first = degraded(&twelve, &[], 1);
        let recovered = degraded(&twelve[1..], &first, 2);
        assert_eq!((recovered.len(), newest(&recovered)), (11, newest(&first)));
        let spread = degraded(&[&twelve[1..], &[13]].concat(), &recovered, 3);
        assert!(newest(&spread) > newest(&first));
        let fell_back = degraded(&twelve, &recovered, 4);
        assert!(newest(&fell_back) > newest(&first));
        let many: Vec<usize> = (1..=300).collect();
        let outage = degraded(&many, &[], 1);
        assert!(outage[0].message.contains('…'), "the summary lacks names");
        let recovering = degraded(&many[1..], &outage, 2);
        assert_eq!(newest(&recovering), newest(&outage));
        assert!(newest(&degraded(&many, &recovering, 3)) > newest(&outage));
    }
}
