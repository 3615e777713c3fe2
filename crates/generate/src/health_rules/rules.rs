//! Health rules by kind: the CEL expressions that OCM's agent evaluates.
//!
//! Every ManifestWork carries the rules of its kinds, so they are short. They use the extensions of the agent's CEL: optional
//! fields (`object.?status`), OCM's `hasConditions`, Kubernetes' `find` and the string functions. It has no `cel.bind` and no
//! JSON; `[value].exists(name, …)` and `[value].map(name, …)[0]` bind a value to a name instead.
//!
//! A failing expression would yield a False condition, so no expression may fail, whatever fields an object lacks: every field is
//! optional, and the fields of custom resources may have any type. The conditions of built-in kinds always have `type` and
//! `status`.

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

/// The rule for kinds that Argo CD never considers Degraded.
const NEVER_BROKEN: (&str, &str) = ("true", "'nothing is broken'");

/// True if the object is being deleted. Argo CD checks nothing else in that case.
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

/// True if the status refers to an earlier generation.
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

/// The numbers in the status with these names, 0 for missing ones.
macro_rules! numbers {
    ($names:literal) => {
        concat!("[", $names, "].map(k,object.?status[?k].orValue(0))")
    };
}

/// The reasons and messages of the conditions that match the filter.
macro_rules! reasons {
    ($filter:expr) => {
        concat!(
            conditions!(),
            ".filter(",
            $filter,
            ").map(c,[?c.?reason,?c.?message].join(': '))"
        )
    };
}

/// The first 300 characters of the first non-empty text, or else of the last one. The texts come from other controllers, and the
/// message of a condition is limited to 32,768 characters: with a longer one the agent could not write the status at all.
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

/// Mirrors gitops-engine's `health_deployment.go`.
pub(super) const DEPLOYMENT: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||",
            paused!(),
            "||",
            stale!(),
            "||[",
            deployment_numbers!(),
            "].exists(n,n[0]<",
            want!(),
            "||n[1]>n[0]||n[2]<n[0])",
            "||",
            conditions!(),
            ".exists(",
            past_deadline!(),
            ")"
        ),
        deleted_or_else!(
            paused!(),
            "?'it is paused':",
            stale!(),
            "?'waiting for its new spec to be observed':",
            "[",
            deployment_numbers!(),
            "+[",
            want!(),
            "]].map(n,(result?'waiting for rollout to finish: ':'')+(",
            "n[0]<n[3]?'%d of %d replicas are updated'.format([n[0],n[3]])",
            ":n[1]>n[0]?'%d old replicas are pending termination'.format([n[1]-n[0]])",
            ":'%d of %d updated replicas are available'.format([n[2],n[0]])))[0]"
        ),
    ),
    (
        concat!(
            deleted!(),
            "||",
            paused!(),
            "||",
            stale!(),
            "||!",
            conditions!(),
            ".exists(",
            past_deadline!(),
            ")"
        ),
        ok_or_else!(first_of!(reasons!("c,c.type=='Progressing'"), or "''")),
    ),
);

macro_rules! stateful_set_numbers {
    () => {
        numbers!("'observedGeneration','readyReplicas','updatedReplicas'")
    };
}

/// Mirrors gitops-engine's `health_statefulset.go`.
pub(super) const STATEFUL_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||[",
            stateful_set_numbers!(),
            "].exists(n,n[0]==0||n[0]<",
            generation!(),
            "||n[1]<",
            want!(),
            "||[object.?spec.?updateStrategy.orValue({})].exists(u,",
            "u.?type.orValue('')=='RollingUpdate'&&has(u.rollingUpdate)?n[2]<",
            want!(),
            "-u.rollingUpdate.?partition.orValue(",
            want!(),
            ")",
            ":u.?type.orValue('')!='OnDelete'&&object.?status.?updateRevision!=object.?status.?currentRevision))"
        ),
        deleted_or_else!(
            "[",
            stateful_set_numbers!(),
            "].map(n,n[0]==0||n[0]<",
            generation!(),
            "?'waiting for its new spec to be observed':(result?'waiting for rollout to finish: ':'')+(",
            "result&&n[1]>=",
            want!(),
            "?'%d of %d pods are updated'.format([n[2],",
            want!(),
            "-object.?spec.?updateStrategy.?rollingUpdate.?partition.orValue(0)])",
            ":'%d of %d pods are ready'.format([n[1],",
            want!(),
            "])))[0]"
        ),
    ),
    NEVER_BROKEN,
);

