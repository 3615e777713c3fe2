//! How fast another version may go through a fleet.

use crate::generate::settings::duration;
use k8s_openapi::jiff::SignedDuration;
use serde_json::Value;

/// OCM's `rolloutStrategy`, as far as it is followed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// To all clusters at once.
    All,
    /// To some at a time.
    Progressive(Limits),
}

/// How far a rollout goes before it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many clusters may change at a time; one at least.
    pub at_a_time: Share,
    /// How many clusters may fail before no other one changes.
    pub failures: Share,
    /// How long a cluster has to fare well.
    pub success: SignedDuration,
    /// After how long a cluster that does not fare well has failed, if that is said.
    pub deadline: Option<SignedDuration>,
}

/// How many of all clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many.
    Number(usize),
    /// So many of a hundred, rounded up, as OCM does (`calculateRolloutSize`).
    Percent(usize),
}

/// What goes at a time where that cannot be said: OCM's type ProgressivePerGroup goes by the groups of the user's Placement, which
/// our decisions do not have.
const PER_GROUP: Share = Share::Percent(10);

impl Share {
    /// How many that are of so many clusters.
    #[must_use]
    pub fn of(self, clusters: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => percent.saturating_mul(clusters).div_ceil(100),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(usize::try_from(number.as_u64()?).ok()?)),
            Value::String(text) => {
                let percent = text.strip_suffix('%')?.parse().ok()?;
                (percent <= 100).then_some(Self::Percent(percent))
            }
            _ => None,
        }
    }
}

impl Strategy {
    /// Reads a `rolloutStrategy`. Nothing said is [`Strategy::All`]. What cannot be read, which our CRD lets nobody write, is what is
    /// the most careful: one at a time, no failure.
    #[must_use]
    pub fn read(strategy: Option<&Value>) -> Self {
        let Some(strategy) = strategy else {
            return Self::All;
        };
        let (part, default) = match strategy["type"].as_str() {
            None | Some("All") => return Self::All,
            Some("ProgressivePerGroup") => (&strategy["progressivePerGroup"], PER_GROUP),
            Some(_) => (&strategy["progressive"], Share::Number(1)),
        };
        let time = |key: &str| SignedDuration::try_from(duration(part[key].as_str()?).ok()?).ok();
        Self::Progressive(Limits {
            at_a_time: Share::read(&part["maxConcurrency"]).unwrap_or(default),
            failures: Share::read(&part["maxFailures"]).unwrap_or(Share::Number(0)),
            success: time("minSuccessTime").unwrap_or_default(),
            deadline: time("progressDeadline"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_strategy_is_read_as_the_crd_takes_it() {
        assert_eq!(Strategy::read(None), Strategy::All);
        assert_eq!(Strategy::read(Some(&json!({"type": "All"}))), Strategy::All);
        let careful = Limits {
            at_a_time: Share::Number(1),
            failures: Share::Number(0),
            success: SignedDuration::ZERO,
            deadline: None,
        };
        let all = json!({
            "maxConcurrency": "10%", "maxFailures": 2, "minSuccessTime": "90s", "progressDeadline": "2h",
        });
        let read = Limits {
            at_a_time: Share::Percent(10),
            failures: Share::Number(2),
            success: SignedDuration::from_secs(90),
            deadline: Some(SignedDuration::from_hours(2)),
        };
        let per_group = Limits {
            at_a_time: PER_GROUP,
            deadline: Some(SignedDuration::from_mins(5)),
            ..careful
        };
        for (strategy, expected) in [
            (json!({"type": "Progressive", "progressive": all}), read),
            (json!({"type": "Progressive"}), careful),
            (
                json!({"type": "Progressive", "progressive": {"maxConcurrency": "many", "progressDeadline": "None"}}),
                careful,
            ),
            (
                json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"progressDeadline": "5m"}}),
                per_group,
            ),
        ] {
            assert_eq!(
                Strategy::read(Some(&strategy)),
                Strategy::Progressive(expected),
                "{strategy}"
            );
        }
    }

    #[test]
    fn a_part_of_a_cluster_is_a_cluster() {
        assert_eq!(Share::Percent(10).of(200), 20);
        assert_eq!(Share::Percent(10).of(5), 1);
        assert_eq!(Share::Percent(0).of(5), 0);
        assert_eq!(Share::Number(7).of(5), 7);
    }
}
