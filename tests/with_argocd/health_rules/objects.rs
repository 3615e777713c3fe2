//! Objects in all possible states, and the expected results for some of them.

#![allow(clippy::too_many_lines, reason = "tables are long")]

use super::{BROKEN, COMPLETE, RuleConditions, WAITING};
use serde_json::{Value, json};
use testbed::ObjectRef;

/// Returns objects of the kinds that Kubernetes serves: each combination of the values that their state depends on, and each of
/// them also during deletion or without its fields.
pub(super) fn of_kubernetes() -> impl Iterator<Item = Value> {
    let all = [
        deployments(),
        stateful_sets(),
        daemon_sets(),
        replica_sets(),
        jobs(),
        cron_jobs(),
        pods(),
        claims(),
        services(),
        ingresses(),
        autoscalers(),
        disruption_budgets(),
        definitions(),
        api_services(),
    ];
    let all: Vec<Value> = all.into_iter().flat_map(variants).collect();
    all.into_iter()
}

/// Returns the objects with the variants common to all: without spec, without status, and during deletion.
fn variants(mut objects: Vec<Value>) -> Vec<Value> {
    let typical = objects.last().cloned().unwrap_or_default();
    // Argo CD's Lua fails for a CronJob without a spec and a CRD without a status: the API server accepts neither. It writes the
    // status of every CronJob.
    if typical["kind"] != "CustomResourceDefinition" && typical["kind"] != "CronJob" {
        objects.push(without(&typical, &["status"]));
    }
    if typical["kind"] != "CronJob" {
        objects.push(without(&typical, &["spec"]));
    }
    objects.push(with(&typical, "/status", json!({})));
    let every_so_many = objects.len().div_ceil(9);
    let deleted: Vec<Value> = objects
        .iter()
        .step_by(every_so_many)
        .map(|object| {
            let mut object = object.clone();
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            object["metadata"]["finalizers"] = json!(["example.com/slow"]);
            object
        })
        .collect();
    objects.extend(deleted);
    objects
}

fn without(object: &Value, fields: &[&str]) -> Value {
    let mut object = object.clone();
    for field in fields {
        object.as_object_mut().expect("a mapping").remove(*field);
    }
    object
}

fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    *object.pointer_mut(pointer).expect("a field") = value;
    object
}

