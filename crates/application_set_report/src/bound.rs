//! Reduces a report that is too large, and describes what was dropped: long texts first, then healthy Applications.
//!
//! The summary is always complete, and no unhealthy Application is dropped before a healthy one.

use super::line::{Condition, Line};
use hub_state::report::{ConditionEntry, Entry, Resource, ResourceEntry};
use manifest::text::shortened;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The maximum size in bytes of entries and resources as the API server stores them. The API server limits an object to 1.5 MiB
/// including metadata, and others may write to the object as well.
const MAX_SIZE: usize = 1_000_000;

/// The maximum size in bytes of the resources, out of the space for entries and resources.
const MAX_RESOURCES_SIZE: usize = 200_000;

/// The content of a report after dropping what does not fit.
pub(super) struct Bounded<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    pub(super) resources: Vec<ResourceEntry<'a>>,
    /// The description of what was dropped.
    pub(super) cut: Option<String>,
}

/// The priority of a line; the first in this order get space first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// An unhealthy line, or one of unknown health.
    Unhealthy,
    /// A progressing line.
    Progressing,
    /// A healthy line with conditions.
    Warning,
    /// A healthy line without conditions.
    Healthy,
}

impl Priority {
    fn of(line: &Line<'_>) -> Self {
        if line.is_progressing() {
            Self::Progressing
        } else if !line.is_healthy() {
            Self::Unhealthy
        } else if line.is_synced() && line.conditions.is_empty() {
            Self::Healthy
        } else {
            Self::Warning
        }
    }
}

/// The level of detail of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The whole line, with each message cut to this number of bytes.
    Full(usize),
    /// The line without operation and revision, with each message cut to this number of bytes.
    Short(usize),
    /// The Application with its health and sync status only.
    Minimal,
}

impl Detail {
    fn entry<'a>(self, line: &'a Line<'a>) -> Entry<'a> {
        let detail = |text: &'a str| match self {
            Self::Full(_) => text.into(),
            Self::Short(_) | Self::Minimal => "".into(),
        };
        let conditions: &[_] = if self == Self::Minimal { &[] } else { &line.conditions };
        let conditions = conditions.iter().map(|condition| ConditionEntry {
            message: shortened(condition.message, self.message_max()),
            kind: condition.kind.into(),
        });
        Entry {
            app: line.app.as_str().into(),
            cluster: line.cluster.into(),
            conditions: conditions.collect(),
            health_status: known(line.health).into(),
            operation_state_phase: detail(line.phase),
            operation_state_started_at: detail(line.started_at),
            sync_revision: detail(line.revision),
            sync_status: known(line.sync).into(),
        }
    }

    fn message_max(self) -> usize {
        match self {
            Self::Full(max) | Self::Short(max) => max,
            Self::Minimal => 0,
        }
    }

    /// Returns the number of truncated messages of a line.
    fn cuts(self, line: &Line<'_>) -> usize {
        let is_cut = |condition: &&Condition<'_>| self != Self::Minimal && condition.message.len() > self.message_max();
        line.conditions.iter().filter(is_cut).count()
    }

    /// Returns true if the line lacks more than parts of messages.
    fn hides(self, line: &Line<'_>) -> bool {
        let has_details = [line.phase, line.started_at, line.revision]
            .iter()
            .any(|text| !text.is_empty());
        match self {
            Self::Full(_) => false,
            Self::Short(_) => has_details,
            Self::Minimal => has_details || !line.conditions.is_empty(),
        }
    }
}

/// The order in which lines get space: ranges of priorities, each with a level of detail. Later steps use the space that is left.
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

/// The whole line.
const FULL: Detail = Detail::Full(usize::MAX);

/// A line with its level of detail; `None` if it is dropped.
struct Shown<'a> {
    priority: Priority,
    line: &'a Line<'a>,
    detail: Option<Detail>,
    size: usize,
}

/// Returns the entries and resources that fit, in their order, and a description of what was dropped.
pub(super) fn fit<'a>(resources: &BTreeSet<&'a Resource>, lines: &[&'a Line<'a>]) -> Bounded<'a> {
    let (shown_resources, used) = fitting_resources(resources);
    let lines = assign_detail(lines, MAX_SIZE.saturating_sub(used));
    let shown = || {
        lines
            .iter()
            .filter_map(|candidate| Some((candidate.detail?, candidate.line)))
    };
    let left_out = || lines.iter().filter(|candidate| candidate.detail.is_none());
    Bounded {
        cut: describe(&Cut {
            messages: shown().map(|(detail, line)| detail.cuts(line)).sum(),
            hidden: shown().filter(|(detail, line)| detail.hides(line)).count(),
            left_out: left_out().count(),
            left_out_unhealthy: left_out().filter(|candidate| !candidate.line.is_healthy()).count(),
            resources: resources.len().saturating_sub(shown_resources.len()),
        }),
        entries: shown().map(|(detail, line)| detail.entry(line)).collect(),
        resources: shown_resources,
    }
}