macro_rules! daemon_set_numbers {
    () => {
        numbers!("'desiredNumberScheduled','updatedNumberScheduled','numberAvailable'")
    };
}

/// Mirrors gitops-engine's `health_daemonset.go`.
pub(super) const DAEMON_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||",
            stale!(),
            "||object.?spec.?updateStrategy.?type.orValue('')!='OnDelete'&&[",
            daemon_set_numbers!(),
            "].exists(n,n[1]<n[0]||n[2]<n[0])"
        ),
        deleted_or_else!(
            stale!(),
            "?'waiting for its new spec to be observed':[",
            daemon_set_numbers!(),
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

/// Mirrors gitops-engine's `health_replicaset.go`.
pub(super) const REPLICA_SET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||",
            stale!(),
            "||object.?status.?availableReplicas.orValue(0)<",
            want!(),
            "||",
            conditions!(),
            ".exists(",
            replica_failure!(),
            ")"
        ),
        deleted_or_else!(
            stale!(),
            "?'waiting for its new spec to be observed':(result?'waiting for rollout to finish: ':'')+",
            "'%d of %d replicas are available'.format([object.?status.?availableReplicas.orValue(0),",
            want!(),
            "])"
        ),
    ),
    (
        concat!(
            deleted!(),
            "||",
            stale!(),
            "||!",
            conditions!(),
            ".exists(",
            replica_failure!(),
            ")"
        ),
        ok_or_else!(first_of!(reasons!("c,c.type=='ReplicaFailure'"), or "'its pods cannot be created'")),
    ),
);

/// Mirrors gitops-engine's `health_job.go`, which checks the status of no condition but Suspended.
pub(super) const JOB: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||[",
            conditions!(),
            "].exists(l,!l.exists(c,c.type in ['Complete','Suspended'])",
            "||l.exists(c,c.type=='Failed'||c.type=='Suspended'&&c.status=='True'))"
        ),
        deleted_or_else!(
            "(!result?'':",
            conditions!(),
            ".exists(c,c.type=='Failed')?'it failed: '",
            ":object.?spec.?suspend.orValue(false)?'it is suspended: ':'waiting for its completion: ')",
            "+'pods: %d active, %d succeeded, %d failed'.format(",
            numbers!("'active','succeeded','failed'"),
            ")"
        ),
    ),
    (
        concat!(deleted!(), "||!", conditions!(), ".exists(c,c.type=='Failed')"),
        ok_or_else!(first_of!(reasons!("c,c.type=='Failed'"), or "'it failed'")),
    ),
);

macro_rules! last_run_failed {
    () => {
        "!object.?spec.?suspend.orValue(false)&&[object.?status.orValue({})].exists(s,has(s.lastScheduleTime)\
         &&has(s.lastSuccessfulTime)&&size(s.?active.orValue([]))==0&&s.lastSuccessfulTime<s.lastScheduleTime)"
    };
}

/// Mirrors Argo CD's `resource_customizations/batch/CronJob`, which considers a suspended CronJob healthy.
pub(super) const CRON_JOB: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||!object.?spec.?suspend.orValue(false)&&!has(object.status)||",
            last_run_failed!()
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

/// The failure messages of a Pod, its containers and its conditions.
macro_rules! pod_troubles {
    () => {
        concat!(
            "[?object.?status.?message]+(object.?status.?initContainerStatuses.orValue([])+",
            containers!(),
            ").map(c,",
            "[?c.?state.?waiting,?c.?state.?terminated].filter(s,s.?reason.orValue('Completed')!='Completed')",
            ".map(s,'container '+c.name+': '+[?s.?reason,?s.?message].join(': ')).join())+",
            reasons!("c,c.status=='False'")
        )
    };
}

/// Mirrors gitops-engine's `health_pod.go`.
pub(super) const POD: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||[",
            phase!(),
            "].exists(p,",
            always!(),
            "?",
            containers!(),
            ".exists(",
            cannot_start!(),
            ")||p!='Succeeded'&&!(p=='Running'&&",
            ready!(),
            "):p!='Succeeded')"
        ),
        deleted_or_else!(
            "!result?'it is '+",
            phase!(),
            ":",
            first_of!(pod_troubles!(), or "'waiting for its containers'")
        ),
    ),
    (
        concat!(
            deleted!(),
            "||",
            phase!(),
            "!='Failed'&&!(",
            always!(),
            "&&[",
            containers!(),
            "].exists(l,",
            "l.exists(",
            cannot_start!(),
            ")||",
            phase!(),
            "=='Running'&&!",
            ready!(),
            "&&l.exists(c,has(c.lastState)&&has(c.lastState.terminated))))"
        ),
        ok_or_else!(first_of!(pod_troubles!(), or "'it failed'")),
    ),
);

