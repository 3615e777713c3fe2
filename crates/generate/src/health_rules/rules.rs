//! Health rules of the kinds that `ocm::verdicts` does not have: the CEL expressions that OCM's agent evaluates.
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

macro_rules! conditions {
    () => {
        "object.?status.?conditions.orValue([])"
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
