//! The rules by which OCM's agent judges objects, by kind.
//!
//! Every work carries the rules of its kinds, so they are written short. What the agent's CEL has is used for that: optional
//! fields (`object.?status`), OCM's `hasConditions`, Kubernetes' `find` and the string functions. It has no `cel.bind` and
//! no JSON; `[value].exists(name, …)` and `[value].map(name, …)[0]` name a value instead.
//!
//! An expression that fails would be a condition that is False, so none may, whatever an object lacks: every field is
//! optional, and the fields of custom resources may be of any type. Of the conditions of a kind of Kubernetes' own, `type`
//! and `status` are always there.

use super::{HEALTHY, PROGRESSING, Rule};

const fn rules(
    (progressing, what_it_waits_for): (&'static str, &'static str),
    (healthy, what_is_broken): (&'static str, &'static str),
) -> [Rule; 2] {
    [
        Rule {
            condition: PROGRESSING,
            expression: progressing,
            message: what_it_waits_for,
        },
        Rule {
            condition: HEALTHY,
            expression: healthy,
            message: what_is_broken,
        },
    ]
}

/// What Argo CD never calls Degraded is never broken.
const NEVER_BROKEN: (&str, &str) = ("true", "'nothing is broken'");

/// Whether the object is being deleted. Argo CD looks at nothing else then.
macro_rules! deleted {
    () => {
        "has(object.metadata.deletionTimestamp)"
    };
}

macro_rules! generation {
    () => {
        "object.metadata.?generation.orValue(0)"
    };
}

/// Whether the status is about an earlier spec.
macro_rules! stale {
    () => {
        concat!("object.?status.?observedGeneration.orValue(0)<", generation!())
    };
}

macro_rules! conditions {
    () => {
        "object.?status.?conditions.orValue([])"
    };
}

/// The numbers of the status with these names, 0 for those that are not there.
macro_rules! numbers {
    ($names:literal) => {
        concat!("[", $names, "].map(k,object.?status[?k].orValue(0))")
    };
}

/// What the conditions that the filter keeps say.
macro_rules! said {
    ($filter:expr) => {
        concat!(conditions!(), ".filter(", $filter, ").map(c,[?c.?reason,?c.?message].join(': '))")
    };
}

/// The start of the first of some texts that is not empty, or else of the last one. Others have written them, and the
/// message of a condition must not pass 32,768 characters: the agent could not write the work's status at all.
macro_rules! first_of {
    ($texts:expr, or $text:expr) => {
        concat!("(", $texts, "+[", $text, "]).filter(t,t!='')[0].find('(?s)^.{0,300}')")
    };
}

macro_rules! deleted_or_else {
    ($($text:expr),+) => {
        concat!(deleted!(), "?'waiting for its deletion':", $($text),+)
    };
}

macro_rules! ok_or_else {
    ($($text:expr),+) => {
        concat!("result?'nothing is broken':", $($text),+)
    };
}

macro_rules! want {
    () => {
        "object.?spec.?replicas.orValue(0)"
    };
}

macro_rules! paused {
    () => {
        "object.?spec.?paused.orValue(false)"
    };
}

macro_rules! deployment_numbers {
    () => {
        numbers!("'updatedReplicas','replicas','availableReplicas'")
    };
}

macro_rules! past_deadline {
    () => {
        "c,c.type=='Progressing'&&c.?reason.orValue('')=='ProgressDeadlineExceeded'"
    };
}

/// gitops-engine's `health_deployment.go`.
pub(super) const DEPLOYMENT: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||", paused!(), "||", stale!(),
            "||[", deployment_numbers!(),
            "].exists(n,n[0]<", want!(), "||n[1]>n[0]||n[2]<n[0])",
            "||", conditions!(), ".exists(", past_deadline!(), ")"
        ),
        deleted_or_else!(
            paused!(), "?'it is paused':", stale!(), "?'waiting for its new spec to be observed':",
            "[", deployment_numbers!(), "+[", want!(), "]].map(n,(result?'waiting for rollout to finish: ':'')+(",
            "n[0]<n[3]?'%d of %d replicas are updated'.format([n[0],n[3]])",
            ":n[1]>n[0]?'%d old replicas are pending termination'.format([n[1]-n[0]])",
            ":'%d of %d updated replicas are available'.format([n[2],n[0]])))[0]"
        ),
    ),
    (
        concat!(
            deleted!(), "||", paused!(), "||", stale!(), "||!", conditions!(), ".exists(", past_deadline!(), ")"
        ),
        ok_or_else!(
            first_of!(said!("c,c.type=='Progressing'"), or "''")
        ),
    ),
);

