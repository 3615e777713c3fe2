//! Status feedback of the kinds that `ocm::verdicts` does not have: the values that the agent reports from a cluster, chosen for
//! what users look at first. The same rules apply to names and paths as in its table.

const READY: (&str, &str) = ("Ready", r#".status.conditions[?(@.type=="Ready")].status"#);
const READY_REASON: (&str, &str) = ("ReadyReason", r#".status.conditions[?(@.type=="Ready")].reason"#);

pub(super) const POD: &[(&str, &str)] = &[
    ("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#),
    ("PodPhase", ".status.phase"),
    ("Image", ".spec.containers[0].image"),
];

pub(super) const AUTOSCALER: &[(&str, &str)] = &[
    ("CurrentReplicas", ".status.currentReplicas"),
    ("DesiredReplicas", ".status.desiredReplicas"),
];

pub(super) const CUSTOM: &[(&str, &str)] = &[READY, READY_REASON];