/// Returns an object as the API server stores it, without the fields that are null here.
fn object(version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    let mut object = ObjectRef::namespaced(&version, &kind, "shop", "web")
        .with(json!({"metadata": {"generation": 2, "uid": "1"}, "spec": spec, "status": status}));
    remove_nulls(&mut object);
    object
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Returns a condition of a Kubernetes kind.
fn condition(r#type: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": r#type,
        "status": status,
        "reason": Some(reason).filter(|text| !text.is_empty()),
        "message": Some(message).filter(|text| !text.is_empty()),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// The states of a rollout: desired replicas, and the numbers and the generation that the controller writes.
const DESIRED: [Option<i64>; 3] = [None, Some(0), Some(3)];
const OBSERVED: [Option<i64>; 3] = [None, Some(1), Some(2)];
const REACHED: [Option<i64>; 3] = [None, Some(2), Some(3)];

fn deployments() -> Vec<Value> {
    let mut objects = Vec::new();
    let conditions = [
        Value::Null,
        json!([]),
        json!([
            condition("Progressing", "True", "NewReplicaSetAvailable", "done"),
            condition("Available", "True", "", "")
        ]),
        json!([
            condition(
                "Available",
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability."
            ),
            condition(
                "Progressing",
                "False",
                "ProgressDeadlineExceeded",
                "ReplicaSet \"web-1\" has timed out progressing."
            ),
        ]),
        json!([
            condition("ReplicaFailure", "True", "FailedCreate", "quota"),
            condition("Progressing", "True", "", "")
        ]),
    ];
    for desired in DESIRED {
        for observed in OBSERVED {
            for (updated, total, available) in [
                (None, None, None),
                (Some(3), Some(3), Some(3)),
                (Some(1), Some(3), Some(3)),
                (Some(3), Some(4), Some(4)),
                (Some(3), Some(3), Some(2)),
                (Some(3), Some(3), None),
            ] {
                for conditions in &conditions {
                    for paused in [None, Some(true)] {
                        objects.push(object(
                            "apps/v1",
                            "Deployment",
                            &json!({"replicas": desired, "paused": paused}),
                            &json!({
                                "observedGeneration": observed,
                                "updatedReplicas": updated,
                                "replicas": total,
                                "availableReplicas": available,
                                "conditions": conditions,
                            }),
                        ));
                    }
                }
            }
        }
    }
    objects
}

fn stateful_sets() -> Vec<Value> {
    let mut objects = Vec::new();
    let strategies = [
        Value::Null,
        json!({}),
        json!({"type": "OnDelete"}),
        json!({"type": "RollingUpdate"}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
    ];
    let revisions = [
        (None, None),
        (Some("a"), None),
        (Some("a"), Some("b")),
        (Some("b"), Some("b")),
    ];
    for desired in DESIRED {
        for observed in OBSERVED {
            for ready in REACHED {
                for updated in REACHED {
                    for strategy in &strategies {
                        let (current, update) = revisions[objects.len() % revisions.len()];
                        objects.push(object(
                            "apps/v1",
                            "StatefulSet",
                            &json!({"replicas": desired, "updateStrategy": strategy}),
                            &json!({
                                "observedGeneration": observed,
                                "readyReplicas": ready,
                                "updatedReplicas": updated,
                                "currentRevision": current,
                                "updateRevision": update,
                            }),
                        ));
                    }
                }
            }
        }
    }
    objects
}

fn daemon_sets() -> Vec<Value> {
    let mut objects = Vec::new();
    for strategy in [
        Value::Null,
        json!({"type": "OnDelete"}),
        json!({"type": "RollingUpdate"}),
    ] {
        for observed in OBSERVED {
            for desired in DESIRED {
                for updated in REACHED {
                    for available in REACHED {
                        objects.push(object(
                            "apps/v1",
                            "DaemonSet",
                            &json!({"updateStrategy": strategy}),
                            &json!({
                                "observedGeneration": observed,
                                "desiredNumberScheduled": desired,
                                "updatedNumberScheduled": updated,
                                "numberAvailable": available,
                            }),
                        ));
                    }
                }
            }
        }
    }
    objects
}

fn replica_sets() -> Vec<Value> {
    let mut objects = Vec::new();
    let conditions = [
        Value::Null,
        json!([condition(
            "ReplicaFailure",
            "True",
            "FailedCreate",
            "pods \"web-1\" is forbidden: exceeded quota"
        )]),
        json!([condition("ReplicaFailure", "False", "", "")]),
        json!([condition("Other", "True", "", "")]),
    ];
    for desired in DESIRED {
        for observed in OBSERVED {
            for available in REACHED {
                for conditions in &conditions {
                    let status = json!({"observedGeneration": observed, "availableReplicas": available, "conditions": conditions});
                    objects.push(object("apps/v1", "ReplicaSet", &json!({"replicas": desired}), &status));
                }
            }
        }
    }
    objects
}

fn jobs() -> Vec<Value> {
    let mut objects = Vec::new();
    let conditions = ["Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget"]
        .iter()
        .flat_map(|r#type| {
            ["True", "False"]
                .map(|status| condition(r#type, status, "BackoffLimitExceeded", "Job has reached the limit"))
        });
    let mut lists: Vec<Value> = vec![Value::Null, json!([])];
    let conditions: Vec<Value> = conditions.collect();
    for (at, one) in conditions.iter().enumerate() {
        lists.push(json!([one]));
        let others = conditions[at + 1..].iter().filter(|other| other["type"] != one["type"]);
        lists.extend(others.flat_map(|other| [json!([one, other]), json!([other, one])]));
    }
    for conditions in &lists {
        for suspend in [None, Some(true)] {
            let status = json!({"active": 1, "succeeded": 2, "conditions": conditions});
            objects.push(object("batch/v1", "Job", &json!({"suspend": suspend}), &status));
        }
    }
    objects
}

fn cron_jobs() -> Vec<Value> {
    let mut objects = Vec::new();
    let times = [
        None,
        Some("2026-01-01T00:00:00Z"),
        Some("2026-01-01T00:01:00Z"),
        Some("2026-01-02T00:00:00Z"),
    ];
    for suspend in [None, Some(false), Some(true)] {
        for last in times {
            for succeeded in times {
                for active in [Value::Null, json!([]), json!([{"name": "web-1"}])] {
                    let status = json!({"lastScheduleTime": last, "lastSuccessfulTime": succeeded, "active": active});
                    objects.push(object("batch/v1", "CronJob", &json!({"suspend": suspend}), &status));
                }
            }
        }
    }
    objects
}

fn container(name: &str, state: &Value, last_state: &Value) -> Value {
    json!({"name": name, "image": "a:1", "state": state, "lastState": last_state})
}

fn pods() -> Vec<Value> {
    let mut objects = Vec::new();
    let exited = |code: i64, reason: &str, message: &str| {
        let message = Some(message).filter(|text| !text.is_empty());
        json!({"terminated": {"exitCode": code, "reason": reason, "message": message}})
    };
    let waits = |reason: &str| json!({"waiting": {"reason": reason, "message": "back-off 5m0s"}});
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let mut containers = vec![
        Value::Null,
        json!([]),
        json!([{"name": "web"}]),
        json!([container("web", &running, &json!({}))]),
        json!([container("web", &running, &exited(1, "Error", "panic"))]),
        json!([
            container("web", &running, &json!({})),
            container("proxy", &exited(137, "OOMKilled", ""), &json!({}))
        ]),
        json!([container("web", &exited(0, "Completed", ""), &json!({}))]),
        json!([container("web", &exited(2, "Error", "usage"), &Value::Null)]),
        json!([container("web", &json!({"waiting": {}}), &json!({}))]),
    ];
    let reasons = [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "CreateContainerConfigError",
        "ContainerCreating",
        "NotErr",
        "ErrorLess",
        "BackOffs",
    ];
    for reason in reasons {
        containers.push(json!([
            container("web", &running, &json!({})),
            container("proxy", &waits(reason), &json!({}))
        ]));
    }
    let conditions = [
        Value::Null,
        json!([
            condition("PodScheduled", "True", "", ""),
            condition("Ready", "True", "", "")
        ]),
        json!([condition(
            "Ready",
            "False",
            "ContainersNotReady",
            "containers with unready status: [web]"
        )]),
    ];
    for policy in [None, Some("Always"), Some("OnFailure")] {
        for phase in [
            None,
            Some("Pending"),
            Some("Running"),
            Some("Succeeded"),
            Some("Failed"),
            Some("Unknown"),
        ] {
            for containers in &containers {
                for conditions in &conditions {
                    let message = (objects.len() % 7 == 0).then_some("evicted");
                    objects.push(object(
                        "v1",
                        "Pod",
                        &json!({"restartPolicy": policy}),
                        &json!({"phase": phase, "containerStatuses": containers, "conditions": conditions, "message": message}),
                    ));
                }
            }
        }
    }
    let many: Vec<Value> = (0..20)
        .map(|at| {
            container(
                &format!("c{at}"),
                &waits("ContainerCreating"),
                &exited(1, "Error", &"x".repeat(4000)),
            )
        })
        .collect();
    let conditions = json!([condition("Ready", "True", "", "")]);
    for status in [
        json!({"phase": "Running", "containerStatuses": many, "initContainerStatuses": many}),
        json!({"phase": "Running", "containerStatuses": many, "initContainerStatuses": many, "conditions": conditions}),
    ] {
        objects.push(object("v1", "Pod", &json!({"restartPolicy": "Always"}), &status));
    }
    objects
}

fn claims() -> Vec<Value> {
    [None, Some("Pending"), Some("Lost"), Some("Other"), Some("Bound")]
        .map(|phase| {
            object(
                "v1",
                "PersistentVolumeClaim",
                &json!({"volumeName": "pv-1"}),
                &json!({"phase": phase}),
            )
        })
        .to_vec()
}

/// Returns addresses of a load balancer.
fn addresses() -> [Value; 5] {
    [
        Value::Null,
        json!({}),
        json!({"ingress": []}),
        json!({"ingress": [{"ip": "192.0.2.1"}]}),
        json!({"ingress": [{"hostname": "lb.example.com"}, {"hostname": "other.example.com"}]}),
    ]
}

fn services() -> Vec<Value> {
    let mut objects = Vec::new();
    for r#type in [
        None,
        Some("ClusterIP"),
        Some("NodePort"),
        Some("ExternalName"),
        Some("LoadBalancer"),
    ] {
        for addresses in addresses() {
            let status = json!({"loadBalancer": addresses});
            objects.push(object("v1", "Service", &json!({"type": r#type}), &status));
        }
    }
    objects
}

fn ingresses() -> Vec<Value> {
    [
        "networking.k8s.io/v1",
        "networking.k8s.io/v1beta1",
        "extensions/v1beta1",
    ]
    .iter()
    .flat_map(|version| {
        addresses().map(|addresses| {
            object(
                version,
                "Ingress",
                &json!({"rules": []}),
                &json!({"loadBalancer": addresses}),
            )
        })
    })
    .collect()
}

/// Returns conditions of a HorizontalPodAutoscaler.
fn autoscaler_conditions() -> Vec<Vec<Value>> {
    let mut conditions = Vec::new();
    for (r#type, reasons) in [
        (
            "AbleToScale",
            &[
                "ReadyForNewScale",
                "FailedGetScale",
                "FailedUpdateScale",
                "FailedGetScaleNot",
            ][..],
        ),
        (
            "ScalingActive",
            &[
                "ValidMetricFound",
                "FailedGetResourceMetric",
                "InvalidSelector",
                "FailedGetExternalMetric",
                "FailedComputeMetricsReplicas",
                "FailedGetContainerResourceMetric",
            ],
        ),
        (
            "ScalingLimited",
            &["DesiredWithinRange", "TooFewReplicas", "FailedGetScale"],
        ),
    ] {
        for reason in reasons {
            for status in ["True", "False", "Unknown"] {
                let message =
                    "the \"HPA\" was unable {to} say \"type\":\"AbleToScale\",\"status\":\"True\",\"reason\":\"x\"";
                conditions.push(condition(r#type, status, reason, message));
            }
        }
    }
    let mut lists = vec![vec![]];
    for (at, one) in conditions.iter().enumerate() {
        lists.push(vec![one.clone()]);
        let others = conditions.iter().skip(at % 7).step_by(7);
        lists.extend(others.map(|other| vec![one.clone(), other.clone()]));
    }
    lists
}

fn autoscalers() -> Vec<Value> {
    let mut objects = Vec::new();
    for conditions in autoscaler_conditions() {
        let mut first = object(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            &json!({}),
            &json!({"currentReplicas": 1}),
        );
        first["metadata"]["annotations"] =
            json!({"autoscaling.alpha.kubernetes.io/conditions": as_kubernetes_writes(&conditions), "other": "a"});
        objects.push(first);
        let status = json!({"conditions": conditions});
        objects.push(object("autoscaling/v2", "HorizontalPodAutoscaler", &json!({}), &status));
    }
    objects
}

/// Formats the conditions as Kubernetes writes them into an annotation: Go's JSON, fields in the order of the type.
fn as_kubernetes_writes(conditions: &[Value]) -> String {
    let written = conditions.iter().map(|condition| {
        let fields = ["type", "status", "lastTransitionTime", "reason", "message"]
            .iter()
            .filter(|field| !condition[**field].is_null())
            .map(|field| format!("\"{field}\":{}", condition[*field]));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    });
    format!("[{}]", written.collect::<Vec<_>>().join(","))
}

fn disruption_budgets() -> Vec<Value> {
    let allowed = |status, reason| condition("DisruptionAllowed", status, reason, "");
    let lists = [
        Value::Null,
        json!([]),
        json!([allowed("False", "SyncFailed")]),
        json!([allowed("False", "InsufficientPods")]),
        json!([allowed("False", "InsufficientPods"), allowed("False", "SyncFailed")]),
        json!([allowed("Unknown", "SyncFailed")]),
        json!([allowed("True", "SufficientPods")]),
    ];
    let of = |conditions: &Value| {
        object(
            "policy/v1",
            "PodDisruptionBudget",
            &json!({}),
            &json!({"conditions": conditions}),
        )
    };
    lists.iter().map(of).collect()
}

fn definitions() -> Vec<Value> {
    let mut objects = Vec::new();
    let mut conditions = Vec::new();
    for r#type in [
        "NamesAccepted",
        "NonStructuralSchema",
        "Terminating",
        "KubernetesAPIApprovalPolicyConformant",
    ] {
        for status in ["True", "False", "Unknown"] {
            conditions.push(condition(r#type, status, "Reason", "the message"));
        }
    }
    let established = condition(
        "Established",
        "True",
        "InitialNamesAccepted",
        "the initial names have been accepted",
    );
    let mut lists = vec![json!([])];
    for one in &conditions {
        lists.push(json!([one, established]));
        // Kubernetes adds Terminating after the others.
        let others = conditions
            .iter()
            .filter(|other| other["type"] != one["type"] && one["type"] != "Terminating");
        lists.extend(others.map(|other| json!([one, established, other])));
    }
    lists.push(json!([established]));
    let invalid = condition(
        "Established",
        "False",
        "InvalidCABundle",
        "invalid caBundle of the conversion webhook",
    );
    lists.push(json!([names_accepted(), invalid]));
    if testbed::argocd_version() != "3.2" {
        lists.extend(not_established());
    }
    for conditions in lists {
        objects.push(object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({}),
            &json!({"conditions": conditions}),
        ));
    }
    objects
}

fn names_accepted() -> Value {
    condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
}

/// Returns the conditions of CRDs that are not established yet, which Argo CD 3.2 considers Degraded, and 3.6 Progressing.
fn not_established() -> [Value; 2] {
    let installing = condition(
        "Established",
        "False",
        "Installing",
        "the initial names have been accepted",
    );
    [json!([names_accepted()]), json!([names_accepted(), installing])]
}

fn api_services() -> Vec<Value> {
    let available = |status| {
        condition(
            "Available",
            status,
            "FailedDiscoveryCheck",
            "no response from https://10.0.0.1",
        )
    };
    let lists = [
        Value::Null,
        json!([]),
        json!([condition("Other", "True", "", "")]),
        json!([available("False")]),
        json!([available("Unknown")]),
        json!([available("True")]),
    ];
    ["apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1"]
        .iter()
        .flat_map(|version| {
            let of = |conditions| object(version, "APIService", &json!({}), &json!({"conditions": conditions}));
            lists.each_ref().map(of)
        })
        .collect()
}

/// Returns the exceptions: the reason, an object, Argo CD's health and ours.
pub(super) fn differences() -> Vec<(&'static str, Value, &'static str, RuleConditions)> {
    let crd = |conditions| {
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &json!({}),
            &json!({"conditions": conditions}),
        )
    };
    let mut hook = object("v1", "PersistentVolumeClaim", &json!({}), &json!({"phase": "Bound"}));
    hook["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    hook["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    let mut pretty = object("autoscaling/v1", "HorizontalPodAutoscaler", &json!({}), &json!({}));
    pretty["metadata"]["annotations"] = json!({
        "autoscaling.alpha.kubernetes.io/conditions": "[{\"status\": \"True\", \"type\": \"AbleToScale\"}]",
    });
    let mut differences = vec![
        (
            "Argo CD's Lua fails over a condition without a message, which Kubernetes always writes",
            crd(json!([condition("NamesAccepted", "False", "Conflict", "")])),
            "Unknown",
            BROKEN,
        ),
        (
            "Argo CD adds no hook finalizers on OCM's clusters, so the rules ignore them",
            hook,
            "Healthy",
            WAITING,
        ),
        (
            "the agent's CEL cannot parse JSON, and Kubernetes always writes this JSON in the same form",
            pretty,
            "Healthy",
            WAITING,
        ),
        (
            "the rules ignore the version: Kubernetes serves only one",
            object(
                "apps/v1beta1",
                "DaemonSet",
                &json!({}),
                &json!({"observedGeneration": 2}),
            ),
            "Unknown",
            COMPLETE,
        ),
        (
            "feedback has the first of two conditions of one type, and Kubernetes never writes two",
            object(
                "batch/v1",
                "Job",
                &json!({}),
                &json!({"conditions": [condition("Suspended", "False", "", ""), condition("Suspended", "True", "", "")]}),
            ),
            "Suspended",
            COMPLETE,
        ),
        (
            "feedback cannot tell an empty rolling update from none, and the API server fills it",
            object(
                "apps/v1",
                "StatefulSet",
                &json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}),
                &json!({"observedGeneration": 2, "updateRevision": "b"}),
            ),
            "Healthy",
            WAITING,
        ),
        (
            "feedback cannot tell an empty status from none, and the API server writes one",
            without(&object("batch/v1", "CronJob", &json!({}), &json!({})), &["status"]),
            "Progressing",
            COMPLETE,
        ),
        (
            "an address without IP and host name leads nowhere",
            object(
                "v1",
                "Service",
                &json!({"type": "LoadBalancer"}),
                &json!({"loadBalancer": {"ingress": [{}]}}),
            ),
            "Healthy",
            WAITING,
        ),
        (
            "Kubernetes adds Terminating after the other conditions",
            crd(json!([
                condition("Terminating", "True", "", "deleting"),
                condition("NamesAccepted", "False", "", "in use"),
            ])),
            "Progressing",
            BROKEN,
        ),
    ];
    if testbed::argocd_version() == "3.2" {
        let reason = "a CRD is established five seconds after its names are accepted, and a sync on the hub must not fail meanwhile";
        differences.extend(not_established().map(|conditions| (reason, crd(conditions), "Degraded", WAITING)));
    }
    differences
}

fn resource(status: &Value) -> Value {
    object("example.com/v1", "Thing", &json!({}), status)
}

/// Returns custom resources, the expected conditions, and the message of the condition that decides.
pub(super) fn custom() -> Vec<(Value, RuleConditions, &'static str)> {
    const NOTHING: &str = "nothing to wait for";
    const OBSERVE: &str = "waiting for its new spec to be observed";
    let with_conditions = |conditions: Value| resource(&json!({"conditions": conditions}));
    let ready =
        |status: &str| json!({"type": "Ready", "status": status, "reason": "DoesNotExist", "message": "no secret"});
    let is = |r#type: &str, status: &str| json!({"type": r#type, "status": status});
    let mut deleted = with_conditions(json!([ready("True"), is("Stalled", "True")]));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let many: Vec<Value> = (0..50).map(|at| is(&format!("Type{at}"), "False")).collect();
    let very_many: Vec<Value> = (0..400).map(|at| is(&format!("Type{at}"), "False")).collect();
    let mut table = vec![
        (without(&resource(&json!({})), &["status", "spec"]), COMPLETE, NOTHING),
        (resource(&json!({})), COMPLETE, NOTHING),
        (deleted, WAITING, "waiting for its deletion"),
        // The condition Ready decides, or Available without it.
        (with_conditions(json!([ready("True")])), COMPLETE, NOTHING),
        (
            with_conditions(json!([ready("False")])),
            WAITING,
            "Ready: False: DoesNotExist: no secret",
        ),
        (
            with_conditions(json!([ready("Unknown")])),
            WAITING,
            "Ready: Unknown: DoesNotExist: no secret",
        ),
        (with_conditions(json!([is("Ready", "")])), WAITING, "Ready"),
        (with_conditions(json!([is("Available", "True")])), COMPLETE, NOTHING),
        (
            with_conditions(json!([is("Available", "False")])),
            WAITING,
            "Available: False",
        ),
        (
            with_conditions(json!([is("Available", "False"), ready("True")])),
            COMPLETE,
            NOTHING,
        ),
        (
            with_conditions(json!([is("Available", "True"), ready("False")])),
            WAITING,
            "Ready: False: DoesNotExist: no secret",
        ),
        (with_conditions(json!([is("Synced", "False")])), COMPLETE, NOTHING),
        // Failures that waiting does not repair.
        (
            with_conditions(json!([is("Stalled", "True"), ready("False")])),
            BROKEN,
            "Stalled: True",
        ),
        (
            with_conditions(
                json!([ready("True"), {"type": "Stalled", "status": "True", "reason": "Bad", "message": "spec"}]),
            ),
            BROKEN,
            "Stalled: True: Bad: spec",
        ),
        (with_conditions(json!([is("Failed", "True")])), BROKEN, "Failed: True"),
        (
            with_conditions(json!([is("Failed", "False"), is("Stalled", "Unknown")])),
            COMPLETE,
            NOTHING,
        ),
        // Conditions about an earlier spec.
        (
            resource(&json!({"observedGeneration": 1, "conditions": [ready("True")]})),
            WAITING,
            OBSERVE,
        ),
        (
            resource(&json!({"observedGeneration": 1, "conditions": [is("Stalled", "True")]})),
            WAITING,
            "Stalled: True",
        ),
        (resource(&json!({"observedGeneration": 1})), WAITING, OBSERVE),
        (
            resource(&json!({"observedGeneration": 2, "conditions": [ready("True")]})),
            COMPLETE,
            NOTHING,
        ),
        (resource(&json!({"observedGeneration": 3})), COMPLETE, NOTHING),
        (
            with_conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 1}])),
            WAITING,
            OBSERVE,
        ),
        (
            with_conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 2}])),
            COMPLETE,
            NOTHING,
        ),
        (
            with_conditions(json!([ready("True"), {"type": "Issuing", "status": "False", "observedGeneration": 1}])),
            COMPLETE,
            NOTHING,
        ),
        (
            with_conditions(json!([{"type": "Stalled", "status": "True", "observedGeneration": 1}])),
            WAITING,
            "Stalled: True",
        ),
        // Argo Rollouts writes the generation as text.
        (resource(&json!({"observedGeneration": "1"})), COMPLETE, NOTHING),
        (with_conditions(json!([])), COMPLETE, NOTHING),
        // More than exist.
        (with_conditions(json!(many)), COMPLETE, NOTHING),
        (with_conditions(json!(very_many)), COMPLETE, NOTHING),
    ];
    let mut certificate = with_conditions(json!([ready("False")]));
    certificate["apiVersion"] = json!("cert-manager.io/v1");
    certificate["kind"] = json!("Certificate");
    table.push((certificate, BROKEN, "Ready: DoesNotExist: no secret"));
    let mut unnumbered = resource(&json!({"observedGeneration": 1, "conditions": [ready("True")]}));
    unnumbered["metadata"]
        .as_object_mut()
        .expect("a mapping")
        .remove("generation");
    table.push((unnumbered, COMPLETE, NOTHING));
    table
}