macro_rules! stateful_set_numbers {
    () => {
        numbers!("'observedGeneration','readyReplicas','updatedReplicas'")
    };
}

/// gitops-engine's `health_statefulset.go`.
pub(super) const STATEFUL_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||[", stateful_set_numbers!(), "].exists(n,n[0]==0||n[0]<", generation!(), "||n[1]<", want!(),
            "||[object.?spec.?updateStrategy.orValue({})].exists(u,",
            "u.?type.orValue('')=='RollingUpdate'&&has(u.rollingUpdate)?n[2]<", want!(), "-u.rollingUpdate.?partition.orValue(", want!(), ")",
            ":u.?type.orValue('')!='OnDelete'&&object.?status.?updateRevision!=object.?status.?currentRevision))"
        ),
        deleted_or_else!(
            "[", stateful_set_numbers!(), "].map(n,n[0]==0||n[0]<", generation!(),
            "?'waiting for its new spec to be observed':(result?'waiting for rollout to finish: ':'')+(",
            "result&&n[1]>=", want!(), "?'%d of %d pods are updated'.format([n[2],", want!(),
            "-object.?spec.?updateStrategy.?rollingUpdate.?partition.orValue(0)])",
            ":'%d of %d pods are ready'.format([n[1],", want!(), "])))[0]"
        ),
    ),
    NEVER_BROKEN,
);

macro_rules! daemon_set_numbers {
    () => {
        numbers!("'desiredNumberScheduled','updatedNumberScheduled','numberAvailable'")
    };
}

/// gitops-engine's `health_daemonset.go`.
pub(super) const DAEMON_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||", stale!(), "||object.?spec.?updateStrategy.?type.orValue('')!='OnDelete'&&[",
            daemon_set_numbers!(), "].exists(n,n[1]<n[0]||n[2]<n[0])"
        ),
        deleted_or_else!(
            stale!(), "?'waiting for its new spec to be observed':[", daemon_set_numbers!(),
            "].map(n,(result?'waiting for rollout to finish: ':'')+(",
            "n[1]<n[0]?'%d of %d pods are updated'.format([n[1],n[0]]):'%d of %d pods are available'.format([n[2],n[0]])))[0]"
        ),
    ),
    NEVER_BROKEN,
);

macro_rules! replica_failure {
    () => {
        "c,c.type=='ReplicaFailure'&&c.status=='True'"
    };
}

/// gitops-engine's `health_replicaset.go`.
pub(super) const REPLICA_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||", stale!(), "||object.?status.?availableReplicas.orValue(0)<", want!(),
            "||", conditions!(), ".exists(", replica_failure!(), ")"
        ),
        deleted_or_else!(
            stale!(), "?'waiting for its new spec to be observed':(result?'waiting for rollout to finish: ':'')+",
            "'%d of %d replicas are available'.format([object.?status.?availableReplicas.orValue(0),", want!(), "])"
        ),
    ),
    (
        concat!(deleted!(), "||", stale!(), "||!", conditions!(), ".exists(", replica_failure!(), ")"),
        ok_or_else!(first_of!(said!("c,c.type=='ReplicaFailure'"), or "'its pods cannot be created'")),
    ),
);

