//! Tests of unusual objects that the API server accepts: the controller processes them, and they do not block others.

use crate::stage::{WorkHealth, stage, writes_of};
use anyhow::ensure;
use serde_json::{Value, json};
use testbed::application::{DEGRADED, INFO, messages};
use testbed::wait;

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

const APPLICATIONS: &str = "customresourcedefinition/applications.argoproj.io";

#[tokio::test]
async fn unparsable_application_is_counted_and_others_are_served() -> anyhow::Result<()> {
    let stage = stage("not-understood").await?;
    let hub = &stage.hub;
    // The CRD that another version of Argo CD may have.
    let crd: Value = serde_json::from_str(&hub.kubectl(&["get", APPLICATIONS, "-o", "json"])?)?;
    let allow = |schema: &Value| {
        let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
        let how = ["patch", APPLICATIONS, "--type=json", "--patch-file=/dev/stdin"];
        hub.kubectl_with_input(&how, &patch.to_string())
    };
    allow(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))?;
    let proxy = stage.proxy().await?;
    let unusual = stage.application("odd", WorkHealth::Healthy).await?;
    let served = async {
        let conditions = json!({"status": {"conditions": 7}});
        let is_odd = async || {
            hub.patch(&unusual, &conditions)
                .await
                .ok()
                .filter(|object| object["status"] == conditions["status"])
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
        hub.patch(&unusual, &json!({"status": null})).await?;
        stage.wait_until_healthy(&unusual).await
    };
    let served = served.await;
    // Also after a failure: other tests need the CRD.
    allow(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])?;
    served.map(drop)
}
