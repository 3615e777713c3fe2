//! Holds: managed clusters whose works stay unchanged for a time.
//!
//! A hold is a label and annotations of the cluster's namespace on the hub, which its agent cannot write. The admission policy in
//! `deploy/holds.yaml` reads them, and refuses changes of the works there.

use crate::list::List;
use crate::table;
use jiff::{SignedDuration, Timestamp, Unit};
use manifest::value::{Map, Value};
use ocm::{duration, time_math};
use serde_json::json;
use std::time::Duration;

/// The label of a namespace whose cluster is on hold.
pub const LABEL: &str = "argocd-ocm-cmp.github.io/hold";
/// The annotation with the end.
const UNTIL: &str = "argocd-ocm-cmp.github.io/hold-until";
/// The annotation with the reason.
const REASON: &str = "argocd-ocm-cmp.github.io/hold-reason";

/// A hold of a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The managed cluster.
    pub cluster: String,
    /// The end as the policy reads it, an RFC 3339 time; none if it lasts until it is released.
    pub until: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

impl Hold {
    /// Reads the hold in a namespace, if there is one.
    #[must_use]
    pub fn read(namespace: &serde_json::Value) -> Option<Self> {
        let metadata = &namespace["metadata"];
        metadata["labels"].get(LABEL)?;
        let annotation = |key| Some(metadata["annotations"].get(key)?.as_str()?.to_owned());
        Some(Self {
            cluster: metadata["name"].as_str()?.to_owned(),
            until: annotation(UNTIL).filter(|until| !until.is_empty()),
            reason: annotation(REASON).filter(|reason| !reason.is_empty()),
        })
    }

    /// Returns the merge patch of the namespace that begins the hold, or replaces another one.
    #[must_use]
    pub fn patch(&self) -> serde_json::Value {
        // Each value has its own binding of the policy.
        let value = self.until.as_ref().map_or("until-released", |_| "until-time");
        json!({"metadata": {"labels": {LABEL: value}, "annotations": {UNTIL: self.until, REASON: self.reason}}})
    }

    /// Returns the merge patch of the namespace that ends a hold.
    #[must_use]
    pub fn release() -> serde_json::Value {
        json!({"metadata": {"labels": {LABEL: null}, "annotations": {UNTIL: null, REASON: null}}})
    }

    /// Returns true if the hold has ended by itself.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let end = self.until.as_ref().and_then(|until| until.parse::<Timestamp>().ok());
        end.is_some_and(|end| end <= now)
    }

    /// Describes the hold: `managed cluster eu1 is on hold until 2026-12-01T06:00:00Z: storage migration`.
    #[must_use]
    pub fn describe(&self) -> String {
        let until = self
            .until
            .as_ref()
            .map_or(String::new(), |until| format!(" until {until}"));
        let reason = self
            .reason
            .as_ref()
            .map_or(String::new(), |reason| format!(": {reason}"));
        format!("managed cluster {} is on hold{until}{reason}", self.cluster)
    }
}

/// Parses the end of a hold: a time, or a duration from now.
///
/// # Errors
/// One line, if it is neither, or in the past.
pub fn end(text: &str, now: Timestamp) -> Result<String, String> {
    let time = match (text.parse::<Timestamp>(), duration::parse(text)) {
        (Ok(time), _) => time,
        (_, Ok(time)) => time_math::after(now, SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)),
        _ => {
            return Err(format!(
                "--until {text} is neither a time such as 2026-12-01T06:00:00Z nor a duration such as 8h"
            ));
        }
    };
    if time <= now {
        return Err(format!(
            "--until {text} is in the past: use a later time, or a duration such as 8h"
        ));
    }
    let seconds = time.round(Unit::Second).unwrap_or(time);
    Ok(seconds.to_string())
}

/// The list of all holds.
#[derive(Debug)]
pub struct Holds {
    /// The holds, by cluster.
    pub all: Vec<Hold>,
    /// The current time.
    pub now: Timestamp,
}

