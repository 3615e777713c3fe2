//! How a work behaves on its cluster once it is applied: which verdict OCM's agent gives on an object, and which of the
//! object's values it sends back to the hub.
//!
//! A verdict is two conditions on the object's place in the work's status, and OCM makes two of the work of them:
//!
//! - `Progressing` is True until the object has become what was asked for: while Argo CD would call it Progressing,
//!   Degraded or Suspended, or cannot tell. OCM's work has it as soon as one object has it, and a ManifestWorkReplicaSet
//!   takes a cluster for done only without it, so an object that is broken is progressing too.
//! - `Healthy` is False as soon as the object is broken: when Argo CD would call it Degraded. OCM's work is False as soon as
//!   one object is. Its opposite would not add up that way: OCM calls a work Degraded only when all its objects are.
//!
//! What is suspended or paused is progressing and healthy, and its feedback says `Suspended`. The rules of the kinds that
//! Kubernetes serves are those of Argo CD 3.2: gitops-engine's `pkg/health` and Argo CD's `resource_customizations`.
//! Argo CD itself is asked about this in `tests/with_argocd/health_rules.rs`, which also lists where the two differ and why.
//!
//! In a work the rules stand in `spec.manifestConfigs`: `conditionRules` is a list with one rule per `condition`, and the
//! names of `feedbackRules[].jsonPaths` differ from each other. Neither has a limit of length of its own in OCM's CRD.

mod feedback;
// Expressions that are put together of pieces, which rustfmt would give a line each.
#[rustfmt::skip]
mod rules;

/// The condition that is True until an object has become what was asked for.
pub const PROGRESSING: &str = "Progressing";
/// The condition that is False as soon as an object is broken.
pub const HEALTHY: &str = "Healthy";

/// A condition that the agent sets on an object: one `conditionRules` entry of type `CEL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The type of the condition.
    pub condition: &'static str,
    /// CEL over `object` that gives true or false, whatever the object lacks.
    pub expression: &'static str,
    /// CEL over `object` and `result`, which is what `expression` gave, that gives a text for people: what the object waits
    /// for, without its name. Short enough for a condition, however long the texts are that it quotes.
    pub message: &'static str,
}

/// What the agent does for the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// The conditions that it sets.
    pub rules: [Rule; 2],
    /// The values that it sends back, each with the JSONPath it is found at. Texts, whole numbers and booleans only, which
    /// is what OCM takes; a value that an object lacks is left out.
    pub feedback: &'static [(&'static str, &'static str)],
}

impl Behaviour {
    const fn new(rules: [Rule; 2], feedback: &'static [(&'static str, &'static str)]) -> Self {
        Self { rules, feedback }
    }
}

