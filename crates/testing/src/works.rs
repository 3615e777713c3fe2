//! ManifestWorks as hostile agents of clusters may change them.

use crate::{hostile_json, mutated, tampered};
use proptest::prelude::{BoxedStrategy, Strategy, prop_oneof};
use serde_json::{Value, json};

/// Returns a ManifestWork as the plugin creates it, with the status of OCM's agent.
pub fn work() -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "ConditionRuleEvaluated", "message": "no image",
            "lastTransitionTime": "2026-06-01T11:59:30Z", "observedGeneration": 2,
        })
    };
    let object = |name: &str, kind: &str, resource: &str| {
        json!({
            "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": kind, "resource": resource, "namespace": "shop", "name": name},
            "conditions": [
                condition("Applied", "True"), condition("Available", "True"), condition("Healthy", "False"),
                condition("Progressing", "True"), condition("StatusFeedbackSynced", "True"),
            ],
            "statusFeedback": {"values": [
                {"name": "Suspended", "fieldValue": {"type": "Boolean", "boolean": true}},
                {"name": "ReadyReplicas", "fieldValue": {"type": "Integer", "integer": 2}},
                {"name": "Message", "fieldValue": {"type": "String", "string": "it crashes"}},
            ]},
        })
    };
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": "shop", "namespace": "eu1", "generation": 2, "uid": "w", "resourceVersion": "41",
            "labels": {"app.kubernetes.io/instance": "shop"},
            "annotations": {"argocd.argoproj.io/tracking-id": "shop:work.open-cluster-management.io/ManifestWork:eu1/shop"},
        },
        "spec": {
            "workload": {"manifests": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "data", "namespace": "shop"}},
            ]},
            "manifestConfigs": [
                {
                    "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "*", "name": "*"},
                    "conditionRules": [{"condition": "Healthy"}, {"condition": "Progressing"}],
                },
                {
                    "resourceIdentifier": {"group": "apps", "resource": "statefulsets", "namespace": "*", "name": "*"},
                    "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                        {"name": "ReadyReplicas"}, {"name": "UpdatedReplicas"}, {"name": "DesiredReplicas"}, {"name": "Strategy"},
                        {"name": "Partition"}, {"name": "CurrentRevision"}, {"name": "UpdateRevision"}, {"name": "Generation"},
                        {"name": "Observed"}, {"name": "Deleted"}, {"name": "ContentHash"},
                    ]}],
                },
            ],
        },
        "status": {
            "conditions": [condition("Applied", "True"), condition("Available", "True")],
            "resourceStatus": {"manifests": [
                object("web", "Deployment", "deployments"), object("data", "StatefulSet", "statefulsets"),
            ]},
        },
    })
}

fn set() -> Value {
    let mut set = work();
    set["kind"] = json!("ManifestWorkReplicaSet");
    set["metadata"]["managedFields"] = json!([{"time": "2026-06-01T11:00:00Z", "fieldsV1": {"f:spec": {}}}]);
    set["spec"]["placementRefs"] = json!([{"name": "all", "rolloutStrategy": {
        "type": "Progressive",
        "progressive": {"maxConcurrency": "50%", "progressDeadline": "10s", "minSuccessTime": "1s", "mandatoryDecisionGroups": []},
    }}]);
    set["status"] = json!({
        "conditions": [
            {
                "type": "ManifestworkApplied", "status": "False", "reason": "Processing", "message": "eu1",
                "lastTransitionTime": "2026-06-01T11:59:30Z", "observedGeneration": 2,
            },
            {"type": "PlacementVerified", "status": "True"},
            {"type": "PlacementRolledOut", "status": "False", "lastTransitionTime": "2026-06-01T11:00:00Z"},
        ],
        "summary": {"total": 3, "applied": 2, "available": 1, "degraded": 1, "progressing": 0},
        "placementSummary": [{"name": "all", "availableDecisionGroups": "9223372036854775807 (3 / 9223372036854775807 clusters applied)", "summary": {"total": 3}}],
    });
    set
}

/// Generates texts of ManifestWorks with random changes.
pub fn texts() -> BoxedStrategy<String> {
    let tampered = tampered(vec![work(), set()]).prop_map(|work| work.to_string());
    let only_status = (tampered_status(), hostile_json()).prop_map(|(mut work, more)| {
        work["status"]["more"] = more;
        work.to_string()
    });
    let mutated = mutated(vec![work().to_string(), set().to_string()]);
    let mutated = mutated.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    prop_oneof![3 => tampered, 3 => only_status, 1 => mutated].boxed()
}

/// Generates ManifestWorks with an arbitrary status, the only part that an agent can write.
pub fn tampered_status() -> impl Strategy<Value = Value> {
    tampered(vec![work()["status"].clone()]).prop_map(|status| {
        let mut work = work();
        // The API server rejects a status that is not a mapping.
        work["status"] = if status.is_object() {
            status
        } else {
            json!({"conditions": status})
        };
        work
    })
}
