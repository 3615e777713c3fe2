//! Tests of unusual objects that the API server accepts: the controller processes them, and they do not block others.

use crate::stage::{DEGRADED, INFO, WorkHealth, config_map, messages, stage, writes_of};
use anyhow::ensure;
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};

/// Returns statuses that the schema of ManifestWork permits.
fn odd_statuses() -> Vec<Value> {
    let condition = |kind: &str, status: &str, generation: i64| {
        json!({
            "type": kind, "status": status, "reason": "ConditionRuleEvaluated", "message": "a\nb\u{0}\u{7f}\u{202e}", "observedGeneration": generation,
            "lastTransitionTime": "9999-12-31T23:59:59Z",
        })
    };
    let applied = condition("Applied", "True", 1);
    vec![
        json!({}),
        json!({"conditions": []}),
        json!({"conditions": [condition("Applied", "Unknown", 0), condition("a.b/c", "False", i64::MAX)]}),
        json!({"conditions": [applied], "resourceStatus": {}}),
        json!({"conditions": [applied], "resourceStatus": {"manifests": [{"resourceMeta": {"ordinal": 0}, "conditions": []}]}}),
        json!({"conditions": [applied], "resourceStatus": {"manifests": [
            {"resourceMeta": {"ordinal": i32::MAX, "kind": "\n", "name": "é".repeat(1000)}, "conditions": [
                condition("Applied", "True", 1), condition("Available", "False", 7), condition("Healthy", "Unknown", 1),
            ]},
            {"resourceMeta": {"ordinal": -1}, "conditions": [condition("Progressing", "True", 1)], "statusFeedback": {"values": [
                {"name": "Suspended", "fieldValue": {"type": "Integer", "integer": i64::MIN}},
            ]}},
        ]}}),
    ]
}

#[tokio::test]
async fn works_with_a_malformed_status_affect_no_others() -> anyhow::Result<()> {
    let stage = stage("odd-works").await?;
    let mut unusual = Vec::new();
    for (at, status) in odd_statuses().iter().enumerate() {
        let name = format!("odd-{at}");
        unusual.push(stage.application(&name, WorkHealth::Healthy).await?);
        stage.write_status(&name, status).await?;
    }
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let fine = stage.application("fine", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&fine).await?;
    for application in &unusual {
        let updated = stage.wait_for_condition(application, INFO, "of 1 clusters").await?;
        for condition in updated["status"]["conditions"].as_array().into_iter().flatten() {
            let message = condition["message"].as_str().unwrap_or_default();
            assert!(
                message.len() <= 1024 && !message.contains(char::is_control),
                "{message:?}"
            );
        }
    }
    // A later valid status of the agent is used.
    for application in &unusual {
        stage.report_health(&application.name, WorkHealth::Healthy).await?;
        stage.wait_until_healthy(application).await?;
    }
    assert_eq!(controller.metric("argocd_ocm_cmp_reconcile_errors_total").await?, 0);
    assert_eq!(controller.metric("argocd_ocm_cmp_watch_errors_total").await?, 0);
    Ok(())
}

#[tokio::test]
async fn application_with_odd_conditions_keeps_foreign_ones() -> anyhow::Result<()> {
    let stage = stage("odd-conditions").await?;
    let foreign = [
        json!({"type": "", "message": ""}),
        json!({"type": "", "message": ""}),
        json!({"type": "ManifestWork", "message": "of another controller", "lastTransitionTime": "2020-01-01T01:00:00.5+02:00"}),
        json!({"type": "SyncError", "message": "a\nb\u{7f}", "lastTransitionTime": "2020-01-01T00:00:00Z"}),
    ];
    let ours = [
        json!({"type": DEGRADED, "message": ""}),
        json!({"type": INFO, "message": "applied on x of y clusters, healthy on "}),
        json!({"type": INFO, "message": "twice"}),
    ];
    let application = stage.application("odd", WorkHealth::Healthy).await?;
    let conditions: Vec<_> = ours.iter().chain(&foreign).collect();
    stage
        .hub
        .patch(&application, &json!({"status": {"conditions": conditions}}))
        .await?;
    let proxy = stage.proxy().await?;
    let _controller = stage.controller(&proxy).await?;
    let unusual = stage.wait_until_healthy(&application).await?;
    let conditions = unusual["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in &foreign {
        let count = |all: &[Value]| all.iter().filter(|other| *other == condition).count();
        assert_eq!(count(&conditions), count(&foreign), "{condition}");
    }
    assert_eq!(conditions.len(), foreign.len() + 1, "{conditions:?}");
    assert_eq!(messages(&unusual, INFO).len(), 1);
    assert_eq!(messages(&unusual, DEGRADED), [""; 0]);

    let fine = stage.application("fine", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&fine).await?;
    assert_eq!(writes_of(&proxy.requests(), &application).len(), 1);
    Ok(())
}

