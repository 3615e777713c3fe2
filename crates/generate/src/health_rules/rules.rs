//! Health rules and feedback of the kinds that `ocm::verdicts` does not have: the CEL expressions that OCM's agent evaluates, and the
//! values that it reports, chosen for what users look at first.
//!
//! The files in `expressions` have them; the build shortens them, because every ManifestWork carries the rules of its kinds. They use
//! the extensions of the agent's CEL: optional fields (`object.?status`), OCM's `hasConditions`, Kubernetes' `find` and the string
//! functions. It has no `cel.bind` and no JSON; `[value].exists(name, …)` and `[value].map(name, …)[0]` bind a value to a name
//! instead.
//!
//! A failing expression would yield a False condition, so no expression may fail, whatever fields an object lacks: every field is
//! optional, and the fields of custom resources may have any type. The conditions of built-in kinds always have `type` and
//! `status`. Messages come from other controllers, and that of a condition is limited to 32,768 characters, beyond which the agent
//! could not write the status at all: the expressions take the first 300 characters.

use super::{CelRule, HEALTHY, KindHealth, PROGRESSING};

mod expressions {
    include!(concat!(env!("OUT_DIR"), "/expressions.rs"));
}

type Feedback = &'static [(&'static str, &'static str)];

const fn kind_health(
    [progressing, what_it_waits_for, healthy, what_is_broken]: [&'static str; 4],
    feedback: Feedback,
) -> KindHealth {
    let rules = [
        CelRule {
            condition: PROGRESSING,
            expression: progressing,
            message: what_it_waits_for,
        },
        CelRule {
            condition: HEALTHY,
            expression: healthy,
            message: what_is_broken,
        },
    ];
    KindHealth::new(rules, feedback)
}

const READY: &str = r#".status.conditions[?(@.type=="Ready")].status"#;
const READY_REASON: &str = r#".status.conditions[?(@.type=="Ready")].reason"#;

const POD_FEEDBACK: Feedback = &[
    ("PodReady", READY),
    ("PodPhase", ".status.phase"),
    ("Image", ".spec.containers[0].image"),
];

const AUTOSCALER_FEEDBACK: Feedback = &[
    ("CurrentReplicas", ".status.currentReplicas"),
    ("DesiredReplicas", ".status.desiredReplicas"),
];

pub(super) const POD: KindHealth = kind_health(expressions::POD, POD_FEEDBACK);
pub(super) const AUTOSCALER: KindHealth = kind_health(expressions::AUTOSCALER, AUTOSCALER_FEEDBACK);
pub(super) const CUSTOM: KindHealth =
    kind_health(expressions::CUSTOM, &[("Ready", READY), ("ReadyReason", READY_REASON)]);