/// Returns custom resources whose status violates the conventions, and the expected conditions.
pub(super) fn malformed() -> Vec<(Value, RuleConditions)> {
    let with_conditions = |conditions: Value| resource(&json!({"conditions": conditions}));
    let of_any_type = [
        json!({}),
        json!("text"),
        json!(1),
        json!(1.5),
        json!(true),
        json!([]),
        json!([1]),
    ];
    let mut objects: Vec<(Value, RuleConditions)> = Vec::new();
    for value in &of_any_type {
        objects.push((resource(value), COMPLETE));
        objects.push((with_conditions(value.clone()), COMPLETE));
        objects.push((with_conditions(json!([value])), COMPLETE));
        objects.push((with_conditions(json!([{"type": value, "status": "True"}])), COMPLETE));
        let ready = json!({"type": "Ready", "status": value, "reason": value, "message": value});
        objects.push((with_conditions(json!([ready])), WAITING));
        let stalled = json!({"type": "Stalled", "status": "True", "reason": value, "message": value});
        objects.push((with_conditions(json!([stalled])), BROKEN));
    }
    for value in [json!("1"), json!(1.5), json!({}), json!([1]), json!(true)] {
        objects.push((resource(&json!({"observedGeneration": value})), COMPLETE));
        let ready = json!({"type": "Ready", "status": "True", "observedGeneration": value});
        objects.push((with_conditions(json!([ready])), COMPLETE));
    }
    objects.push((with_conditions(json!([{"type": "Ready"}])), WAITING));
    objects.push((with(&resource(&json!({})), "/status", Value::Null), COMPLETE));
    objects.push((
        with(&resource(&json!({"conditions": []})), "/status/conditions", Value::Null),
        COMPLETE,
    ));
    objects
}