/// Assigns each line a level of detail within the given space.
fn assign_detail<'a>(lines: &[&'a Line<'a>], mut room: usize) -> Vec<Shown<'a>> {
    let whole = |line: &&'a Line<'a>| Shown {
        priority: Priority::of(line),
        line,
        detail: Some(FULL),
        size: size(&FULL.entry(line)),
    };
    let mut lines: Vec<_> = lines.iter().map(whole).collect();
    if lines.iter().map(|candidate| candidate.size).sum::<usize>() <= room {
        return lines;
    }
    for candidate in &mut lines {
        (candidate.detail, candidate.size) = (None, 0);
    }
    let mut by_priority: Vec<_> = lines.iter_mut().collect();
    by_priority.sort_by_key(|candidate| candidate.priority);
    for (from, to, detail) in DETAIL_STEPS {
        for candidate in by_priority
            .iter_mut()
            .filter(|candidate| (from..=to).contains(&candidate.priority))
        {
            let size = size(&detail.entry(candidate.line));
            let Some(left) = room.saturating_add(candidate.size).checked_sub(size) else {
                return lines;
            };
            room = left;
            (candidate.detail, candidate.size) = (Some(detail), size);
        }
    }
    lines
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

/// The counts of what was dropped.
struct Cut {
    messages: usize,
    /// The number of lines of which only a part is shown.
    hidden: usize,
    left_out: usize,
    left_out_unhealthy: usize,
    resources: usize,
}

/// Describes what was dropped, in one sentence.
fn describe(cut: &Cut) -> Option<String> {
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {more}")),
    };
    let messages = counted(cut.messages, "message", "messages");
    let hidden = counted(cut.hidden, "entry", "entries");
    let left_out = counted(cut.left_out, "entry", "entries");
    let unhealthy = match cut.left_out_unhealthy {
        0 => String::new(),
        count => format!(", {count} of them not healthy"),
    };
    let resources = counted(cut.resources, "resource", "resources");
    let parts = [
        messages.map(|what| format!("{what} shortened")),
        hidden.map(|what| format!("{what} without details")),
        left_out.map(|what| format!("{what} left out{unhealthy}")),
        resources.map(|what| format!("{what} left out")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("report truncated: {}; the summary counts all", parts.join("; ")))
}

/// Returns the text, or `Unknown` if it is empty.
fn known(text: &str) -> &str {
    if text.is_empty() { "Unknown" } else { text }
}

/// Returns the size in bytes of a value as the API server stores it, with a comma. The API server writes some characters as
/// `\u003c` that take one or three bytes here.
fn size(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let longer = bytes.iter().map(|byte| match byte {
                b'<' | b'>' | b'&' => 6,
                // The first byte of U+2028, among others.
                0xe2 => 4,
                _ => 1,
            });
            self.0 = self.0.saturating_add(longer.sum::<usize>());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(1);
    serde_json::to_writer(&mut counter, value).expect("texts and lists of them are JSON");
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Report, app};
    use primitives::object_ref::ObjectRef;
    use serde_json::Value;
    use std::sync::LazyLock;

    const MIB: usize = 1 << 20;

    static CLUSTERS: LazyLock<Vec<String>> =
        LazyLock::new(|| (0..20_000).map(|number| format!("cluster-{number:05}")).collect());

    /// Returns a line of an Application on the cluster of this number.
    fn line<'a>(number: usize, health: &'a str, messages: &[&'a str]) -> Line<'a> {
        let cluster = CLUSTERS[number].as_str();
        let name = format!("shop-{cluster}");
        let condition = |message: &&'a str| Condition {
            kind: "ManifestWorkDegradedWarning",
            message,
        };
        Line {
            app: app("argocd", &name, Some((cluster, &format!("{name}-1a2b3")))),
            cluster,
            sync: "Synced",
            health,
            started_at: "2026-06-01T12:00:00Z",
            phase: "Succeeded",
            revision: "53e28ff20cc530b9ada2173fbbd64d48338583ba",
            conditions: messages.iter().map(condition).collect(),
            resources: Vec::new(),
        }
    }

    /// Returns the report as stored, and the description of what was dropped.
    fn report(lines: &[Line<'_>]) -> (Value, String) {
        let set = ObjectRef::new("argocd", "shop");
        let report = Report::new(&set, "9b1c8a3e-0d5f-4a51-9b5e-6d0c1f1f2a3b", lines);
        let (object, cut) = (report.object(), report.cut().unwrap_or_default().to_owned());
        assert!(object.to_string().len() < MIB, "{}", object.to_string().len());
        assert_eq!(
            object["metadata"]["annotations"][super::super::TRUNCATED]
                .as_str()
                .unwrap_or_default(),
            cut
        );
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
        assert_eq!(entries(&report)[0]["syncRevision"], lines[0].revision);
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
        let ill = &entries(&report)[10];
        assert_eq!(ill["syncRevision"], lines[10].revision);
        let message = ill["conditions"][0]["message"].as_str().expect("a message");
        assert!(
            message.len() <= 128 && message.starts_with("no space") && message.ends_with('…'),
            "{message}"
        );
        let details = |entry: &Value| entry["syncRevision"] == lines[0].revision;
        assert_eq!(count(&report, details), 500 + (4_500 - 3_862));
    }

    #[test]
    fn report_of_5000_degraded_clusters_lists_every_cluster() {
        let long = "no space left on device ".repeat(20);
        let ill = [&*long];
        let lines = lines(5_000, |_| ("Degraded", &ill));
        let (report, cut) = report(&lines);
        assert_eq!(
            cut,
            "report truncated: 1287 messages shortened; 5000 entries without details; the summary counts all"
        );
        assert_eq!(entries(&report).len(), 5_000);
    }

    #[test]
    fn report_of_20000_clusters_lists_unhealthy_ones_first() {
        let health = |n: usize| match n % 100 {
            0 => "Degraded",
            1 => "Progressing",
            2 => "",
            _ => "Healthy",
        };
        let message = ["no space left on device"];
        let lines = lines(20_000, |n| (health(n), if n % 50 == 0 { &message[..] } else { &[] }));
        let (report, cut) = report(&lines);
        assert_eq!(count(&report, |entry| !is_healthy(entry)), 600);
        assert_eq!(
            count(&report, |entry| entry["conditions"][0]["message"] == message[0]),
            200
        );
        let shown = entries(&report).len();
        assert!(shown > 6_000, "{shown}");
        let left_out = 20_000 - shown;
        let end = "the summary counts all";
        assert_eq!(
            cut,
            format!("report truncated: {shown} entries without details; {left_out} entries left out; {end}")
        );
        let clusters: Vec<_> = entries(&report).iter().map(|entry| entry["cluster"].as_str()).collect();
        assert!(clusters.is_sorted());
        let summary = &report["statuses"]["summary"];
        let counted = ["clusters", "healthy", "notHealthy", "inProgress", "synced"].map(|key| summary[key].as_str());
        assert_eq!(counted, ["20000", "19400", "600", "200", "20000"].map(Some));
    }

    #[test]
    fn report_of_20000_clusters_keeps_the_least_healthy() {
        let health = |n: usize| match n {
            0..8_000 => "Healthy",
            8_000..16_000 => "Progressing",
            _ => "Degraded",
        };
        let lines = lines(20_000, |n| (health(n), &["message"]));
        let (report, cut) = report(&lines);
        assert_eq!(
            (
                count(&report, is_healthy),
                count(&report, |entry| entry["healthStatus"] == "Degraded")
            ),
            (0, 4_000)
        );
        let (shown, first) = (entries(&report).len(), &entries(&report)[0]);
        assert!(shown > 5_000, "{shown}");
        assert_eq!(first["cluster"], "cluster-08000");
        let (left_out, ill) = (20_000 - shown, 12_000 - shown);
        assert!(
            cut.contains(&format!("; {left_out} entries left out, {ill} of them not healthy;")),
            "{cut}"
        );
    }

    #[test]
    fn truncated_report_prefers_healthy_entries_with_messages() {
        let lines = lines(9_000, |n| ("Healthy", if n < 8_900 { &[][..] } else { &["message"] }));
        let (report, _) = report(&lines);
        assert!(entries(&report).len() < 8_000);
        let last = entries(&report).iter().rev().take(100);
        assert!(
            last.map(|entry| &entry["cluster"])
                .eq(CLUSTERS[8_900..9_000].iter().rev())
        );
    }

    #[test]
    fn more_unhealthy_entries_displace_only_healthy_ones() {
        // One more unhealthy line displaces healthy lines, never unhealthy ones.
        let long = "x".repeat(300);
        let long = [&*long];
        for ill in [0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 9_000] {
            let lines = lines(9_000, |n| {
                if n < ill {
                    ("Degraded", &long[..])
                } else {
                    ("Healthy", &[])
                }
            });
            let (report, _) = report(&lines);
            let shown = count(&report, |entry| !is_healthy(entry));
            assert!(shown == ill || count(&report, is_healthy) == 0, "{shown} of {ill}");
            assert!(entries(&report).len() > 2_500, "{ill}");
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