/// gitops-engine's `health_job.go`, which looks at the status of no condition but Suspended.
pub(super) const JOB: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||[", conditions!(), "].exists(l,!l.exists(c,c.type in ['Complete','Suspended'])",
            "||l.exists(c,c.type=='Failed'||c.type=='Suspended'&&c.status=='True'))"
        ),
        deleted_or_else!(
            "(!result?'':", conditions!(), ".exists(c,c.type=='Failed')?'it failed: '",
            ":object.?spec.?suspend.orValue(false)?'it is suspended: ':'waiting for its completion: ')",
            "+'pods: %d active, %d succeeded, %d failed'.format(", numbers!("'active','succeeded','failed'"), ")"
        ),
    ),
    (
        concat!(deleted!(), "||!", conditions!(), ".exists(c,c.type=='Failed')"),
        ok_or_else!(first_of!(said!("c,c.type=='Failed'"), or "'it failed'")),
    ),
);

macro_rules! last_run_failed {
    () => {
        "!object.?spec.?suspend.orValue(false)&&[object.?status.orValue({})].exists(s,has(s.lastScheduleTime)\
         &&has(s.lastSuccessfulTime)&&size(s.?active.orValue([]))==0&&s.lastSuccessfulTime<s.lastScheduleTime)"
    };
}

/// Argo CD's `resource_customizations/batch/CronJob`, to which a suspended one is as it should be.
pub(super) const CRON_JOB: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||!object.?spec.?suspend.orValue(false)&&!has(object.status)||", last_run_failed!()
        ),
        deleted_or_else!(
            "!result?(object.?spec.?suspend.orValue(false)?'it is suspended':'last run: '+",
            "object.?status.?lastScheduleTime.orValue('none yet')):",
            "has(object.status)?'waiting for a run to succeed':'waiting for its status'"
        ),
    ),
    (
        concat!(deleted!(), "||!(", last_run_failed!(), ")"),
        ok_or_else!("'the last run, of '+object.status.lastScheduleTime+', did not succeed'"),
    ),
);

macro_rules! containers {
    () => {
        "object.?status.?containerStatuses.orValue([])"
    };
}

macro_rules! always {
    () => {
        "object.?spec.?restartPolicy.orValue('')=='Always'"
    };
}

macro_rules! cannot_start {
    () => {
        "c,c.?state.?waiting.?reason.orValue('').matches('^Err|(Error|BackOff)$')"
    };
}

macro_rules! phase {
    () => {
        "object.?status.?phase.orValue('')"
    };
}

macro_rules! ready {
    () => {
        concat!(conditions!(), ".exists(c,c.type=='Ready'&&c.status=='True')")
    };
}

/// What a Pod, its containers and its conditions say about what is wrong.
macro_rules! pod_troubles {
    () => {
        concat!(
            "[?object.?status.?message]+(object.?status.?initContainerStatuses.orValue([])+", containers!(), ").map(c,",
            "[?c.?state.?waiting,?c.?state.?terminated].filter(s,s.?reason.orValue('Completed')!='Completed')",
            ".map(s,'container '+c.name+': '+[?s.?reason,?s.?message].join(': ')).join())+", said!("c,c.status=='False'")
        )
    };
}

/// gitops-engine's `health_pod.go`.
pub(super) const POD: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||[", phase!(), "].exists(p,", always!(), "?", containers!(), ".exists(", cannot_start!(),
            ")||p!='Succeeded'&&!(p=='Running'&&", ready!(), "):p!='Succeeded')"
        ),
        deleted_or_else!(
            "!result?'it is '+", phase!(), ":", first_of!(pod_troubles!(), or "'waiting for its containers'")
        ),
    ),
    (
        concat!(
            deleted!(), "||", phase!(), "!='Failed'&&!(", always!(), "&&[", containers!(), "].exists(l,",
            "l.exists(", cannot_start!(), ")||", phase!(), "=='Running'&&!", ready!(), "&&l.exists(c,has(c.lastState)&&has(c.lastState.terminated))))"
        ),
        ok_or_else!(first_of!(pod_troubles!(), or "'it failed'")),
    ),
);

/// gitops-engine's `health_pvc.go`.
pub(super) const CLAIM: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", phase!(), "!='Bound'"),
        deleted_or_else!(
            phase!(), "=='Lost'?'it lost its volume':(result?'waiting to be bound to a volume':'it is bound to '",
            "+object.?spec.?volumeName.orValue('a volume'))"
        ),
    ),
    (
        concat!(deleted!(), "||", phase!(), "!='Lost'"),
        ok_or_else!("'it lost its volume'"),
    ),
);

