//! The rollout strategy: the pace at which a new version is rolled out.

use jiff::SignedDuration;
use ocm::duration;
use serde_json::Value;

/// OCM's `rolloutStrategy`, as far as it is implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Updates all clusters at once.
    All,
    /// Updates some clusters at a time.
    Progressive(Limits),
}

/// The limits of a progressive rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of clusters that change at a time; at least one.
    pub at_a_time: Share,
    /// The maximum number of failed clusters before the rollout stops.
    pub failures: Share,
    /// The minimum time that a cluster must be healthy.
    pub success: SignedDuration,
    /// The time after which an unhealthy cluster counts as failed, if set.
    pub deadline: Option<SignedDuration>,
}

/// A number or a percentage of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A number of clusters.
    Number(usize),
    /// A percentage of all clusters, rounded up as in OCM (`calculateRolloutSize`).
    Percent(usize),
}

/// The concurrency of OCM's type ProgressivePerGroup if none is set: it follows the groups of the user's Placement, which our
/// PlacementDecisions do not have.
const PER_GROUP: Share = Share::Percent(10);

impl Share {
    /// Returns the number of clusters that this is of the given total.
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
    /// Parses a `rolloutStrategy`. `None` is [`Strategy::All`]. Replaces invalid values, which our CRD rejects, by the most
    /// careful ones: one cluster at a time, no failures.
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
        let time = |key: &str| SignedDuration::try_from(duration::parse(part[key].as_str()?).ok()?).ok();
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