/// The behaviour of the objects of a kind, in whatever version; none where nothing can be said, as of a ConfigMap.
///
/// A `custom` kind, one that Kubernetes does not serve itself, is judged by the conditions that most of them have.
#[must_use]
pub fn of(group: &str, kind: &str, custom: bool) -> Option<&'static Behaviour> {
    static DEPLOYMENT: Behaviour = Behaviour::new(rules::DEPLOYMENT, feedback::DEPLOYMENT);
    static STATEFUL_SET: Behaviour = Behaviour::new(rules::STATEFUL_SET, feedback::STATEFUL_SET);
    static DAEMON_SET: Behaviour = Behaviour::new(rules::DAEMON_SET, feedback::DAEMON_SET);
    static REPLICA_SET: Behaviour = Behaviour::new(rules::REPLICA_SET, feedback::REPLICA_SET);
    static JOB: Behaviour = Behaviour::new(rules::JOB, feedback::JOB);
    static CRON_JOB: Behaviour = Behaviour::new(rules::CRON_JOB, feedback::CRON_JOB);
    static POD: Behaviour = Behaviour::new(rules::POD, feedback::POD);
    static CLAIM: Behaviour = Behaviour::new(rules::CLAIM, feedback::CLAIM);
    static SERVICE: Behaviour = Behaviour::new(rules::SERVICE, feedback::LOAD_BALANCER);
    static INGRESS: Behaviour = Behaviour::new(rules::INGRESS, feedback::LOAD_BALANCER);
    static AUTOSCALER: Behaviour = Behaviour::new(rules::AUTOSCALER, feedback::AUTOSCALER);
    static DISRUPTION_BUDGET: Behaviour = Behaviour::new(rules::DISRUPTION_BUDGET, feedback::DISRUPTION_BUDGET);
    static DEFINITION: Behaviour = Behaviour::new(rules::DEFINITION, feedback::DEFINITION);
    static API_SERVICE: Behaviour = Behaviour::new(rules::API_SERVICE, feedback::API_SERVICE);
    static CERTIFICATE: Behaviour = Behaviour::new(rules::CUSTOM, feedback::CERTIFICATE);
    static CUSTOM: Behaviour = Behaviour::new(rules::CUSTOM, feedback::CUSTOM);
    Some(match (group, kind) {
        ("apps", "Deployment") => &DEPLOYMENT,
        ("apps", "StatefulSet") => &STATEFUL_SET,
        ("apps", "DaemonSet") => &DAEMON_SET,
        ("apps", "ReplicaSet") => &REPLICA_SET,
        ("batch", "Job") => &JOB,
        ("batch", "CronJob") => &CRON_JOB,
        ("", "Pod") => &POD,
        ("", "PersistentVolumeClaim") => &CLAIM,
        ("", "Service") => &SERVICE,
        ("networking.k8s.io" | "extensions", "Ingress") => &INGRESS,
        ("autoscaling", "HorizontalPodAutoscaler") => &AUTOSCALER,
        ("policy", "PodDisruptionBudget") => &DISRUPTION_BUDGET,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        ("apiregistration.k8s.io", "APIService") => &API_SERVICE,
        ("cert-manager.io", "Certificate") => &CERTIFICATE,
        _ if custom => &CUSTOM,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use std::collections::HashSet;

    const KINDS: [(&str, &str); 16] = [
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("", "Pod"),
        ("", "PersistentVolumeClaim"),
        ("", "Service"),
        ("networking.k8s.io", "Ingress"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("cert-manager.io", "Certificate"),
        ("example.com", "Thing"),
    ];

    #[test]
    fn what_cannot_be_judged_has_no_rules() {
        assert_eq!(of("", "ConfigMap", false), None);
        assert_eq!(of("example.com", "Deployment", false), None);
        assert_eq!(
            of("extensions", "Ingress", false),
            of("networking.k8s.io", "Ingress", false)
        );
        assert_ne!(of("example.com", "Deployment", true), of("apps", "Deployment", true));
    }

    #[test]
    fn the_rules_of_a_kind_are_small() {
        for (group, kind) in KINDS {
            let behaviour = of(group, kind, true).unwrap();
            let mut rules = String::new();
            for rule in behaviour.rules {
                json::write_text(rule.expression, &mut rules);
                json::write_text(rule.message, &mut rules);
            }
            let mut feedback = String::new();
            for (name, path) in behaviour.feedback {
                json::write_text(name, &mut feedback);
                json::write_text(path, &mut feedback);
            }
            // More for those that look through what containers and controllers say.
            let limit = match kind {
                "Pod" | "HorizontalPodAutoscaler" | "Certificate" | "Thing" => 2200,
                "Deployment" => 1600,
                _ => 1200,
            };
            assert!(rules.len() <= limit, "{kind}: {} bytes: {rules}", rules.len());
            assert!(feedback.len() <= 500, "{kind}: {} bytes: {feedback}", feedback.len());
        }
    }

    #[test]
    fn conditions_and_values_have_their_own_names() {
        for (group, kind) in KINDS {
            let behaviour = of(group, kind, true).unwrap();
            assert_eq!(behaviour.rules.map(|rule| rule.condition), [PROGRESSING, HEALTHY]);
            let names: HashSet<&str> = behaviour.feedback.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), behaviour.feedback.len(), "{kind}");
        }
    }
}
