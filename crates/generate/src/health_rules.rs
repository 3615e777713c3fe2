//! Health rules and feedback of objects: the conditions that OCM's agent sets on an applied object, and the values that it
//! reports to the hub.
//!
//! Two conditions express the health of an object in the status of its ManifestWork. OCM aggregates them into two conditions of
//! the ManifestWork:
//!
//! - `Progressing` is True until the object reaches its desired state: while Argo CD would show Progressing, Degraded or
//!   Suspended, or cannot tell. OCM sets it on the ManifestWork if any object has it, and a ManifestWorkReplicaSet considers a
//!   cluster complete only without it, so a degraded object is progressing too.
//! - `Healthy` is False if the object is degraded: when Argo CD would show Degraded. On the ManifestWork it is False if it is
//!   False on any object. The opposite condition would not aggregate that way: OCM considers a ManifestWork Degraded only if all
//!   its objects are.
//!
//! A suspended or paused object is progressing and healthy. The rules of most built-in kinds are those of [`ocm::verdicts`], which
//! the hub evaluates: their ManifestWorks have no condition rules, unless OCM rolls them out across the clusters of a placement.
//! Those of the others are gitops-engine's `pkg/health`, in the version that the testbed runs. `tests/with_argocd/health_rules.rs`
//! compares all with that Argo CD, and lists the differences and their reasons.
//!
//! In a ManifestWork the rules are in `spec.manifestConfigs`: `conditionRules` is a list with one rule per `condition`, and the
//! names of `feedbackRules[].jsonPaths` are unique. OCM's CRD limits the length of neither.

mod cel;
pub mod custom;
mod expressions;
mod rules;

use manifest::kinds::GroupKind;
use ocm::verdicts::{self, KindVerdicts};
use std::sync::LazyLock;

/// The condition that is True until an object reaches its desired state.
pub const PROGRESSING: &str = "Progressing";
/// The condition that is False if an object is degraded.
pub const HEALTHY: &str = "Healthy";
/// The condition that is True while an object waits for a user, unless its feedback says so.
pub const SUSPENDED: &str = "Suspended";

/// A condition that the agent sets on an object: one `conditionRules` entry of type `CEL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CelRule {
    /// The type of the condition.
    pub condition: &'static str,
    /// The CEL expression over `object`; yields true or false, whatever fields the object lacks.
    pub expression: &'static str,
    /// The CEL expression over `object` and `result` (the value of `expression`) that yields a message: what the object waits
    /// for, without its name. It is short enough for a condition, however long the quoted texts are. Empty if the hub has one.
    pub message: &'static str,
}

/// The configuration of the agent for the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindHealth {
    /// The conditions that the agent sets.
    pub rules: [CelRule; 2],
    /// The CEL expression of a third condition, which is True while an object that is progressing waits for a user.
    pub suspended: Option<&'static str>,
    /// The values that the agent reports, with their JSONPaths. OCM supports only strings, integers and booleans; it omits values
    /// that an object lacks.
    pub feedback: &'static [(&'static str, &'static str)],
}

impl KindHealth {
    const fn new(rules: [CelRule; 2], feedback: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            rules,
            suspended: None,
            feedback,
        }
    }
}

/// The kinds that have their own rules, by group and kind. Most follow from the table of verdicts.
static WITH_OWN_RULES: LazyLock<Vec<(&str, &str, KindHealth)>> = LazyLock::new(|| {
    let of_table = |verdicts: &'static KindVerdicts| {
        let kind_health = KindHealth::new(cel::rules(verdicts), verdicts.values);
        (verdicts.group, verdicts.kind, kind_health)
    };
    let others = [
        ("", "Pod", rules::of_pods()),
        ("autoscaling", "HorizontalPodAutoscaler", rules::of_autoscalers()),
    ];
    verdicts::kinds().iter().map(of_table).chain(others).collect()
});

/// The rules of all other custom kinds.
static CUSTOM: LazyLock<KindHealth> = LazyLock::new(rules::of_custom_kinds);

/// Returns the groups and kinds that have their own rules.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    WITH_OWN_RULES.iter().map(|(group, kind, _)| (*group, *kind))
}