/// Returns objects that the agent evaluates, with the messages of Progressing and of Healthy.
pub(super) fn with_messages() -> Vec<(Value, &'static str, &'static str)> {
    const OK: &str = "nothing is broken";
    let pod = |status: Value| object("v1", "Pod", &json!({"restartPolicy": "Always"}), &status);
    let state = |state: Value| json!([container("web", &state, &json!({}))]);
    let waits =
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}});
    let unschedulable = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available");
    let autoscaler_condition = [condition(
        "AbleToScale",
        "False",
        "FailedGetScale",
        "no such deployment: web",
    )];
    let mut first = object("autoscaling/v1", "HorizontalPodAutoscaler", &json!({}), &json!({}));
    first["metadata"]["annotations"] =
        json!({"autoscaling.alpha.kubernetes.io/conditions": as_kubernetes_writes(&autoscaler_condition)});
    let autoscaler = object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        &json!({}),
        &json!({"conditions": autoscaler_condition}),
    );
    vec![
        (
            pod(json!({"phase": "Running", "containerStatuses": state(waits)})),
            "container web: CrashLoopBackOff: back-off 5m0s restarting failed container",
            "container web: CrashLoopBackOff: back-off 5m0s restarting failed container",
        ),
        (
            pod(json!({"phase": "Pending", "conditions": [unschedulable]})),
            "Unschedulable: 0/3 nodes are available",
            OK,
        ),
        (pod(json!({"phase": "Pending"})), "waiting for its containers", OK),
        (pod(json!({"phase": "Succeeded"})), "it is Succeeded", OK),
        (
            pod(json!({"phase": "Failed", "message": "The node was low on memory."})),
            "The node was low on memory.",
            "The node was low on memory.",
        ),
        (
            first,
            "FailedGetScale: no such deployment: web",
            "FailedGetScale: no such deployment: web",
        ),
        (
            autoscaler,
            "FailedGetScale: no such deployment: web",
            "FailedGetScale: no such deployment: web",
        ),
    ]
}