macro_rules! addresses {
    () => {
        "object.?status.?loadBalancer.?ingress.orValue([])"
    };
}

/// gitops-engine's `health_service.go`.
pub(super) const SERVICE: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||object.?spec.?type.orValue('')=='LoadBalancer'&&", addresses!(), "==[]"),
        deleted_or_else!("result?'waiting for the address of its load balancer':'nothing to wait for'"),
    ),
    NEVER_BROKEN,
);

/// gitops-engine's `health_ingress.go`.
pub(super) const INGRESS: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", addresses!(), "==[]"),
        deleted_or_else!("result?'waiting for its address':'it has its address'"),
    ),
    NEVER_BROKEN,
);

/// For each condition that decides about a HorizontalPodAutoscaler, whether it says that it is broken. In version v1 the
/// conditions are in an annotation, as the JSON that Kubernetes writes: it escapes the quotes within texts, and `reason`
/// comes behind `status`.
macro_rules! autoscaler_verdicts {
    () => {
        concat!(
            "(", conditions!(), ".map(c,c.type+' '+c.status+' '+c.?reason.orValue(''))+object.metadata.?annotations",
            "[?'autoscaling.alpha.kubernetes.io/conditions'].orValue('').findAll('\"type\":\"[^{}]*?\"reason\":\"\\\\w*'))",
            ".map(c,c.matches('(AbleToScale|ScalingLimited)\\\\W+(status\\\\W+)?True')||", autoscaler_broken!(), ",",
            autoscaler_broken!(), ")"
        )
    };
}

macro_rules! autoscaler_broken {
    () => {
        "c.matches('AbleToScale.*\\\\W(FailedGet|FailedUpdate)Scale$|\
         ScalingActive.*\\\\W(FailedGetResourceMetric|InvalidSelector)$')"
    };
}

/// What the conditions of a HorizontalPodAutoscaler say about what is wrong, in either version.
macro_rules! autoscaler_troubles {
    () => {
        concat!(
            said!("c,c.?reason.orValue('').matches('^(Failed|Invalid)')"),
            "+object.metadata.?annotations[?'autoscaling.alpha.kubernetes.io/conditions'].orValue('')",
            ".findAll('(Failed|Invalid)\\\\w+\",\"message\":\"[^\"]*').map(t,t.replace('\",\"message\":\"',': '))"
        )
    };
}

/// gitops-engine's `health_hpa.go`: the first condition that decides does.
pub(super) const AUTOSCALER: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", autoscaler_verdicts!(), "[?0].orValue(true)"),
        deleted_or_else!(
            "!result?'it is able to scale':", first_of!(autoscaler_troubles!(), or "'waiting to autoscale'")
        ),
    ),
    (
        concat!(deleted!(), "||!", autoscaler_verdicts!(), "[?0].orValue(false)"),
        ok_or_else!(first_of!(autoscaler_troubles!(), or "'it cannot scale'")),
    ),
);

macro_rules! disrupted {
    () => {
        "c,c.status=='False'&&c.?reason.orValue('')!='InsufficientPods'"
    };
}

/// Argo CD's `resource_customizations/policy/PodDisruptionBudget`.
pub(super) const DISRUPTION_BUDGET: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", conditions!(), "==[]||", conditions!(), ".exists(", disrupted!(), ")"),
        deleted_or_else!(
            "!result?'nothing to wait for':", conditions!(), "==[]?'waiting for its status':'its pods cannot be counted'"
        ),
    ),
    (
        concat!(deleted!(), "||!", conditions!(), ".exists(", disrupted!(), ")"),
        ok_or_else!(conditions!(), ".filter(", disrupted!(), ")[0].?reason.orValue('it failed')"),
    ),
);

/// The conditions that keep a CRD from being served.
macro_rules! definition_troubles {
    () => {
        "c,c.type+c.status in ['TerminatingTrue','NamesAcceptedFalse','NonStructuralSchemaTrue']"
    };
}

