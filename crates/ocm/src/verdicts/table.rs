//! The table of verdicts. The rules of each kind mirror gitops-engine's `pkg/health` or Argo CD's `resource_customizations`, in
//! the version that the testbed runs; `tests/with_argocd/health_rules.rs` compares them with that Argo CD.
//!
//! Names of values follow OCM's `WellKnownStatus` where it has one. Paths follow kubectl, over the whole object. A path must not
//! lead to a list, a mapping or a fraction, nor index into a list that may be shorter: the agent would report that feedback
//! failed. Of several results, the agent reports the first.

use super::ReportedNumber::{Difference, Of};
use super::Test::{Differs, Earlier, Has, Is, IsNot, IsNotTrue, IsTrue, Lacks, Less};
use super::{KindVerdicts, Rule, Test};
use crate::health::HealthStatus;

type NamedPath = (&'static str, &'static str);

const fn rule(health: HealthStatus, when: &'static [Test], message: &'static str) -> Rule {
    Rule { health, when, message }
}

const fn progressing(when: &'static [Test], message: &'static str) -> Rule {
    rule(HealthStatus::Progressing, when, message)
}

const fn degraded(when: &'static [Test], message: &'static str) -> Rule {
    rule(HealthStatus::Degraded, when, message)
}

const fn suspended(when: &'static [Test], message: &'static str) -> Rule {
    rule(HealthStatus::Suspended, when, message)
}

/// Argo CD checks nothing else while an object is being deleted.
const DELETED: Rule = progressing(&[Has(super::DELETED)], "waiting for its deletion");
const NOT_OBSERVED: Rule = progressing(
    &[Less(Of("Observed"), Of("Generation"))],
    "waiting for its new spec to be observed",
);

const DELETION: NamedPath = (super::DELETED, ".metadata.deletionTimestamp");
const GENERATION: NamedPath = ("Generation", ".metadata.generation");
const OBSERVED: NamedPath = ("Observed", ".status.observedGeneration");
/// The image of the first container in a pod template. There is always one container.
const IMAGE: NamedPath = ("Image", ".spec.template.spec.containers[0].image");
const READY_REPLICAS: NamedPath = ("ReadyReplicas", ".status.readyReplicas");
const REPLICAS: NamedPath = ("Replicas", ".status.replicas");
const AVAILABLE_REPLICAS: NamedPath = ("AvailableReplicas", ".status.availableReplicas");
const UPDATED_REPLICAS: NamedPath = ("UpdatedReplicas", ".status.updatedReplicas");
const DESIRED_REPLICAS: NamedPath = ("DesiredReplicas", ".spec.replicas");
const STRATEGY: NamedPath = ("Strategy", ".spec.updateStrategy.type");
/// The first address, an IP or a host name.
const ADDRESS: NamedPath = ("LoadBalancer", ".status.loadBalancer.ingress[*]['ip','hostname']");

