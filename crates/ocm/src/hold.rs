//! Holds: managed clusters whose works stay unchanged for a time.
//!
//! A hold is a label and annotations of the cluster's namespace on the hub, which its agent cannot write. The admission policy in
//! `deploy/holds.yaml` reads them, and refuses changes of the works there.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The label of a namespace whose cluster is on hold.
pub const LABEL: &str = "argocd-ocm-cmp.github.io/hold";
/// The value of the label for a hold with an end.
const UNTIL_TIME: &str = "until-time";
/// The annotation with the end.
const UNTIL: &str = "argocd-ocm-cmp.github.io/hold-until";
/// The annotation with the reason.
const REASON: &str = "argocd-ocm-cmp.github.io/hold-reason";

/// Returns the time of the last renewal of a Lease. The policy compares the end of a hold with that of the controller's.
pub fn renewed_at(lease: &Value) -> Option<Timestamp> {
    lease["spec"]["renewTime"].as_str()?.parse().ok()
}

/// Returns the time at which the policy ends holds. Without the controller's Lease, or its time, it ends none.
pub fn policy_time(lease: Option<&Value>) -> Timestamp {
    lease.and_then(renewed_at).unwrap_or(Timestamp::MIN)
}

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
    /// Reads the hold in a namespace, if there is one. As for the policy, any value of the label is a hold, and only one has an end.
    pub fn from_namespace(namespace: &Value) -> Option<Self> {
        let metadata = &namespace["metadata"];
        let has_end = metadata["labels"].get(LABEL)? == UNTIL_TIME;
        let annotation = |key| Some(metadata["annotations"].get(key)?.as_str()?.to_owned());
        Some(Self {
            cluster: metadata["name"].as_str()?.to_owned(),
            until: annotation(UNTIL).filter(|until| has_end && !until.is_empty()),
            reason: annotation(REASON).filter(|reason| !reason.is_empty()),
        })
    }

    /// Returns the merge patch of the namespace that begins the hold, or replaces another one.
    pub fn patch(&self) -> Value {
        // Each value has its own binding of the policy.
        let value = self.until.as_ref().map_or("until-released", |_| UNTIL_TIME);
        json!({"metadata": {"labels": {LABEL: value}, "annotations": {UNTIL: self.until, REASON: self.reason}}})
    }

    /// Returns the merge patch of the namespace that ends a hold.
    pub fn release() -> Value {
        json!({"metadata": {"labels": {LABEL: null}, "annotations": {UNTIL: null, REASON: null}}})
    }

    /// Returns the time at which the hold ends by itself; `None` if the policy cannot read it, so that the hold lasts.
    pub fn end(&self) -> Option<Timestamp> {
        let until = self.until.as_ref().filter(|until| is_read_by_policy(until))?;
        until.parse().ok()
    }

    /// Returns true if the hold has ended by itself.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.end().is_some_and(|end| end <= now)
    }

    /// Describes the hold: `managed cluster eu1 is on hold until 2026-12-01T06:00:00Z: storage migration`.
    pub fn describe(&self) -> String {
        format!("managed cluster {} is {}", self.cluster, self.state())
    }

    /// Describes the state of the cluster: `on hold until 2026-12-01T06:00:00Z: storage migration`.
    pub fn state(&self) -> String {
        let until = self
            .until
            .as_ref()
            .map_or(String::new(), |until| format!(" until {until}"));
        let reason = self
            .reason
            .as_ref()
            .map_or(String::new(), |reason| format!(": {reason}"));
        format!("on hold{until}{reason}")
    }
}

/// Returns true if a time has the only form that CEL's `timestamp` reads. [`Timestamp`] reads others, such as one without seconds.
fn is_read_by_policy(time: &str) -> bool {
    let form = time.replace(|char: char| char.is_ascii_digit(), "0");
    let rest = form.strip_prefix("0000-00-00T00:00:00");
    let fraction = rest.and_then(|rest| {
        ["Z", "+00:00", "-00:00"]
            .iter()
            .find_map(|zone| rest.strip_suffix(zone))
    });
    fraction.is_some_and(|fraction| fraction.is_empty() || fraction.len() > 1 && fraction.trim_end_matches('0') == ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of Go's `time.Parse` with `time.RFC3339`.
    #[test]
    fn hold_ends_only_at_a_time_that_the_policy_reads() {
        for (until, is_time) in [
            ("2026-12-01T06:00:00Z", true),
            ("2026-12-01T06:00:00.5+01:00", true),
            ("2026-12-01T06:00Z", false),
            ("2026-12-01 06:00:00Z", false),
            ("2026-12-01T06:00:00+01", false),
            ("2026-12-01T06:00:00z", false),
            ("2026-12-01T06:00:00.Z", false),
            ("2026-13-01T06:00:00Z", false),
        ] {
            let hold = Hold {
                cluster: "eu1".to_owned(),
                until: Some(until.to_owned()),
                reason: None,
            };
            assert_eq!(hold.is_over(Timestamp::MAX), is_time, "{until}");
        }
    }

    #[test]
    fn patch_is_read_again() {
        for (until, reason) in [(None, None), (Some("2026-12-01T06:00:00Z"), Some("storage migration"))] {
            let hold = Hold {
                cluster: "eu1".to_owned(),
                until: until.map(str::to_owned),
                reason: reason.map(str::to_owned),
            };
            let mut namespace = hold.patch();
            namespace["metadata"]["name"] = "eu1".into();
            assert_eq!(Hold::from_namespace(&namespace), Some(hold));
        }
        assert_eq!(
            Hold::from_namespace(&json!({"metadata": {"name": "eu1", "annotations": {REASON: "old"}}})),
            None
        );
    }
}
