//! Reduces a report that is too large, and describes what was dropped: long texts first, then healthy Applications.
//!
//! The summary is always complete, and no unhealthy Application is dropped before a healthy one.

use super::summary::{is_healthy, is_progressing, is_synced, summarize};
use hub_state::report::{Entry, Resource, ResourceEntry, Statuses};
use manifest::text::shortened;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The maximum size in bytes of entries and resources as the API server stores them. The API server limits an object to 1.5 MiB
/// including metadata, and others may write to the object as well.
const MAX_SIZE: usize = 1_000_000;

/// The maximum size in bytes of the resources, out of the space for entries and resources.
const MAX_RESOURCES_SIZE: usize = 200_000;

/// The priority of an entry; the first in this order get space first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// An unhealthy entry, or one of unknown health.
    Unhealthy,
    Progressing,
    /// A healthy entry with conditions.
    Warning,
    /// A healthy entry without conditions.
    Healthy,
}

impl Priority {
    fn of(entry: &Entry<'_>) -> Self {
        if is_progressing(entry) {
            Self::Progressing
        } else if !is_healthy(entry) {
            Self::Unhealthy
        } else if is_synced(entry) && entry.conditions.is_empty() {
            Self::Healthy
        } else {
            Self::Warning
        }
    }
}

/// The level of detail of an entry.
#[derive(Clone, Copy)]
enum Detail {
    /// The whole entry, with each message cut to this number of bytes.
    Full(usize),
    /// The entry without operation and revision, with each message cut to this number of bytes.
    Short(usize),
    /// The Application with its health and sync status only.
    Minimal,
}

impl Detail {
    fn reduce<'a>(self, whole: &Entry<'a>) -> Entry<'a> {
        let mut entry = whole.clone();
        match self {
            Self::Minimal => entry.conditions.clear(),
            Self::Full(max) | Self::Short(max) => {
                let longer = entry
                    .conditions
                    .iter_mut()
                    .filter(|condition| condition.message.len() > max);
                longer.for_each(|condition| condition.message = shortened(&condition.message, max).into_owned().into());
            }
        }
        if !matches!(self, Self::Full(_)) {
            entry.operation_state_phase = Cow::default();
            entry.operation_state_started_at = Cow::default();
            entry.sync_revision = Cow::default();
        }
        entry
    }
}

/// The order in which entries get space: ranges of priorities, each with a level of detail. Later steps use the space that is left.
const DETAIL_STEPS: [(Priority, Priority, Detail); 9] = [
    (Priority::Unhealthy, Priority::Progressing, Detail::Minimal),
    (Priority::Unhealthy, Priority::Progressing, Detail::Short(128)),
    (Priority::Warning, Priority::Healthy, Detail::Minimal),
    (Priority::Unhealthy, Priority::Progressing, Detail::Full(128)),
    (Priority::Warning, Priority::Warning, Detail::Full(128)),
    (Priority::Healthy, Priority::Healthy, Detail::Full(128)),
    (Priority::Unhealthy, Priority::Healthy, Detail::Full(256)),
    (Priority::Unhealthy, Priority::Healthy, Detail::Full(512)),
    (Priority::Unhealthy, Priority::Healthy, FULL),
];

const FULL: Detail = Detail::Full(usize::MAX);

/// An entry and what the report shows of it; `None` if it is dropped.
struct Candidate<'e, 'a> {
    whole: &'e Entry<'a>,
    shown: Option<Entry<'a>>,
    size: usize,
}

/// Returns the entries and resources that fit, in their order, and a description of what was dropped.
pub(super) fn fit<'a>(resources: &BTreeSet<&'a Resource>, entries: &[&Entry<'a>]) -> (Statuses<'a>, Option<String>) {
    let (shown_resources, used) = fitting_resources(resources);
    let candidates = assign_detail(entries, MAX_SIZE.saturating_sub(used));
    let cut = describe(&candidates, resources.len().saturating_sub(shown_resources.len()));
    let statuses = Statuses {
        cluster_conditions: candidates.into_iter().filter_map(|candidate| candidate.shown).collect(),
        resources: shown_resources,
        summary: summarize(entries),
    };
    (statuses, cut)
}