pub(super) static KINDS: [KindVerdicts; 13] = [
    // health_deployment.go
    KindVerdicts {
        group: "apps",
        kind: "Deployment",
        values: &[
            READY_REPLICAS,
            REPLICAS,
            AVAILABLE_REPLICAS,
            UPDATED_REPLICAS,
            DESIRED_REPLICAS,
            IMAGE,
            ("Suspended", ".spec.paused"),
            GENERATION,
            OBSERVED,
            (
                "Failed",
                r#".status.conditions[?(@.reason=="ProgressDeadlineExceeded")]['message','reason']"#,
            ),
            DELETION,
        ],
        rules: &[
            DELETED,
            suspended(&[IsTrue("Suspended")], "it is paused"),
            NOT_OBSERVED,
            degraded(&[Has("Failed")], "ProgressDeadlineExceeded: {Failed}"),
            progressing(
                &[Less(Of("UpdatedReplicas"), Of("DesiredReplicas"))],
                "waiting for rollout to finish: {#UpdatedReplicas} of {#DesiredReplicas} replicas are updated",
            ),
            progressing(
                &[Less(Of("UpdatedReplicas"), Of("Replicas"))],
                "waiting for rollout to finish: {#Replicas-UpdatedReplicas} old replicas are pending termination",
            ),
            progressing(
                &[Less(Of("AvailableReplicas"), Of("UpdatedReplicas"))],
                "waiting for rollout to finish: {#AvailableReplicas} of {#UpdatedReplicas} updated replicas are available",
            ),
        ],
    },
    // health_statefulset.go. The API server sets the partition of every rolling update.
    KindVerdicts {
        group: "apps",
        kind: "StatefulSet",
        values: &[
            READY_REPLICAS,
            REPLICAS,
            AVAILABLE_REPLICAS,
            UPDATED_REPLICAS,
            DESIRED_REPLICAS,
            IMAGE,
            STRATEGY,
            ("Partition", ".spec.updateStrategy.rollingUpdate.partition"),
            ("CurrentRevision", ".status.currentRevision"),
            ("UpdateRevision", ".status.updateRevision"),
            GENERATION,
            OBSERVED,
            DELETION,
        ],
        rules: &[
            DELETED,
            NOT_OBSERVED,
            progressing(
                &[Less(Of("ReadyReplicas"), Of("DesiredReplicas"))],
                "waiting for rollout to finish: {#ReadyReplicas} of {#DesiredReplicas} pods are ready",
            ),
            progressing(
                &[
                    Has("Partition"),
                    Less(Of("UpdatedReplicas"), Difference("DesiredReplicas", "Partition")),
                ],
                "waiting for rollout to finish: {#UpdatedReplicas} of {#DesiredReplicas-Partition} pods are updated",
            ),
            progressing(
                &[
                    IsNot("Strategy", "OnDelete"),
                    Lacks("Partition"),
                    Differs("CurrentRevision", "UpdateRevision"),
                ],
                "waiting for rollout to finish: {#UpdatedReplicas} of {#DesiredReplicas} pods are updated",
            ),
        ],
    },
    // health_daemonset.go
    KindVerdicts {
        group: "apps",
        kind: "DaemonSet",
        values: &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
            ("UpdatedNumberScheduled", ".status.updatedNumberScheduled"),
            IMAGE,
            STRATEGY,
            GENERATION,
            OBSERVED,
            DELETION,
        ],
        rules: &[
            DELETED,
            NOT_OBSERVED,
            progressing(
                &[
                    IsNot("Strategy", "OnDelete"),
                    Less(Of("UpdatedNumberScheduled"), Of("DesiredNumberScheduled")),
                ],
                "waiting for rollout to finish: {#UpdatedNumberScheduled} of {#DesiredNumberScheduled} pods are updated",
            ),
            progressing(
                &[
                    IsNot("Strategy", "OnDelete"),
                    Less(Of("NumberAvailable"), Of("DesiredNumberScheduled")),
                ],
                "waiting for rollout to finish: {#NumberAvailable} of {#DesiredNumberScheduled} pods are available",
            ),
        ],
    },
    // health_replicaset.go
    KindVerdicts {
        group: "apps",
        kind: "ReplicaSet",
        values: &[
            READY_REPLICAS,
            REPLICAS,
            AVAILABLE_REPLICAS,
            DESIRED_REPLICAS,
            IMAGE,
            GENERATION,
            OBSERVED,
            ("Failed", r#".status.conditions[?(@.type=="ReplicaFailure")].status"#),
            (
                "Message",
                r#".status.conditions[?(@.type=="ReplicaFailure")]['message','reason','type']"#,
            ),
            DELETION,
        ],
        rules: &[
            DELETED,
            NOT_OBSERVED,
            degraded(&[Is("Failed", "True")], "its pods cannot be created: {Message}"),
            progressing(
                &[Less(Of("AvailableReplicas"), Of("DesiredReplicas"))],
                "waiting for rollout to finish: {#AvailableReplicas} of {#DesiredReplicas} replicas are available",
            ),
        ],
    },
    // health_job.go, which checks the status of no condition but Suspended.
    KindVerdicts {
        group: "batch",
        kind: "Job",
        values: &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            (
                "JobFailed",
                r#".status.conditions[?(@.type=="Failed")]['reason','status']"#,
            ),
            ("JobSucceeded", ".status.succeeded"),
            ("ActivePods", ".status.active"),
            ("FailedPods", ".status.failed"),
            ("Suspended", ".spec.suspend"),
            ("JobSuspended", r#".status.conditions[?(@.type=="Suspended")].status"#),
            (
                "Message",
                r#".status.conditions[?(@.type=="Failed")]['message','reason','type']"#,
            ),
            DELETION,
        ],
        rules: &[
            DELETED,
            degraded(&[Has("JobFailed")], "{JobFailed}: {Message}"),
            suspended(&[Is("JobSuspended", "True")], "it is suspended"),
            progressing(
                &[Lacks("JobComplete"), Lacks("JobSuspended")],
                "waiting for its completion: pods: {#ActivePods} active, {#JobSucceeded} succeeded, {#FailedPods} failed",
            ),
        ],
    },
    // resource_customizations/batch/CronJob, which considers a suspended CronJob healthy.
    KindVerdicts {
        group: "batch",
        kind: "CronJob",
        values: &[
            ("LastScheduleTime", ".status.lastScheduleTime"),
            ("LastSuccessfulTime", ".status.lastSuccessfulTime"),
            ("Suspended", ".spec.suspend"),
            ("Active", ".status.active[*].name"),
            DELETION,
        ],
        rules: &[
            DELETED,
            degraded(
                &[
                    IsNotTrue("Suspended"),
                    Lacks("Active"),
                    Earlier("LastSuccessfulTime", "LastScheduleTime"),
                ],
                "the last run, of {LastScheduleTime}, did not succeed",
            ),
        ],
    },
    // health_pvc.go
    KindVerdicts {
        group: "",
        kind: "PersistentVolumeClaim",
        values: &[
            ("Phase", ".status.phase"),
            ("Capacity", ".status.capacity.storage"),
            DELETION,
        ],
        rules: &[
            DELETED,
            degraded(&[Is("Phase", "Lost")], "it lost its volume"),
            progressing(&[IsNot("Phase", "Bound")], "waiting to be bound to a volume"),
        ],
    },
    // health_service.go
    KindVerdicts {
        group: "",
        kind: "Service",
        values: &[("Type", ".spec.type"), ADDRESS, DELETION],
        rules: &[
            DELETED,
            progressing(
                &[Is("Type", "LoadBalancer"), Lacks("LoadBalancer")],
                "waiting for the address of its load balancer",
            ),
        ],
    },
    // health_ingress.go
    KindVerdicts {
        group: "networking.k8s.io",
        kind: "Ingress",
        values: INGRESS_VALUES,
        rules: INGRESS_RULES,
    },
    KindVerdicts {
        group: "extensions",
        kind: "Ingress",
        values: INGRESS_VALUES,
        rules: INGRESS_RULES,
    },
    // resource_customizations/policy/PodDisruptionBudget. A budget that allows no disruption at present is healthy.
    KindVerdicts {
        group: "policy",
        kind: "PodDisruptionBudget",
        values: &[
            ("DisruptionsAllowed", ".status.disruptionsAllowed"),
            ("Condition", ".status.conditions[*].type"),
            (
                "Allowed",
                r#".status.conditions[?(@.reason!="InsufficientPods")].status"#,
            ),
            (
                "Reason",
                r#".status.conditions[?(@.reason!="InsufficientPods")].reason"#,
            ),
            DELETION,
        ],
        rules: &[
            DELETED,
            degraded(&[Is("Allowed", "False")], "its pods cannot be counted: {Reason}"),
            progressing(&[Lacks("Condition")], "waiting for its status"),
        ],
    },
    // resource_customizations/apiextensions.k8s.io/CustomResourceDefinition of Argo CD 3.6. In Argo CD 3.2, a CRD that is merely not
    // established yet is Degraded. Establishing takes a cluster up to five seconds, and a sync with waves would be aborted meanwhile.
    KindVerdicts {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        values: &[
            ("Established", r#".status.conditions[?(@.type=="Established")].status"#),
            (
                "InvalidCA",
                r#".status.conditions[?(@.reason=="InvalidCABundle")]['message','reason']"#,
            ),
            (
                "NamesAccepted",
                r#".status.conditions[?(@.type=="NamesAccepted")].status"#,
            ),
            (
                "NamesMessage",
                r#".status.conditions[?(@.type=="NamesAccepted")]['message','reason','type']"#,
            ),
            (
                "NonStructural",
                r#".status.conditions[?(@.type=="NonStructuralSchema")].status"#,
            ),
            (
                "SchemaMessage",
                r#".status.conditions[?(@.type=="NonStructuralSchema")]['message','reason','type']"#,
            ),
            ("Terminating", r#".status.conditions[?(@.type=="Terminating")].status"#),
            DELETION,
        ],
        rules: &[
            DELETED,
            degraded(
                &[Is("NamesAccepted", "False")],
                "its names are not accepted: {NamesMessage}",
            ),
            degraded(
                &[Is("NonStructural", "True")],
                "its schema is not structural: {SchemaMessage}",
            ),
            degraded(
                &[IsNot("Established", "True"), Has("InvalidCA")],
                "it is not established: {InvalidCA}",
            ),
            progressing(&[Is("Terminating", "True")], "waiting for its deletion"),
            progressing(&[IsNot("Established", "True")], "waiting to be established"),
        ],
    },
    // health_apiservice.go
    KindVerdicts {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        values: &[
            ("Available", r#".status.conditions[?(@.type=="Available")].status"#),
            (
                "Message",
                r#".status.conditions[?(@.type=="Available")]['message','reason','type']"#,
            ),
            DELETION,
        ],
        rules: &[
            DELETED,
            progressing(&[Lacks("Available")], "waiting to be processed"),
            progressing(&[IsNot("Available", "True")], "it is not available: {Message}"),
        ],
    },
];

const INGRESS_VALUES: &[NamedPath] = &[ADDRESS, DELETION];
const INGRESS_RULES: &[Rule] = &[
    DELETED,
    progressing(&[Lacks("LoadBalancer")], "waiting for its address"),
];