/// Returns the health rules and feedback of a kind in any version; `None` for kinds without health, such as ConfigMap.
///
/// A `custom` kind, which Kubernetes does not serve itself, is evaluated by its rule in [`custom`], or else by the conditions that
/// most custom resources have.
pub fn find_kind_health(group: &str, kind: &str, custom: bool) -> Option<&'static KindHealth> {
    WITH_OWN_RULES
        .iter()
        // Many kinds share a group.
        .find(|(of, name, _)| *name == kind && *of == group)
        .map(|(.., health)| health)
        .or_else(|| custom.then(|| custom::find(group, kind).unwrap_or(&CUSTOM)))
}

/// Returns the health rules and feedback of a kind, like [`find_kind_health`].
pub fn of_kind(kind: &GroupKind) -> Option<&'static KindHealth> {
    find_kind_health(&kind.group, &kind.kind, kind.built_in().is_none())
}

/// Returns the health rules of a custom kind whose CRD has a status: those of [`find_kind_health`], except that an object without a status is
/// progressing.
pub fn of_kind_with_status(group: &str, kind: &str) -> &'static KindHealth {
    custom::find(group, kind).unwrap_or(&custom::REPORTS_STATUS)
}

/// Returns true if the hub evaluates the kind from the values that the agent reports. OCM's rollout across the clusters of a
/// placement needs the rules nevertheless.
pub(crate) fn is_evaluated_on_hub(group: &str, kind: &str) -> bool {
    verdicts::find(group, kind).is_some()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use manifest::json;
    use std::collections::HashSet;

    /// Returns all kinds with their own rules, and another custom kind.
    fn kinds_and_another() -> impl Iterator<Item = (&'static str, &'static str)> {
        kinds().chain([("example.com", "Thing")])
    }

    /// Returns the number of bytes of the rules and of the feedback, as JSON.
    pub(crate) fn sizes(kind_health: &KindHealth) -> (usize, usize) {
        let size = |text: &str| {
            let mut json = String::new();
            json::write_text(text, &mut json);
            json.len()
        };
        let rules = kind_health
            .rules
            .iter()
            .flat_map(|rule| [rule.expression, rule.message]);
        let feedback = kind_health.feedback.iter().flat_map(|(name, path)| [*name, *path]);
        (
            rules.chain(kind_health.suspended).map(size).sum(),
            feedback.map(size).sum(),
        )
    }

    #[test]
    fn unknown_kinds_have_no_rules() {
        assert_eq!(find_kind_health("", "ConfigMap", false), None);
        assert_eq!(find_kind_health("example.com", "Deployment", false), None);
        assert_eq!(
            find_kind_health("extensions", "Ingress", false),
            find_kind_health("networking.k8s.io", "Ingress", false)
        );
        assert_ne!(
            find_kind_health("example.com", "Deployment", true),
            find_kind_health("apps", "Deployment", true)
        );
    }

    #[test]
    fn health_rules_stay_small() {
        for (group, kind) in kinds_and_another() {
            let kind_health = find_kind_health(group, kind, true).unwrap();
            let (rules, feedback) = sizes(kind_health);
            // A higher size limit for rules that search the messages of containers and controllers.
            let limit = match kind {
                "Pod" | "HorizontalPodAutoscaler" | "Certificate" | "Thing" => 2200,
                "Deployment" => 1600,
                _ => 1200,
            };
            assert!(rules <= limit, "{kind}: {rules} bytes");
            // The values of the kinds that the hub evaluates replace rules.
            let limit = if is_evaluated_on_hub(group, kind) { 750 } else { 500 };
            assert!(feedback <= limit, "{kind}: {feedback} bytes");
        }
    }

    #[test]
    fn condition_and_feedback_names_are_unique() {
        for (group, kind) in kinds_and_another() {
            let kind_health = find_kind_health(group, kind, true).unwrap();
            assert_eq!(kind_health.rules.map(|rule| rule.condition), [PROGRESSING, HEALTHY]);
            let names: HashSet<&str> = kind_health.feedback.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), kind_health.feedback.len(), "{kind}");
        }
    }
}