/// Assigns each entry a level of detail within the given space.
fn assign_detail<'e, 'a>(entries: &[&'e Entry<'a>], mut room: usize) -> Vec<Candidate<'e, 'a>> {
    let is_all_shown = entries.iter().map(size).sum::<usize>() <= room;
    let candidate = |whole: &&'e Entry<'a>| Candidate {
        whole,
        shown: is_all_shown.then(|| (*whole).clone()),
        size: 0,
    };
    let mut candidates: Vec<_> = entries.iter().map(candidate).collect();
    if is_all_shown {
        return candidates;
    }
    let mut by_priority: Vec<_> = candidates
        .iter_mut()
        .map(|candidate| (Priority::of(candidate.whole), candidate))
        .collect();
    by_priority.sort_by_key(|(priority, _)| *priority);
    for (from, to, detail) in DETAIL_STEPS {
        for (_, candidate) in by_priority
            .iter_mut()
            .filter(|(priority, _)| (from..=to).contains(priority))
        {
            let entry = detail.reduce(candidate.whole);
            let size = size(&entry);
            let Some(left) = room.saturating_add(candidate.size).checked_sub(size) else {
                return candidates;
            };
            room = left;
            (candidate.shown, candidate.size) = (Some(entry), size);
        }
    }
    candidates
}

/// Returns as many of the first resources as fit, and their size.
fn fitting_resources<'a>(all: &BTreeSet<&'a Resource>) -> (Vec<ResourceEntry<'a>>, usize) {
    let mut used = 0_usize;
    let entries = all.iter().map(|resource| ResourceEntry {
        api_version: (*resource.api_version).into(),
        kind: (*resource.kind).into(),
        name: (*resource.name).into(),
        namespace: (*resource.namespace).into(),
    });
    let fits = |entry: &ResourceEntry<'_>| {
        let with_it = used.saturating_add(size(entry));
        let fits = with_it <= MAX_RESOURCES_SIZE;
        if fits {
            used = with_it;
        }
        fits
    };
    let fitting = entries.take_while(fits).collect();
    (fitting, used)
}

fn describe(candidates: &[Candidate<'_, '_>], resources: usize) -> Option<String> {
    let shown = || {
        candidates
            .iter()
            .filter_map(|candidate| Some((candidate.shown.as_ref()?, candidate.whole)))
    };
    let is_hidden = |(shown, whole): &(&Entry<'_>, &Entry<'_>)| {
        shown.conditions.len() != whole.conditions.len()
            || shown.operation_state_phase != whole.operation_state_phase
            || shown.operation_state_started_at != whole.operation_state_started_at
            || shown.sync_revision != whole.sync_revision
    };
    let messages = shown().flat_map(|(shown, whole)| shown.conditions.iter().zip(&whole.conditions));
    let messages = messages.filter(|(shown, whole)| shown.message != whole.message).count();
    let left_out: Vec<_> = candidates
        .iter()
        .filter(|candidate| candidate.shown.is_none())
        .collect();
    let unhealthy = match left_out.iter().filter(|candidate| !is_healthy(candidate.whole)).count() {
        0 => String::new(),
        count => format!(", {count} of them not healthy"),
    };
    let parts = [
        (messages, ["message", "messages"], "shortened".to_owned()),
        (
            shown().filter(is_hidden).count(),
            ["entry", "entries"],
            "without details".to_owned(),
        ),
        (left_out.len(), ["entry", "entries"], format!("left out{unhealthy}")),
        (resources, ["resource", "resources"], "left out".to_owned()),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts =
        parts.map(|(count, [one, more], what)| format!("{count} {} {what}", if count == 1 { one } else { more }));
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| format!("report truncated: {}; the summary counts all", parts.join("; ")))
}

