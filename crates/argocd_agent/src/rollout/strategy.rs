//! OCM's `rolloutStrategy`, as far as it is implemented: the pace at which a new version is rolled out.

use jiff::SignedDuration;
use ocm::duration;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The maximum number of clusters that change at a time; at least one.
    pub(crate) max_concurrency: IntOrPercent,
    /// The maximum number of failed clusters before the rollout stops.
    pub(crate) max_failures: IntOrPercent,
    pub(crate) min_success_time: SignedDuration,
    /// The time after which an unhealthy cluster counts as failed, if set.
    pub(crate) progress_deadline: Option<SignedDuration>,
}

/// A number or a percentage of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntOrPercent {
    Number(usize),
    /// Rounded up as in OCM (`calculateRolloutSize`).
    Percent(usize),
}

/// The concurrency of OCM's type ProgressivePerGroup if none is set: it follows the groups of the user's Placement, which our
/// PlacementDecisions do not have.
const DEFAULT_GROUP_CONCURRENCY: IntOrPercent = IntOrPercent::Percent(10);

impl IntOrPercent {
    pub(crate) fn resolve(self, clusters: usize) -> usize {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => percent.saturating_mul(clusters).div_ceil(100),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
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

impl Limits {
    /// Parses a `rolloutStrategy`. Returns `None` for a rollout to all clusters at once, the default. Replaces invalid values, which
    /// our CRD rejects, by the most careful ones: one cluster at a time, no failures.
    pub(crate) fn from_json(strategy: Option<&Value>) -> Option<Self> {
        let strategy = strategy?;
        let (part, default) = match strategy["type"].as_str() {
            None | Some("All") => return None,
            Some("ProgressivePerGroup") => (&strategy["progressivePerGroup"], DEFAULT_GROUP_CONCURRENCY),
            Some(_) => (&strategy["progressive"], IntOrPercent::Number(1)),
        };
        let time = |key: &str| SignedDuration::try_from(duration::parse(part[key].as_str()?).ok()?).ok();
        Some(Self {
            max_concurrency: IntOrPercent::from_json(&part["maxConcurrency"]).unwrap_or(default),
            max_failures: IntOrPercent::from_json(&part["maxFailures"]).unwrap_or(IntOrPercent::Number(0)),
            min_success_time: time("minSuccessTime").unwrap_or_default(),
            progress_deadline: time("progressDeadline"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parses_rollout_strategies_like_the_crd() {
        assert_eq!(Limits::from_json(None), None);
        assert_eq!(Limits::from_json(Some(&json!({"type": "All"}))), None);
        let careful = Limits {
            max_concurrency: IntOrPercent::Number(1),
            max_failures: IntOrPercent::Number(0),
            min_success_time: SignedDuration::ZERO,
            progress_deadline: None,
        };
        let all = json!({
            "maxConcurrency": "10%", "maxFailures": 2, "minSuccessTime": "90s", "progressDeadline": "2h",
        });
        let read = Limits {
            max_concurrency: IntOrPercent::Percent(10),
            max_failures: IntOrPercent::Number(2),
            min_success_time: SignedDuration::from_secs(90),
            progress_deadline: Some(SignedDuration::from_hours(2)),
        };
        let per_group = Limits {
            max_concurrency: DEFAULT_GROUP_CONCURRENCY,
            progress_deadline: Some(SignedDuration::from_mins(5)),
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
            assert_eq!(Limits::from_json(Some(&strategy)), Some(expected), "{strategy}");
        }
    }

    #[test]
    fn positive_percentage_is_at_least_one_cluster() {
        assert_eq!(IntOrPercent::Percent(10).resolve(200), 20);
        assert_eq!(IntOrPercent::Percent(10).resolve(5), 1);
        assert_eq!(IntOrPercent::Percent(0).resolve(5), 0);
        assert_eq!(IntOrPercent::Number(7).resolve(5), 7);
    }
}
