//! What the agent of a managed cluster writes into the status of its works, and what anybody writes into Secrets and requests.

use super::{Object, Standing, TEXT_MAX, TlsSecret, Work};
use crate::controller::watches::Kept;
use crate::properties::{holds, hostile_json, is_plain_line, mutated, tampered};
use crate::status::{Clock, Report, forecast, judge, progress, table, value};
use crate::yaml;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::{BoxedStrategy, Strategy, prop_oneof};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// A work as the plugin makes it and OCM's agent reports on it.
fn work() -> Value {
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
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "*", "name": "*"},
                "conditionRules": [{"condition": "Healthy"}, {"condition": "Progressing"}],
            }],
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
    set["status"] = json!({
        "conditions": [{
            "type": "ManifestworkApplied", "status": "False", "reason": "Processing", "message": "eu1",
            "lastTransitionTime": "2026-06-01T11:59:30Z", "observedGeneration": 2,
        }],
        "summary": {"total": 3, "applied": 2, "available": 1, "degraded": 1, "progressing": 0},
        "placementSummary": [{"name": "all", "availableDecisionGroups": "1 (3 / 3 clusters applied)", "summary": {"total": 3}}],
    });
    set
}

/// The text of a work that somebody has tampered with.
fn texts() -> BoxedStrategy<String> {
    let tampered = tampered(vec![work(), set()]).prop_map(|work| work.to_string());
    let only_status = (tampered_status(), hostile_json()).prop_map(|(mut work, more)| {
        work["status"]["more"] = more;
        work.to_string()
    });
    let mutated = mutated(vec![work().to_string(), set().to_string()]);
    let mutated = mutated.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    prop_oneof![3 => tampered, 3 => only_status, 1 => mutated].boxed()
}

/// A work whose agent says anything: it may write nothing else.
fn tampered_status() -> impl Strategy<Value = Value> {
    tampered(vec![work()["status"].clone()]).prop_map(|status| {
        let mut work = work();
        // What is no mapping the API server would not take.
        work["status"] = if status.is_object() {
            status
        } else {
            json!({"conditions": status})
        };
        work
    })
}

#[track_caller]
fn assert_bounded(standing: &Standing) {
    let texts = [
        Some(&standing.message),
        standing.refused.as_ref(),
        standing.wrong.as_ref(),
    ];
    for text in texts.into_iter().flatten() {
        assert!(text.len() <= TEXT_MAX && is_plain_line(text), "{text:?}");
    }
}

#[test]
fn what_is_kept_of_a_work_is_short_and_in_one_line() {
    holds(1500, texts, |text| {
        let Ok(Some(work)) = Work::read(&text, now()) else {
            return;
        };
        assert_bounded(&work.standing);
        let mut before = now();
        for (at, standing) in &work.later {
            assert!(*at > before);
            assert_bounded(standing);
            before = *at;
        }
    });
}

#[test]
fn no_work_is_applied_nor_healthy_whose_agent_says_nothing() {
    holds(1500, tampered_status, |work| {
        let text = work.to_string();
        // What has a name of another type than text the API server does not take.
        let Ok(read) = Work::read(&text, now()) else { return };
        let standing = read.expect("it is tracked").standing;
        let conditions = work["status"]["conditions"].as_array().into_iter().flatten();
        let mut applied = conditions.filter(|it| it["type"] == "Applied");
        let is_heard = applied.any(|it| it["status"].is_string());
        if !is_heard {
            assert!(
                !standing.applied && standing.verdict != crate::status::Verdict::Healthy,
                "{standing:?}"
            );
        }
    });
}

#[test]
fn a_work_whose_status_cannot_be_understood_is_not_applied() {
    let mut work = work();
    work["status"] = json!({"conditions": [null]});
    let read = Work::read(&work.to_string(), now())
        .expect("it is read")
        .expect("it is tracked");
    assert_eq!(
        (read.standing.verdict, read.standing.applied),
        (crate::status::Verdict::Unknown, false)
    );
}

#[test]
fn what_people_see_of_a_work_has_one_line_for_each_row() {
    holds(800, texts, |text| {
        let Ok(status) = judge(&text, &Clock::at(now())) else {
            return;
        };
        let rows = status.objects.len();
        let report = Report::new("shop", vec![status], &BTreeSet::new(), None);
        let table = table(&report, false);
        assert!(
            table.lines().count() <= rows + 5 && table.lines().all(is_plain_line),
            "{table:?}"
        );
        assert!(is_plain_line(&progress(&report)));
        let value = value(&report);
        let printed = yaml::write(&value);
        let read: Vec<_> = yaml::documents(&printed).map(|it| it.map(|it| it.value)).collect();
        assert_eq!(read, [Ok(value)], "what -o yaml prints");
    });
}

#[test]
fn health_that_time_alone_changes_comes_in_its_order() {
    holds(800, texts, |text| {
        let Ok(forecast) = forecast(&text, now()) else { return };
        assert!(
            forecast
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1)
        );
        for (at, status) in forecast {
            assert_eq!(judge(&text, &Clock::at(at)), Ok(status));
        }
    });
}

/// Secrets and requests as they are written by us and OCM, with what is no certificate in them.
fn objects() -> BoxedStrategy<String> {
    let secret = json!({
        "metadata": {"name": "argocd-agent-ca", "uid": "u", "resourceVersion": "1", "labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
            "annotations": {"argocd-ocm-cmp.github.io/signs-since": "2026-06-01T12:00:00Z"}},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": "LS0tLS1CRUdJTg==", "tls.key": "c2VjcmV0LWtleS1ieXRlcw==", "next.key": "bmV4dA=="},
    });
    let request = json!({
        "metadata": {"name": "csr", "uid": "u", "resourceVersion": "1"},
        "spec": {"username": "system:open-cluster-management:eu1:agent", "groups": ["system:authenticated"], "request": "LS0tLS1CRUdJTg==",
            "usages": ["digital signature"], "signerName": "open-cluster-management.io/argocd-agent-addon"},
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    });
    tampered(vec![secret, request])
        .prop_map(|object| object.to_string())
        .boxed()
}

#[test]
fn nothing_of_a_secrets_key_is_repeated() {
    holds(1000, objects, |text| {
        let shown = format!("{:?}", TlsSecret::read(&text));
        let error = TlsSecret::authority(&text).err().unwrap_or_default();
        for secret in ["secret-key-bytes", "c2VjcmV0LWtleS1ieXRlcw"] {
            assert!(!shown.contains(secret) && !error.contains(secret), "{shown} {error}");
        }
        for kind in [Kept::Requests, Kept::Issued, Kept::TokenKey] {
            let kept = Object::read(kind, &text);
            if matches!(kind, Kept::Issued | Kept::TokenKey) {
                assert!(!format!("{kept:?}").contains("c2VjcmV0LWtleS1ieXRlcw"), "{kept:?}");
            }
        }
    });
}
