//! Tests of the reports of ApplicationSets with a real API server, which may not serve the kind; the reports are large objects.

use crate::stage::{Stage, WorkHealth, stage, writes};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};

const CONTROLLER: &str = "application-set-report";
const RESOURCE: &str = "multiclusterapplicationsetreports";
fn crd() -> String {
    format!("{}/deploy/report_crd.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a hub that does not serve reports, with an ApplicationSet of this name.
async fn hub(name: &str) -> Result<Stage> {
    let stage = stage(name).await?;
    stage.hub.kubectl(&["delete", "-f", &crd(), "--ignore-not-found"])?;
    stage
        .hub
        .kubectl(&["delete", "applicationsets", "--all", "--all-namespaces"])?;
    let set = ObjectRef::application_set(name).with(json!({
        "spec": {"generators": [], "template": {
            "metadata": {"name": name},
            "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git"}},
        }},
    }));
    stage.hub.create(&set).await?;
    Ok(stage)
}

/// Makes the ApplicationSet the owner of an Application.
async fn own(stage: &Stage, set: &str, application: &ObjectRef) -> Result<()> {
    let set = ObjectRef::namespaced("argoproj.io/v1alpha1", "ApplicationSet", "argocd", set);
    let found = stage.hub.read(&set).await?;
    let owner =
        json!({"apiVersion": set.api_version, "kind": set.kind, "name": set.name, "uid": found["metadata"]["uid"]});
    let patch = json!({"metadata": {"ownerReferences": [owner]}});
    stage.hub.patch(application, &patch).await.map(drop)
}

fn report(name: &str) -> ObjectRef {
    let version = "apps.open-cluster-management.io/v1alpha1";
    ObjectRef::namespaced(version, "MulticlusterApplicationSetReport", "argocd", name)
}

#[tokio::test]
async fn report_is_written_once_the_crd_exists() -> Result<()> {
    let name = "without-reports";
    let stage = hub(name).await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller_for(CONTROLLER, &proxy).await?;
    let application = stage.application("shop", WorkHealth::Healthy).await?;
    own(&stage, name, &application).await?;
    let errors = format!("argocd_ocm_cmp_watch_errors_total{{kind=\"{RESOURCE}\"");
    controller.until_metric(&errors, |errors| errors >= 3).await?;
    let log_lines = controller
        .log()?
        .matches("not served by the hub; continuing without it")
        .count();
    ensure!(log_lines == 1, "logged {log_lines} times:\n{}", controller.log()?);
    assert_eq!(writes(&proxy.requests()), [""; 0]);

    stage.hub.kubectl(&["apply", "-f", &crd()])?;
    let counts =
        |it: &Value| it["statuses"]["summary"]["clusters"] == "1" && it["statuses"]["summary"]["healthy"] == "1";
    let has_it = async || stage.hub.get(&report(name)).await.ok()?.filter(counts);
    wait::eventually("the report exists", wait::DEADLINE, has_it).await?;
    controller.stop().await
}