impl Holds {
    /// Returns the remaining time of a hold for people.
    fn left(&self, hold: &Hold) -> String {
        let Some(until) = &hold.until else {
            return "until released".to_owned();
        };
        match until.parse::<Timestamp>() {
            Ok(end) if end <= self.now => "over".to_owned(),
            Ok(end) => {
                let left = time_math::until(end, self.now);
                duration::format(Duration::from_secs(left.as_secs()))
            }
            Err(_) => "not a time".to_owned(),
        }
    }
}

impl List for Holds {
    fn table(&self, _: bool) -> String {
        if self.all.is_empty() {
            return "no managed cluster is on hold\n".to_owned();
        }
        let head = ["CLUSTER", "UNTIL", "LEFT", "REASON"].map(str::to_owned);
        let rows = self.all.iter().map(|hold| {
            [
                hold.cluster.clone(),
                hold.until.clone().unwrap_or_default(),
                self.left(hold),
                hold.reason.clone().unwrap_or_default(),
            ]
        });
        let rows: Vec<_> = [head].into_iter().chain(rows).collect();
        let widths = table::widths(rows.iter());
        rows.iter().map(|row| table::line(row, &widths, None) + "\n").collect()
    }

    fn value(&self) -> Value<'_> {
        let holds = self.all.iter().map(|hold| {
            let mut map = Map::default();
            map.insert("cluster", Value::text(hold.cluster.as_str()));
            if let Some(until) = &hold.until {
                map.insert("until", Value::text(until.as_str()));
            }
            if let Some(reason) = &hold.reason {
                map.insert("reason", Value::text(reason.as_str()));
            }
            map.insert("over", Value::Bool(hold.is_over(self.now)));
            Value::Map(map)
        });
        Value::List(holds.collect())
    }

    fn names(&self) -> Vec<String> {
        self.all.iter().map(|hold| hold.cluster.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T22:00:00Z".parse().expect("a time")
    }

    fn hold(until: Option<&str>, reason: Option<&str>) -> Hold {
        Hold {
            cluster: "eu1".to_owned(),
            until: until.map(str::to_owned),
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn patch_is_read_again() {
        for hold in [
            hold(None, None),
            hold(Some("2026-12-01T06:00:00Z"), Some("storage migration")),
        ] {
            let mut namespace = hold.patch();
            namespace["metadata"]["name"] = "eu1".into();
            assert_eq!(Hold::read(&namespace), Some(hold));
        }
        assert_eq!(
            Hold::read(&json!({"metadata": {"name": "eu1", "annotations": {REASON: "old"}}})),
            None
        );
    }

    #[test]
    fn end_is_a_time_or_a_duration() {
        assert_eq!(end("8h", now()).as_deref(), Ok("2026-12-01T06:00:00Z"));
        assert_eq!(
            end("2026-12-01T07:00:00+01:00", now()).as_deref(),
            Ok("2026-12-01T06:00:00Z")
        );
        assert!(end("2026-11-30T21:59:59Z", now()).is_err_and(|line| line.contains("in the past")));
        assert!(end("tomorrow", now()).is_err_and(|line| line.contains("neither a time")));
    }

    #[test]
    fn list_says_which_holds_are_over() {
        let holds = Holds {
            all: vec![
                hold(None, Some("audit")),
                hold(Some("2026-12-01T06:00:00Z"), None),
                hold(Some("2026-11-30T21:00:00Z"), Some("storage migration")),
            ],
            now: now(),
        };
        assert_eq!(
            holds.table(false),
            "CLUSTER   UNTIL                  LEFT             REASON\n\
             eu1                              until released   audit\n\
             eu1       2026-12-01T06:00:00Z   8h\n\
             eu1       2026-11-30T21:00:00Z   over             storage migration\n"
        );
        assert_eq!(
            holds.all.iter().map(|it| it.is_over(now())).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!(
            holds.all[2].describe(),
            "managed cluster eu1 is on hold until 2026-11-30T21:00:00Z: storage migration"
        );
    }
}