/// Returns the size in bytes of a value as the API server stores it, with a comma. The API server writes some characters as
/// `\u003c` that take one or three bytes here.
fn size(value: &impl Serialize) -> usize {
    let text = serde_json::to_string(value).expect("texts and lists of them are JSON");
    let stored = text.bytes().map(|byte| match byte {
        b'<' | b'>' | b'&' => 6,
        // The first byte of U+2028, among others.
        0xe2 => 4,
        _ => 1,
    });
    stored.sum::<usize>().saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, Report, app};
    use hub_state::report::{ConditionEntry, TRUNCATED};
    use primitives::object_ref::ObjectRef;
    use serde_json::Value;
    use std::sync::LazyLock;

    const MIB: usize = 1 << 20;
    const REVISION: &str = "53e28ff20cc530b9ada2173fbbd64d48338583ba";

    static CLUSTERS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..20_000).map(|number| format!("cluster-{number:05}")).collect());

    /// Returns a line of an Application on the cluster of this number.
    fn line<'a>(number: usize, health: &'a str, messages: &[&'a str]) -> Line<'a> {
        let cluster = CLUSTERS[number].as_str();
        let name = format!("shop-{cluster}");
        let condition = |message: &&'a str| ConditionEntry {
            message: (*message).into(),
            kind: "ManifestWorkDegradedWarning".into(),
        };
        let entry = Entry {
            app: app("argocd", &name, Some((cluster, &format!("{name}-1a2b3")))).into(),
            cluster: cluster.into(),
            conditions: messages.iter().map(condition).collect(),
            health_status: health.into(),
            operation_state_phase: "Succeeded".into(),
            operation_state_started_at: "2026-06-01T12:00:00Z".into(),
            sync_revision: REVISION.into(),
            sync_status: "Synced".into(),
        };
        Line {
            entry,
            resources: Vec::new(),
        }
    }

    /// Returns the report as stored, and the description of what was dropped.
    fn report(lines: &[Line<'_>]) -> (Value, String) {
        let set = ObjectRef::new("argocd", "shop");
        let object = Report::new(&set, "9b1c8a3e-0d5f-4a51-9b5e-6d0c1f1f2a3b", lines).object();
        assert!(object.to_string().len() < MIB, "{}", object.to_string().len());
        let cut = object["metadata"]["annotations"][TRUNCATED].as_str();
        let cut = cut.unwrap_or_default().to_owned();
        (object, cut)
    }

    fn entries(report: &Value) -> &[Value] {
        report["statuses"]["clusterConditions"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    fn count(report: &Value, which: impl Fn(&Value) -> bool) -> usize {
        entries(report).iter().filter(|entry| which(entry)).count()
    }

    fn lines<'a>(count: usize, line_of: impl Fn(usize) -> (&'a str, &'a [&'a str])) -> Vec<Line<'a>> {
        let all = (0..count).map(|number| (number, line_of(number)));
        all.map(|(number, (health, messages))| line(number, health, messages))
            .collect()
    }

    fn is_healthy(entry: &Value) -> bool {
        entry["healthStatus"] == "Healthy"
    }

    #[test]
    fn report_that_fits_is_not_truncated() {
        let long = "x".repeat(100_000);
        let mut lines = lines(1_000, |_| ("Healthy", &[]));
        lines.push(line(1_000, "Degraded", &[&long, "and more"]));
        let (report, cut) = report(&lines);
        assert_eq!((entries(&report).len(), cut.as_str()), (1_001, ""));
        assert_eq!(entries(&report)[1_000]["conditions"][0]["message"], long);
        assert_eq!(entries(&report)[0]["syncRevision"], REVISION);
    }

    #[test]
    fn report_of_5000_clusters_lists_every_cluster() {
        let long = "no space left on device ".repeat(20);
        // All Applications, and the messages of one in ten.
        let ill = [&*long];
        let lines = lines(5_000, |n| {
            if n % 10 == 0 {
                ("Degraded", &ill[..])
            } else {
                ("Healthy", &[])
            }
        });
        let (report, cut) = report(&lines);
        assert_eq!(
            cut,
            "report truncated: 500 messages shortened; 3862 entries without details; the summary counts all"
        );
        assert_eq!((entries(&report).len(), count(&report, is_healthy)), (5_000, 4_500));
        let first = &entries(&report)[10];
        assert_eq!(first["syncRevision"], REVISION);
        let message = first["conditions"][0]["message"].as_str().expect("a message");
        assert!(
            message.len() <= 128 && message.starts_with("no space") && message.ends_with('…'),
            "{message}"
        );
        let details = |entry: &Value| entry["syncRevision"] == REVISION;
        assert_eq!(count(&report, details), 500 + (4_500 - 3_862));
        let (all_ill, cut) = self::report(&self::lines(5_000, |_| ("Degraded", &ill)));
        assert_eq!(
            (entries(&all_ill).len(), &*cut),
            (
                5_000,
                "report truncated: 1287 messages shortened; 5000 entries without details; the summary counts all"
            )
        );
    }

    #[test]
    fn leaves_out_the_healthiest_entries() {
        let long = "x".repeat(300);
        let message = [&*long];
        // The numbers of the first healthy entry with a message, of the first progressing one, and of the first degraded one.
        for [warned, progressing, degraded] in [
            [9_000, 9_000, 9_000],
            [8_900, 9_000, 9_000],
            [7_000, 7_000, 7_000],
            [5_000, 5_000, 7_000],
            [500, 500, 5_000],
            [0, 0, 0],
        ] {
            let lines = lines(9_000, |n| match n {
                n if n < warned => ("Healthy", &[][..]),
                n if n < progressing => ("Healthy", &message[..]),
                n if n < degraded => ("Progressing", &message[..]),
                _ => ("Degraded", &message[..]),
            });
            let (report, cut) = report(&lines);
            let shown: Vec<_> = entries(&report)
                .iter()
                .filter_map(|entry| entry["cluster"].as_str())
                .collect();
            assert!((2_500..9_000).contains(&shown.len()), "{}", shown.len());
            assert!(shown.is_sorted());
            assert_eq!(
                report["statuses"]["summary"]["clusters"], "9000",
                "the summary counts all"
            );
            let mut room = shown.len();
            for range in [degraded..9_000, progressing..degraded, warned..progressing, 0..warned] {
                let clusters = &CLUSTERS[range];
                let is_in_range =
                    |cluster: &&&str| clusters.binary_search_by(|other| other.as_str().cmp(cluster)).is_ok();
                let expected = clusters.len().min(room);
                assert_eq!(shown.iter().filter(is_in_range).count(), expected, "{cut}");
                room -= expected;
            }
            let (left_out, ill) = (9_000 - shown.len(), (9_000 - progressing).saturating_sub(shown.len()));
            let ill_left = if ill > 0 {
                format!(", {ill} of them not healthy")
            } else {
                String::new()
            };
            let end = format!("; {left_out} entries left out{ill_left}; the summary counts all");
            assert!(cut.ends_with(&end), "{cut}");
        }
    }

    #[test]
    fn measures_escaped_messages_and_cuts_at_characters() {
        let angles = "<".repeat(200);
        let messages = [&*angles];
        let lines = lines(1_000, |_| ("Degraded", &messages));
        let (escaped, cut) = report(&lines);
        let text = escaped.to_string();
        let stored = text.len() + 5 * text.matches('<').count();
        assert!(stored < MIB, "{stored}");
        assert!(cut.contains("1000 messages shortened"), "{cut}");
        for text in ["ä", "€", "𝄞", "x"] {
            let text = text.repeat(200);
            let short = shortened(&text, 64);
            assert!(short.len() <= 64 && short.len() > 60, "{short}");
            assert!(text.starts_with(short.trim_end_matches('…')));
        }
        assert_eq!(shortened("exactly", 7), "exactly");
    }

    #[test]
    fn truncates_the_list_of_resources() {
        let resources: Vec<_> = (0..5_000)
            .map(|n| Resource {
                name: format!("web-{n:05}").into(),
                kind: "Deployment".into(),
                namespace: "shop".into(),
                api_version: "apps/v1".into(),
            })
            .collect();
        let with = Line {
            resources: vec![&resources],
            ..line(0, "Healthy", &[])
        };
        let (report, cut) = report(&[with]);
        let shown = report["statuses"]["resources"].as_array().expect("some").len();
        assert!(shown > 2_000, "{shown}");
        assert_eq!(
            report["statuses"]["resources"][shown - 1]["name"],
            format!("web-{:05}", shown - 1)
        );
        assert_eq!(
            cut,
            format!(
                "report truncated: {} resources left out; the summary counts all",
                5_000 - shown
            )
        );
    }
}
