//! Status feedback by kind: the values that the agent reports from a cluster, chosen for what users look at first.
//!
//! Names follow OCM's `WellKnownStatus` where it has one. Paths follow kubectl, over the whole object. A path must not lead to a
//! list, a mapping or a fraction, nor index into a list that may be shorter: the agent would report that feedback failed.

/// The image of the first container in a pod template. There is always one container.
const IMAGE: (&str, &str) = ("Image", ".spec.template.spec.containers[0].image");
const READY_REPLICAS: (&str, &str) = ("ReadyReplicas", ".status.readyReplicas");
const REPLICAS: (&str, &str) = ("Replicas", ".status.replicas");
const AVAILABLE_REPLICAS: (&str, &str) = ("AvailableReplicas", ".status.availableReplicas");
const UPDATED_REPLICAS: (&str, &str) = ("UpdatedReplicas", ".status.updatedReplicas");
const DESIRED_REPLICAS: (&str, &str) = ("DesiredReplicas", ".spec.replicas");
const READY: (&str, &str) = ("Ready", r#".status.conditions[?(@.type=="Ready")].status"#);
const READY_REASON: (&str, &str) = ("ReadyReason", r#".status.conditions[?(@.type=="Ready")].reason"#);

pub(super) const DEPLOYMENT: &[(&str, &str)] = &[
    READY_REPLICAS,
    REPLICAS,
    AVAILABLE_REPLICAS,
    UPDATED_REPLICAS,
    DESIRED_REPLICAS,
    IMAGE,
    ("Suspended", ".spec.paused"),
];

pub(super) const STATEFUL_SET: &[(&str, &str)] = &[
    READY_REPLICAS,
    REPLICAS,
    AVAILABLE_REPLICAS,
    UPDATED_REPLICAS,
    DESIRED_REPLICAS,
    IMAGE,
];

pub(super) const REPLICA_SET: &[(&str, &str)] =
    &[READY_REPLICAS, REPLICAS, AVAILABLE_REPLICAS, DESIRED_REPLICAS, IMAGE];

pub(super) const DAEMON_SET: &[(&str, &str)] = &[
    ("NumberReady", ".status.numberReady"),
    ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
    ("NumberAvailable", ".status.numberAvailable"),
    ("UpdatedNumberScheduled", ".status.updatedNumberScheduled"),
    IMAGE,
];

/// `JobSucceeded` is OCM's name for the number of succeeded pods; `JobFailed` is the condition of the Job.
pub(super) const JOB: &[(&str, &str)] = &[
    ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
    ("JobFailed", r#".status.conditions[?(@.type=="Failed")].status"#),
    ("JobSucceeded", ".status.succeeded"),
    ("FailedPods", ".status.failed"),
    ("Suspended", ".spec.suspend"),
];

pub(super) const CRON_JOB: &[(&str, &str)] = &[
    ("LastScheduleTime", ".status.lastScheduleTime"),
    ("LastSuccessfulTime", ".status.lastSuccessfulTime"),
    ("Suspended", ".spec.suspend"),
];

pub(super) const POD: &[(&str, &str)] = &[
    ("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#),
    ("PodPhase", ".status.phase"),
    ("Image", ".spec.containers[0].image"),
];

pub(super) const CLAIM: &[(&str, &str)] = &[("Phase", ".status.phase"), ("Capacity", ".status.capacity.storage")];

/// The first address, an IP or a host name.
pub(super) const LOAD_BALANCER: &[(&str, &str)] =
    &[("LoadBalancer", ".status.loadBalancer.ingress[*]['ip','hostname']")];

pub(super) const AUTOSCALER: &[(&str, &str)] = &[
    ("CurrentReplicas", ".status.currentReplicas"),
    ("DesiredReplicas", ".status.desiredReplicas"),
];

pub(super) const DISRUPTION_BUDGET: &[(&str, &str)] = &[("DisruptionsAllowed", ".status.disruptionsAllowed")];

pub(super) const DEFINITION: &[(&str, &str)] =
    &[("Established", r#".status.conditions[?(@.type=="Established")].status"#)];

pub(super) const API_SERVICE: &[(&str, &str)] =
    &[("Available", r#".status.conditions[?(@.type=="Available")].status"#)];

pub(super) const CUSTOM: &[(&str, &str)] = &[READY, READY_REASON];