/// Mirrors gitops-engine's `health_pvc.go`.
pub(super) const CLAIM: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", phase!(), "!='Bound'"),
        deleted_or_else!(
            phase!(),
            "=='Lost'?'it lost its volume':(result?'waiting to be bound to a volume':'it is bound to '",
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

/// Mirrors gitops-engine's `health_service.go`.
pub(super) const SERVICE: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||object.?spec.?type.orValue('')=='LoadBalancer'&&",
            addresses!(),
            "==[]"
        ),
        deleted_or_else!("result?'waiting for the address of its load balancer':'nothing to wait for'"),
    ),
    NEVER_BROKEN,
);

/// Mirrors gitops-engine's `health_ingress.go`.
pub(super) const INGRESS: [Rule; 2] = rules(
    (
        concat!(deleted!(), "||", addresses!(), "==[]"),
        deleted_or_else!("result?'waiting for its address':'it has its address'"),
    ),
    NEVER_BROKEN,
);

/// The conditions of a HorizontalPodAutoscaler as text: type, status and reason. In version v1 an annotation holds the conditions, as
/// JSON written by Kubernetes: quotes within strings are escaped, and `reason` follows `status`.
macro_rules! autoscaler_conditions {
    () => {
        concat!(
            "(", conditions!(), ".map(c,c.type+' '+c.status+' '+c.?reason.orValue(''))+object.metadata.?annotations",
            "[?'autoscaling.alpha.kubernetes.io/conditions'].orValue('').findAll('\"type\":\"[^{}]*?\"reason\":\"\\\\w*'))"
        )
    };
}

/// True for a condition that means Degraded.
macro_rules! autoscaler_broken {
    () => {
        "c,c.matches('AbleToScale.*\\\\WFailed(Get|Update)Scale$|\
         ScalingActive.*\\\\W(FailedGet(Resource|Object|Pods|External)Metric|FailedComputeMetricsReplicas|InvalidSelector)$')"
    };
}

/// The failure messages of a HorizontalPodAutoscaler's conditions, in either version.
macro_rules! autoscaler_troubles {
    () => {
        concat!(
            reasons!("c,c.?reason.orValue('').matches('^(Failed|Invalid)')"),
            "+object.metadata.?annotations[?'autoscaling.alpha.kubernetes.io/conditions'].orValue('')",
            ".findAll('(Failed|Invalid)\\\\w+\",\"message\":\"[^\"]*').map(t,t.replace('\",\"message\":\"',': '))"
        )
    };
}

/// Mirrors gitops-engine's `health_hpa.go` of Argo CD 3.6: any condition that means Degraded decides. Until Argo CD 3.2, the first
/// deciding condition did, and fewer reasons meant Degraded.
pub(super) const AUTOSCALER: [Rule; 2] = rules(
    (
        concat!(
            deleted!(), "||[", autoscaler_conditions!(),
            "].exists(l,!l.exists(c,c.matches('(AbleToScale|ScalingLimited)\\\\W+(status\\\\W+)?True'))||l.exists(", autoscaler_broken!(), "))"
        ),
        deleted_or_else!(
            "!result?'it is able to scale':",
            first_of!(autoscaler_troubles!(), or "'waiting to autoscale'")
        ),
    ),
    (
        concat!(deleted!(), "||!", autoscaler_conditions!(), ".exists(", autoscaler_broken!(), ")"),
        ok_or_else!(first_of!(autoscaler_troubles!(), or "'it cannot scale'")),
    ),
);

macro_rules! disrupted {
    () => {
        "c,c.status=='False'&&c.?reason.orValue('')!='InsufficientPods'"
    };
}

/// Mirrors Argo CD's `resource_customizations/policy/PodDisruptionBudget`.
pub(super) const DISRUPTION_BUDGET: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||",
            conditions!(),
            "==[]||",
            conditions!(),
            ".exists(",
            disrupted!(),
            ")"
        ),
        deleted_or_else!(
            "!result?'nothing to wait for':",
            conditions!(),
            "==[]?'waiting for its status':'its pods cannot be counted'"
        ),
    ),
    (
        concat!(deleted!(), "||!", conditions!(), ".exists(", disrupted!(), ")"),
        ok_or_else!(
            conditions!(),
            ".filter(",
            disrupted!(),
            ")[0].?reason.orValue('it failed')"
        ),
    ),
);