/// Returns objects with their feedback values.
pub(super) fn with_feedback() -> Vec<(Value, Value)> {
    let template = json!({"spec": {"containers": [{"image": "a:1"}, {"image": "b:2"}]}});
    let ready = |status: &str| json!([{"type": "Other", "status": "True"}, {"type": "Ready", "status": status, "reason": "Issued"}]);
    let mut certificate = resource(&json!({"conditions": ready("True"), "notAfter": "2026-04-01T00:00:00Z"}));
    certificate["apiVersion"] = json!("cert-manager.io/v1");
    certificate["kind"] = json!("Certificate");
    vec![
        (
            object(
                "apps/v1",
                "Deployment",
                &json!({"replicas": 3, "paused": true, "template": template}),
                &json!({"replicas": 4, "readyReplicas": 2, "availableReplicas": 1, "updatedReplicas": 3}),
            ),
            json!({"ReadyReplicas": 2, "Replicas": 4, "AvailableReplicas": 1, "UpdatedReplicas": 3, "DesiredReplicas": 3,
                "Image": "a:1", "Suspended": true, "Generation": 2}),
        ),
        (
            object("apps/v1", "Deployment", &json!({}), &json!({})),
            json!({"Generation": 2}),
        ),
        (
            object(
                "apps/v1",
                "DaemonSet",
                &json!({"template": template}),
                &json!({"numberReady": 1, "desiredNumberScheduled": 3}),
            ),
            json!({"NumberReady": 1, "DesiredNumberScheduled": 3, "Image": "a:1", "Generation": 2}),
        ),
        (
            object(
                "batch/v1",
                "Job",
                &json!({"suspend": false}),
                &json!({"succeeded": 1, "conditions": [condition("Complete", "True", "", "")]}),
            ),
            json!({"JobComplete": "True", "JobSucceeded": 1, "Suspended": false}),
        ),
        (
            object(
                "v1",
                "PersistentVolumeClaim",
                &json!({}),
                &json!({"phase": "Bound", "capacity": {"storage": "1Gi"}}),
            ),
            json!({"Phase": "Bound", "Capacity": "1Gi"}),
        ),
        (
            object(
                "v1",
                "Service",
                &json!({}),
                &json!({"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}),
            ),
            json!({"LoadBalancer": "lb.example.com"}),
        ),
        (
            object(
                "networking.k8s.io/v1",
                "Ingress",
                &json!({}),
                &json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}}),
            ),
            json!({"LoadBalancer": "192.0.2.1"}),
        ),
        (
            certificate,
            json!({"Ready": "True", "ReadyReason": "Issued", "NotAfter": "2026-04-01T00:00:00Z"}),
        ),
        (
            resource(&json!({"conditions": ready("False")})),
            json!({"Ready": "False", "ReadyReason": "Issued"}),
        ),
        (
            resource(&json!({"conditions": [{"type": "Synced", "status": "True"}, {"status": "x"}]})),
            json!({}),
        ),
        (resource(&json!({})), json!({})),
    ]
}