#[tokio::test]
async fn works_naming_no_existing_application_are_ignored() -> anyhow::Result<()> {
    let stage = stage("odd-marks").await?;
    let marks = [
        "",
        ":",
        "_:/:/",
        "gone:work.open-cluster-management.io/ManifestWork:odd-marks/mark-3",
        "a_b_c:work.open-cluster-management.io/ManifestWork:odd-marks/mark-4",
    ];
    for (at, mark) in marks.iter().enumerate() {
        let work = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {
                "namespace": stage.cluster,
                "name": format!("mark-{at}"),
                "annotations": {"argocd.argoproj.io/tracking-id": mark},
                "labels": {"work.open-cluster-management.io/manifestworkreplicaset": "no-dot"},
            },
            "spec": {"workload": {"manifests": [config_map("web")]}},
        });
        stage.hub.create(&work).await?;
    }
    let proxy = stage.proxy().await?;
    let _controller = stage.controller(&proxy).await?;
    let fine = stage.application("fine", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&fine).await?;
    let requests = proxy.requests();
    let others = requests
        .iter()
        .filter(|request| request.resource == "applications" && request.is_write());
    assert_eq!(others.count(), writes_of(&requests, &fine).len());
    assert_eq!(stage.hub.get(&ObjectRef::application("gone")).await?, None);
    Ok(())
}

const APPLICATIONS: &str = "customresourcedefinition/applications.argoproj.io";

#[tokio::test]
async fn unparsable_application_is_counted_and_others_are_served() -> anyhow::Result<()> {
    let stage = stage("not-understood").await?;
    // The CRD that another version of Argo CD may have.
    let crd: Value = serde_json::from_str(&stage.hub.kubectl(&["get", APPLICATIONS, "-o", "json"])?)?;
    let allow = |schema: &Value| {
        let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
        let how = ["patch", APPLICATIONS, "--type=json", "--patch-file=/dev/stdin"];
        stage.hub.kubectl_with_input(&how, &patch.to_string())
    };
    allow(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))?;
    let proxy = stage.proxy().await?;
    let unusual = stage.application("odd", WorkHealth::Healthy).await?;
    let served = async {
        let conditions = json!({"status": {"conditions": 7}});
        let is_odd = async || {
            stage
                .hub
                .patch(&unusual, &conditions)
                .await
                .ok()
                .filter(|it| it["status"] == conditions["status"])
        };
        wait::eventually("the CRD accepts any field", wait::DEADLINE, is_odd).await?;
        let controller = stage.controller(&proxy).await?;
        let fine = stage.application("fine", WorkHealth::Healthy).await?;
        stage.wait_until_healthy(&fine).await?;
        let unreadable = "argocd_ocm_cmp_watch_errors_total{kind=\"applications\",reason=\"unreadable\"}";
        ensure!(
            controller.metric(unreadable).await? >= 1,
            "the unreadable object is not counted"
        );
        ensure!(
            writes_of(&proxy.requests(), &unusual).is_empty(),
            "an unreadable Application was written"
        );
        stage.hub.patch(&unusual, &json!({"status": null})).await?;
        stage.wait_until_healthy(&unusual).await
    };
    let served = served.await;
    // Also after a failure: other tests need the CRD.
    allow(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])?;
    served.map(drop)
}