/// The conditions that prevent a CRD from being served.
macro_rules! definition_faults {
    () => {
        "c,(c.type+c.status+c.?reason.orValue('')).matches(\
         'InvalidCA|TerminatingT|NamesAcceptedF|NonStructuralSchemaT')"
    };
}

/// Mirrors `resource_customizations/apiextensions.k8s.io/CustomResourceDefinition` of Argo CD 3.6. In Argo CD 3.2, a CRD that is
/// merely not established yet is Degraded. Establishing takes a cluster up to five seconds; if the agent reported Degraded
/// meanwhile, Argo CD on the hub would abort a sync with waves.
pub(super) const DEFINITION: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||",
            conditions!(),
            ".exists(",
            definition_faults!(),
            ")||!",
            conditions!(),
            ".exists(c,c.type=='Established'&&c.status=='True')"
        ),
        deleted_or_else!(
            "!result?'it is established':",
            first_of!(reasons!(definition_faults!()), or "'waiting to be established'")
        ),
    ),
    (
        concat!(
            deleted!(),
            "||!",
            conditions!(),
            ".map(",
            definition_faults!(),
            ",c.type!='Terminating')[?0].orValue(false)"
        ),
        ok_or_else!(first_of!(reasons!(definition_faults!()), or "'it cannot be served'")),
    ),
);

/// Mirrors gitops-engine's `health_apiservice.go`.
pub(super) const API_SERVICE: [Rule; 2] = rules(
    (
        concat!(
            deleted!(),
            "||!",
            conditions!(),
            ".exists(c,c.type=='Available'&&c.status=='True')"
        ),
        deleted_or_else!(
            "!result?'it is available':",
            first_of!(reasons!("c,c.type=='Available'"), or "'waiting to be processed'")
        ),
    ),
    NEVER_BROKEN,
);

/// The conditions of a custom resource that are mappings, whatever the type of its status.
macro_rules! custom_conditions {
    () => {
        "(hasConditions(object.?status.orValue(''))?object.status.conditions:[]).filter(c,type(c)==map)"
    };
}

/// True if a mapping (a status or a condition) refers to an earlier generation. Some controllers write the generation as a
/// string: it is ignored.
macro_rules! custom_stale {
    ($of:literal) => {
        concat!(
            "type(",
            $of,
            ".?observedGeneration.orValue(''))==int&&",
            $of,
            ".observedGeneration<",
            generation!()
        )
    };
}

macro_rules! custom_status_stale {
    () => {
        concat!(
            "[object.?status.orValue('')].exists(s,type(s)==map&&",
            custom_stale!("s"),
            ")"
        )
    };
}

macro_rules! custom_broken {
    () => {
        "c.?type.orValue('') in ['Stalled','Failed']&&c.?status.orValue('')=='True'"
    };
}

/// The string fields of a custom resource's condition, joined.
macro_rules! custom_said {
    () => {
        ".map(c,[?c.?type,?c.?status,?c.?reason,?c.?message].filter(t,type(t)==string&&t!='').join(': '))"
    };
}

/// Follows the conventions of kstatus, with `Available` for resources without `Ready`. A False `Ready` means progressing, because
/// nothing distinguishes temporary from permanent. `Failed` is treated like `Stalled`: resources that run to completion use it,
/// after Kubernetes' Job, and it is never a success.
pub(super) const CUSTOM: [Rule; 2] = rules(
    (
        // The type is looked up once, because the agent's CEL budget per object is limited.
        concat!(
            deleted!(),
            "||",
            custom_status_stale!(),
            "||[",
            custom_conditions!(),
            "].exists(l,",
            "[l.exists(c,c.?type.orValue('')=='Ready')?'Ready':'Available'].exists(r,l.exists(c,",
            custom_broken!(),
            "||c.?type.orValue('')==r&&(c.?status.orValue('')!='True'||",
            custom_stale!("c"),
            "))))"
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
            deleted!(),
            "||",
            custom_status_stale!(),
            "||!",
            custom_conditions!(),
            ".exists(c,",
            custom_broken!(),
            "&&!(",
            custom_stale!("c"),
            "))"
        ),
        ok_or_else!(
            custom_conditions!(),
            ".filter(c,",
            custom_broken!(),
            ")",
            custom_said!(),
            "[0].find('(?s)^.{0,300}')"
        ),
    ),
);
