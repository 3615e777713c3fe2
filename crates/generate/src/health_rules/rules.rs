//! Health rules of the kinds that `ocm::verdicts` does not have: the CEL expressions that OCM's agent evaluates.
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

use super::{CelRule, HEALTHY, PROGRESSING};

mod expressions {
    include!(concat!(env!("OUT_DIR"), "/expressions.rs"));
}

const fn rules([progressing, what_it_waits_for, healthy, what_is_broken]: [&'static str; 4]) -> [CelRule; 2] {
    [
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
    ]
}

pub(super) const POD: [CelRule; 2] = rules(expressions::POD);
pub(super) const AUTOSCALER: [CelRule; 2] = rules(expressions::AUTOSCALER);
pub(super) const CUSTOM: [CelRule; 2] = rules(expressions::CUSTOM);
