//! Health rules and feedback of the kinds that `ocm::verdicts` does not have: the CEL expressions that OCM's agent evaluates, and the
//! values that it reports, chosen for what users look at first.
//!
//! The files in `expressions` have them; they are shortened, because every ManifestWork carries the rules of its kinds. They use
//! the extensions of the agent's CEL: optional fields (`object.?status`), OCM's `hasConditions`, Kubernetes' `find` and the string
//! functions. It has no `cel.bind` and no JSON; `[value].exists(name, …)` and `[value].map(name, …)[0]` bind a value to a name
//! instead.
//!
//! A failing expression would yield a False condition, so no expression may fail, whatever fields an object lacks: every field is
//! optional, and the fields of custom resources may have any type. The conditions of built-in kinds always have `type` and
//! `status`. Messages come from other controllers, and that of a condition is limited to 32,768 characters, beyond which the agent
//! could not write the status at all: the expressions take the first 300 characters.

use super::expressions::{Definitions, expand, read_definitions};
use super::{CelRule, HEALTHY, KindHealth, PROGRESSING};

type Feedback = &'static [(&'static str, &'static str)];

/// Returns the rules in a file of expressions, with this feedback. They live as long as the program, which uses them for all objects.
fn kind_health(file: &str, feedback: Feedback) -> KindHealth {
    let mut definitions = Definitions::new();
    read_definitions(include_str!("expressions/common.cel"), &mut definitions);
    read_definitions(file, &mut definitions);
    let rule = |condition, [expression, message]: [&str; 2]| CelRule {
        condition,
        expression: expand(expression, &definitions).leak(),
        message: expand(message, &definitions).leak(),
    };
    let rules = [
        rule(PROGRESSING, ["progressing", "progressing_message"]),
        rule(HEALTHY, ["healthy", "healthy_message"]),
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

pub(super) fn of_pods() -> KindHealth {
    kind_health(include_str!("expressions/pod.cel"), POD_FEEDBACK)
}

pub(super) fn of_autoscalers() -> KindHealth {
    kind_health(include_str!("expressions/autoscaler.cel"), AUTOSCALER_FEEDBACK)
}

pub(super) fn of_custom_kinds() -> KindHealth {
    let feedback = &[("Ready", READY), ("ReadyReason", READY_REASON)];
    kind_health(include_str!("expressions/custom.cel"), feedback)
}