/// Argo CD's `resource_customizations/apiextensions.k8s.io/CustomResourceDefinition`, but for one thing: a CRD that is only
/// not established yet is not broken. Between the two a cluster takes five seconds, in which the agent would report it, and
/// Argo CD on the hub would give up a sync that has waves.
pub(super) const DEFINITION: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||", conditions!(), ".exists(", definition_troubles!(), ")||!", conditions!(),
            ".exists(c,c.type=='Established'&&c.status=='True')"
        ),
        deleted_or_else!(
            "!result?'it is established':", first_of!(said!(definition_troubles!()), or "'waiting to be established'")
        ),
    ),
    (
        concat!(
            deleted!(), "||!", conditions!(), ".map(", definition_troubles!(), ",c.type!='Terminating')[?0].orValue(false)"
        ),
        ok_or_else!(first_of!(said!(definition_troubles!()), or "'it cannot be served'")),
    ),
);

/// gitops-engine's `health_apiservice.go`.
pub(super) const API_SERVICE: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||!", conditions!(), ".exists(c,c.type=='Available'&&c.status=='True')"),
        deleted_or_else!(
            "!result?'it is available':", first_of!(said!("c,c.type=='Available'"), or "'waiting to be processed'")
        ),
    ),
    NEVER_BROKEN,
);

/// The conditions of a custom resource that are mappings, whatever its status is.
macro_rules! custom_conditions {
    () => {
        "(hasConditions(object.?status.orValue(''))?object.status.conditions:[]).filter(c,type(c)==map)"
    };
}

/// Whether a mapping, a status or a condition, says that it is about an earlier spec. Some write it as text: those count as
/// if they did not say.
macro_rules! custom_stale {
    ($of:literal) => {
        concat!("type(", $of, ".?observedGeneration.orValue(''))==int&&", $of, ".observedGeneration<", generation!())
    };
}

macro_rules! custom_status_stale {
    () => {
        concat!("[object.?status.orValue('')].exists(s,type(s)==map&&", custom_stale!("s"), ")")
    };
}

macro_rules! custom_broken {
    () => {
        "c.?type.orValue('') in ['Stalled','Failed']&&c.?status.orValue('')=='True'"
    };
}

/// What a condition of a custom resource says, as far as it says it in text.
macro_rules! custom_said {
    () => {
        ".map(c,[?c.?type,?c.?status,?c.?reason,?c.?message].filter(t,type(t)==string&&t!='').join(': '))"
    };
}

/// The conventions of kstatus, with `Available` for those that have no `Ready`. `Ready` that is False is progressing, because
/// nothing tells what will be true from what will not. `Failed` is added to `Stalled`: it is what resources that run to
/// their end call it, after Kubernetes' Job, and nobody means something good by it.
pub(super) const CUSTOM: [Rule; 2] = rules(
    (
        // The type is looked up once, for what the agent spends on an object is limited.
        concat!(
            deleted!(), "||", custom_status_stale!(), "||[", custom_conditions!(), "].exists(l,",
            "[l.exists(c,c.?type.orValue('')=='Ready')?'Ready':'Available'].exists(r,l.exists(c,", custom_broken!(),
            "||c.?type.orValue('')==r&&(c.?status.orValue('')!='True'||", custom_stale!("c"), "))))"
        ),
        deleted_or_else!(
            "!result?'nothing to wait for':",
            first_of!(
                concat!(
                    custom_conditions!(), ".filter(c,c.?type.orValue('') in (c.?status.orValue('')=='True'",
                    "?['Stalled','Failed']:['Ready','Available']))", custom_said!()
                ),
                or "'waiting for its new spec to be observed'"
            )
        ),
    ),
    (
        concat!(
            deleted!(), "||", custom_status_stale!(), "||!", custom_conditions!(), ".exists(c,", custom_broken!(), "&&!(",
            custom_stale!("c"), "))"
        ),
        ok_or_else!(custom_conditions!(), ".filter(c,", custom_broken!(), ")", custom_said!(), "[0].find('(?s)^.{0,300}')"),
    ),
);
