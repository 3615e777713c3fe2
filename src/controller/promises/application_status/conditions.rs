//! The conditions: few and short however large the fleet, and the same words for the same state.

use super::{Fleet, OnCluster};
use crate::controller::seen::{Condition, Reach, bounded};
use crate::pull;
use crate::status::Verdict;
use std::collections::BTreeMap;

/// Something on a cluster could not be applied.
pub(in crate::controller::promises) const APPLY_ERROR: &str = pull::names::APPLY_ERROR;
/// Something on a cluster is broken or missing.
pub(in crate::controller::promises) const DEGRADED: &str = "ManifestWorkDegradedWarning";
/// The hub does not hear from a cluster.
pub(in crate::controller::promises) const UNREACHABLE: &str = "ManagedClusterUnreachableWarning";
/// How it fares as a whole.
pub(super) const INFO: &str = "ManifestWorkInfo";

/// What a ManifestWorkReplicaSet is called, before its place.
pub(super) const SET: &str = "ManifestWorkReplicaSet ";

/// How many conditions of a type there are at most, before one for the rest.
const MOST: usize = 10;

/// Whether it is of one of our types.
pub(super) fn is_own(condition: &Condition) -> bool {
    is_own_type(&condition.kind)
}

/// Whether a type is one of ours.
pub(in crate::controller::promises) fn is_own_type(kind: &str) -> bool {
    [APPLY_ERROR, DEGRADED, UNREACHABLE, INFO].contains(&kind)
}

/// Whether two lists say the same, whenever.
pub(super) fn are_same(one: &[Condition], other: &[Condition]) -> bool {
    let said = |conditions: &[Condition]| {
        let mut said: Vec<_> = conditions
            .iter()
            .map(|it| (it.kind.clone(), it.message.clone()))
            .collect();
        said.sort();
        said
    };
    said(one) == said(other)
}

/// Whether they say that the same is the matter, maybe in other words.
pub(super) fn is_same_state(one: &Condition, other: &Condition) -> bool {
    one.kind == other.kind
        && match subject(one) {
            Some(subject) => self::subject(other) == Some(subject),
            None => one.message == other.message,
        }
}

/// Of which cluster or Placement it is; nothing of the totals, and of what stands for several.
pub(super) fn subject(condition: &Condition) -> Option<&str> {
    if condition.kind == INFO || condition.message.starts_with("and ") {
        return None;
    }
    condition.message.split_once(": ").map(|(subject, _)| subject)
}

/// What is to be said of an Application, of which this was said before: nothing of one without works.
pub(super) fn of(fleet: &Fleet, before: &[Condition]) -> Vec<Condition> {
    if fleet.is_empty() {
        return Vec::new();
    }
    let clusters = |told: &dyn Fn(&OnCluster) -> Option<String>| -> BTreeMap<String, String> {
        let told = fleet.clusters.iter().map(|(name, cluster)| (name, told(cluster)));
        told.filter_map(|(name, told)| Some((name.clone(), told?))).collect()
    };
    let joined = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("; "));
    let mut refused = clusters(&|cluster| joined(&cluster.refused));
    let mut wrong = clusters(&|cluster| joined(&cluster.wrong));
    // Where clusters say what is wrong, that their set is not well says no more.
    if wrong.is_empty() && refused.is_empty() {
        let sets = fleet.sets.iter().filter(|(_, told)| told.verdict == Verdict::Degraded);
        wrong.extend(sets.map(|(place, told)| (format!("{SET}{place}"), told.message.clone())));
    }
    // What is on its way may come to be well, or not: what was wrong stands until that is known, and does not come and go with
    // each attempt.
    for condition in before {
        let said = subject(condition).and_then(|name| Some((name, fleet.clusters.get(name)?)));
        let Some((name, cluster)) = said.filter(|(_, cluster)| cluster.is_on_its_way()) else {
            continue;
        };
        let text = condition.message.get(name.len().saturating_add(2)..);
        let text = text.unwrap_or_default().to_owned();
        match condition.kind.as_str() {
            APPLY_ERROR if cluster.refused.is_empty() => refused.insert(name.to_owned(), text),
            DEGRADED if cluster.wrong.is_empty() => wrong.insert(name.to_owned(), text),
            _ => None,
        };
    }
    let unreachable = clusters(&|cluster| unreachable(cluster.reach).map(str::to_owned));
    let mut conditions = Vec::new();
    for (kind, told) in [(APPLY_ERROR, refused), (DEGRADED, wrong), (UNREACHABLE, unreachable)] {
        conditions.extend(few(told).into_iter().map(|message| condition(kind, message)));
    }
    conditions.push(condition(INFO, totals(fleet)));
    conditions
}

/// What is to be said of a cluster that the hub does not hear from.
pub(in crate::controller::promises) fn unreachable(reach: Reach) -> Option<&'static str> {
    match reach {
        Reach::Heard => None,
        Reach::Silent => Some("the hub does not hear from its agent; what is shown is what was heard last"),
        Reach::Unwell => Some("its agent says that the API server of the cluster is not well"),
    }
}

fn condition(kind: &str, message: String) -> Condition {
    Condition {
        kind: kind.to_owned(),
        message: bounded(message),
        last_transition_time: None,
        more: serde_json::Map::new(),
    }
}

/// One text for each, or for some and the rest.
fn few(told: BTreeMap<String, String>) -> Vec<String> {
    let rest: Vec<String> = told.keys().skip(MOST).cloned().collect();
    let mut texts: Vec<String> = told
        .into_iter()
        .take(MOST)
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    match rest.len() {
        0 => {}
        1 => texts.push(format!("and 1 more cluster: {}", rest[0])),
        more => texts.push(format!("and {more} more clusters: {}", rest.join(", "))),
    }
    texts
}

/// How many of how many clusters have it, and have it well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) clusters: usize,
    pub(super) applied: usize,
    pub(super) healthy: usize,
}

impl Totals {
    /// Reads back what [`totals`] has written; what another version has written says nothing.
    pub(super) fn read(message: &str) -> Option<Self> {
        let (applied, rest) = message.strip_prefix("applied on ")?.split_once(" of ")?;
        let (clusters, rest) = rest.split_once(" clusters, healthy on ")?;
        let healthy = rest.split([';', ',']).next()?;
        Some(Self {
            clusters: clusters.parse().ok()?,
            applied: applied.parse().ok()?,
            healthy: healthy.parse().ok()?,
        })
    }
}

fn totals(fleet: &Fleet) -> String {
    let all = || fleet.clusters.values();
    let count = |verdict| all().filter(|cluster| cluster.verdict == verdict).count();
    let (clusters, applied) = (all().count(), all().filter(|cluster| cluster.applied).count());
    let healthy = count(Verdict::Healthy);
    let mut fare = vec![format!(
        "applied on {applied} of {clusters} clusters, healthy on {healthy}"
    )];
    let others = Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Healthy);
    let others = others
        .map(|verdict| (verdict, count(verdict)))
        .filter(|(_, count)| *count > 0);
    fare.extend(others.map(|(verdict, count)| format!("{count} {}", verdict.name().to_lowercase())));
    let works = fleet.works.saturating_sub(fleet.sets.len());
    let mut parts = vec![
        fare.join(", "),
        format!("{} in {}", counted(fleet.objects, "object"), counted(works, "work")),
    ];
    let sets = fleet.sets.iter().take(MOST);
    parts.extend(sets.map(|(place, told)| format!("{SET}{place}: {}", told.message)));
    parts.join("; ")
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
