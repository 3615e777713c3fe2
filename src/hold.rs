//! The list of holds, and their end on the command line.

use crate::list::List;
use crate::table;
use hub_state::json::without_empty;
use jiff::{SignedDuration, Timestamp, Unit};
use ocm::duration;
use ocm::hold::Hold;
use primitives::time_math;
use serde_json::{Value, json};
use std::time::Duration;

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
    /// The time of the policy that ends holds: that of the last renewal of the controller's Lease.
    pub policy_time: Timestamp,
}

impl Holds {
    /// Returns the remaining time of a hold for people.
    fn left(&self, hold: &Hold) -> String {
        if hold.until.is_none() {
            return "until released".to_owned();
        }
        match hold.end() {
            Some(end) if end <= self.policy_time => "over".to_owned(),
            Some(end) => {
                let left = time_math::until(end, self.now);
                duration::format(Duration::from_secs(left.as_secs()))
            }
            None => "not a time".to_owned(),
        }
    }
}

impl List for Holds {
    fn table(&self, _: bool, _: bool) -> String {
        if self.all.is_empty() {
            return "no managed cluster is on hold\n".to_owned();
        }
        let rows = self.all.iter().map(|hold| {
            [
                hold.cluster.clone(),
                hold.until.clone().unwrap_or_default(),
                self.left(hold),
                hold.reason.clone().unwrap_or_default(),
            ]
        });
        table::lines(&["CLUSTER", "UNTIL", "LEFT", "REASON"], rows)
    }

    fn to_json(&self) -> Value {
        let hold = |hold: &Hold| {
            let over = hold.is_over(self.policy_time);
            without_empty(json!({"cluster": hold.cluster, "until": hold.until, "reason": hold.reason, "over": over}))
        };
        self.all.iter().map(hold).collect()
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
        let mut holds = Holds {
            all: vec![
                hold(None, Some("audit")),
                hold(Some("2026-12-01T06:00:00Z"), None),
                hold(Some("2026-11-30T21:00:00Z"), Some("storage migration")),
            ],
            now: now(),
            policy_time: now(),
        };
        assert_eq!(
            holds.table(false, false),
            "CLUSTER   UNTIL                  LEFT             REASON\n\
             eu1                              until released   audit\n\
             eu1       2026-12-01T06:00:00Z   8h\n\
             eu1       2026-11-30T21:00:00Z   over             storage migration\n"
        );
        assert_eq!(
            holds.all[2].describe(),
            "managed cluster eu1 is on hold until 2026-11-30T21:00:00Z: storage migration"
        );
        // No controller renews the Lease, so the policy still enforces it.
        holds.policy_time = "2026-11-30T20:00:00Z".parse().expect("a time");
        assert!(
            holds.table(false, false).contains("21:00:00Z   0s"),
            "{}",
            holds.table(false, false)
        );
    }
}
