//! Selects the Events of the objects in a tree.

use crate::limits::EVENTS;
use manifest::text::{one_line, shortened};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The maximum length of a message, in bytes.
const MESSAGE_MAX: usize = 1_000;

/// The fields of an Event that Argo CD's pages show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectEvent {
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub level: String,
    /// The reason in one word.
    pub reason: String,
    /// The message.
    pub message: String,
    /// The number of times that it was seen.
    pub count: u64,
    /// The first time.
    pub first: String,
    /// The last time.
    pub last: String,
    /// The kind of its object.
    pub kind: String,
    /// The name of its object.
    pub name: String,
}

/// Events, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Events {
    /// The Events.
    pub events: Vec<ObjectEvent>,
    /// True if there are more.
    pub truncated: bool,
}

/// Returns the Event if it is of one of the objects with these uids.
pub fn of_objects(uids: &BTreeSet<&str>, event: &Value) -> Option<ObjectEvent> {
    let uid = event["involvedObject"]["uid"].as_str()?;
    uids.contains(uid).then(|| parse_event(event))
}

/// Returns the newest of the Events.
pub fn newest(mut events: Vec<ObjectEvent>, truncated: bool) -> Events {
    events.sort_by(|one, other| other.last.cmp(&one.last).then_with(|| one.name.cmp(&other.name)));
    let truncated = truncated || events.len() > EVENTS;
    events.truncate(EVENTS);
    Events { events, truncated }
}

fn parse_event(event: &Value) -> ObjectEvent {
    let text = |value: &Value| shortened(&one_line(value.as_str().unwrap_or_default()), MESSAGE_MAX).into_owned();
    let first_of = |values: [&Value; 3]| {
        values
            .into_iter()
            .map(text)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let (series, created) = (&event["series"], &event["metadata"]["creationTimestamp"]);
    let object = &event["involvedObject"];
    let last = [
        &series["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
    ];
    let last = first_of(last);
    ObjectEvent {
        level: text(&event["type"]),
        reason: text(&event["reason"]),
        message: text(&event["message"]),
        count: series["count"]
            .as_u64()
            .or_else(|| event["count"].as_u64())
            .unwrap_or(1)
            .max(1),
        first: first_of([&event["firstTimestamp"], &event["eventTime"], created]),
        last: if last.is_empty() { text(created) } else { last },
        kind: text(&object["kind"]),
        name: text(&object["name"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selects_events_by_the_uid_of_their_object() {
        let select = |candidates: &[Value]| {
            let events = candidates.iter().filter_map(|event| of_objects(&["1"].into(), event));
            newest(events.collect(), false)
        };
        let event = |uid: &str, last: &str| {
            json!({"involvedObject": {"kind": "Pod", "name": "web", "uid": uid}, "type": "Warning", "reason": "BackOff",
                "message": "a\u{1b}[31m", "lastTimestamp": last, "eventTime": null, "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
        };
        let mut series = event("1", "");
        series["series"] = json!({"count": 7, "lastObservedTime": "2026-01-03T00:00:00Z"});
        let nameless = json!({"involvedObject": {"kind": "Pod", "name": "web"}});
        let candidates = [
            event("1", "2026-01-02T00:00:00Z"),
            event("2", "2026-01-04T00:00:00Z"),
            series,
            nameless,
            json!(1),
        ];
        let Events { events, truncated } = select(&candidates);
        let shown: Vec<_> = events.iter().map(|event| (&*event.last, event.count)).collect();
        assert_eq!(shown, [("2026-01-03T00:00:00Z", 7), ("2026-01-02T00:00:00Z", 1)]);
        assert_eq!(
            (&*events[0].message, &*events[0].first),
            ("a [31m", "2026-01-01T00:00:00Z")
        );
        assert!(!truncated);
        let many: Vec<_> = (0..500).map(|_| event("1", "x")).collect();
        let Events { events, truncated } = select(&many);
        assert_eq!((events.len(), truncated), (EVENTS, true));
    }
}
