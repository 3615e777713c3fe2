//! The state of the add-on of one cluster, as OCM reports it.

use crate::state::{condition, is_good};
use jiff::Timestamp;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agent<'a> {
    pub(crate) is_available: bool,
    /// The template that OCM is applying or has applied there.
    pub(crate) assigned: Option<&'a str>,
    /// The template that is applied there.
    pub(crate) applied: Option<&'a str>,
    /// The time when OCM last started or finished applying a template there.
    pub(crate) changed: Option<Timestamp>,
    /// True if the add-on is available: the agent is ready, so it is connected. The template allows no second Pod beside the first,
    /// so the previous Pod counts only until OCM notices its end.
    pub(crate) is_healthy: bool,
    /// The time since when it is healthy or not.
    pub(crate) since: Option<Timestamp>,
}

/// Returns the reference to the AddOnTemplate in OCM's status of an add-on, or `Null` if there is none.
pub(crate) fn template_reference(status: &Value) -> &Value {
    let mut references = status["configReferences"].as_array().into_iter().flatten();
    let template = references.find(|reference| reference["resource"] == "addontemplates");
    template.unwrap_or(&Value::Null)
}

impl<'a> Agent<'a> {
    /// Reads a ManagedClusterAddOn; a missing one is unhealthy.
    pub(crate) fn from_addon(addon: Option<&'a Value>, is_available: bool) -> Self {
        let addon = addon.unwrap_or(&Value::Null);
        let template = template_reference(&addon["status"]);
        let (desired, applied) = (&template["desiredConfig"], &template["lastAppliedConfig"]);
        let since = |kind: &str| {
            let at = condition(addon, kind)["lastTransitionTime"].as_str()?;
            at.parse::<Timestamp>().ok()
        };
        let good = ["Available", "Degraded", "ManifestApplied"].map(|kind| (is_good(addon, kind), since(kind)));
        let is_healthy = good.iter().all(|(is_good, _)| *is_good);
        let bad = good.iter().filter(|(is_good, _)| !is_good);
        Self {
            is_available,
            assigned: desired["name"].as_str(),
            applied: applied["name"].as_str().filter(|_| applied == desired),
            changed: since("Progressing"),
            is_healthy,
            since: if is_healthy {
                good.iter().filter_map(|(_, at)| *at).max()
            } else {
                bad.filter_map(|(_, at)| *at).min()
            },
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
            is_healthy: true,
            since: second(5),
        };
        assert_eq!(Agent::from_addon(Some(&addon1), true), well);
        let addon2 = addon("old", &good);
        assert_eq!(Agent::from_addon(Some(&addon2), true), Agent { applied: None, ..well });
        for (available, degraded, applied, since) in [
            ("False", "False", "False", 3),
            ("False", "False", "True", 5),
            ("True", "True", "True", 6),
            ("Unknown", "False", "True", 5),
        ] {
            let conditions = [
                ("Available", available, 5),
                ("Degraded", degraded, 6),
                ("ManifestApplied", applied, 3),
            ];
            let addon = addon("new", &conditions);
            let ill = Agent::from_addon(Some(&addon), true);
            assert_eq!((ill.is_healthy, ill.since), (false, second(since)), "{conditions:?}");
        }
        let unreported = addon("new", &[]);
        for none in [Some(&unreported), None] {
            let ill = Agent::from_addon(none, false);
            assert_eq!((ill.is_healthy, ill.since, ill.changed), (false, None, None));
        }
        assert_eq!(Agent::from_addon(None, false).assigned, None);
    }
}
