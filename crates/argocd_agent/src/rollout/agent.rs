//! The state of the add-on of one cluster, as OCM reports it.

use crate::state::{condition, is_good};
use jiff::Timestamp;
use serde_json::Value;

/// The add-on of a managed cluster, as seen from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent<'a> {
    /// True if the cluster is reachable.
    pub is_available: bool,
    /// The template that OCM is applying or has applied there.
    pub assigned: Option<&'a str>,
    /// The template that is applied there.
    pub applied: Option<&'a str>,
    /// The time when OCM last started or finished applying a template there.
    pub changed: Option<Timestamp>,
    /// The health of the add-on.
    pub health: Health,
}

/// The health of an add-on, and the time since which it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Available: the agent is ready, so it is connected. The template allows no second Pod beside the first, so the previous Pod
    /// counts only until OCM notices its end.
    Healthy(Option<Timestamp>),
    /// Not available.
    Unhealthy(Option<Timestamp>),
}

impl<'a> Agent<'a> {
    /// Reads a ManagedClusterAddOn; a missing one is unhealthy.
    pub fn from_addon(addon: Option<&'a Value>, is_available: bool) -> Self {
        let addon = addon.unwrap_or(&Value::Null);
        let mut references = addon["status"]["configReferences"].as_array().into_iter().flatten();
        let template = references.find(|reference| reference["resource"] == "addontemplates");
        let template = template.unwrap_or(&Value::Null);
        let (desired, applied) = (&template["desiredConfig"], &template["lastAppliedConfig"]);
        let since = |kind: &str| {
            let at = condition(addon, kind)["lastTransitionTime"].as_str()?;
            at.parse::<Timestamp>().ok()
        };
        let good = ["Available", "Degraded", "ManifestApplied"].map(|kind| (is_good(addon, kind), since(kind)));
        let latest = |expected: bool| {
            good.iter()
                .filter(move |(is_good, _)| *is_good == expected)
                .filter_map(|(_, at)| *at)
        };
        let health = if good.iter().all(|(is_good, _)| *is_good) {
            Health::Healthy(latest(true).max())
        } else {
            Health::Unhealthy(latest(false).min())
        };
        Self {
            is_available,
            assigned: desired["name"].as_str(),
            applied: applied["name"].as_str().filter(|_| applied == desired),
            changed: since("Progressing"),
            health,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> String {
        Timestamp::from_second(second).expect("a time").to_string()
    }

    fn addon(applied: &str, conditions: &[(&str, &str, i64)]) -> Value {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status, second)| json!({"type": kind, "status": status, "lastTransitionTime": at(*second)}))
            .collect();
        json!({"status": {
            "conditions": conditions,
            "configReferences": [
                {"resource": "addondeploymentconfigs", "desiredConfig": {"name": "other"}},
                {
                    "resource": "addontemplates",
                    "desiredConfig": {"name": "new", "specHash": "1"},
                    "lastAppliedConfig": {"name": applied, "specHash": "1"},
                },
            ],
        }})
    }

    #[test]
    fn reads_since_when_an_add_on_is_healthy_or_unhealthy() {
        let second = |second| Timestamp::from_second(second).ok();
        let good = [
            ("Available", "True", 5),
            ("ManifestApplied", "True", 3),
            ("Progressing", "False", 4),
        ];
        let addon1 = addon("new", &good);
        let well = Agent {
            is_available: true,
            assigned: Some("new"),
            applied: Some("new"),
            changed: second(4),
            health: Health::Healthy(second(5)),
        };
        assert_eq!(Agent::from_addon(Some(&addon1), true), well);
        let addon2 = addon("old", &good);
        assert_eq!(Agent::from_addon(Some(&addon2), true), Agent { applied: None, ..well });
        for (conditions, since) in [
            (
                &[("Available", "False", 5), ("ManifestApplied", "False", 3)][..],
                second(3),
            ),
            (
                &[
                    ("Available", "True", 5),
                    ("ManifestApplied", "True", 3),
                    ("Degraded", "True", 6),
                ],
                second(6),
            ),
            (
                &[("Available", "Unknown", 5), ("ManifestApplied", "True", 3)],
                second(5),
            ),
            (&[], None),
        ] {
            let addon = addon("new", conditions);
            assert_eq!(
                Agent::from_addon(Some(&addon), true).health,
                Health::Unhealthy(since),
                "{conditions:?}"
            );
        }
        let none = Agent::from_addon(None, false);
        assert_eq!(
            (none.assigned, none.applied, none.health),
            (None, None, Health::Unhealthy(None))
        );
    }
}
