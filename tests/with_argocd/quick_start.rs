//! Test of what the shipped AppProject denies.

use crate::stage::{application, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef, condition, is_synced};

#[tokio::test]
async fn argo_cd_refuses_works_in_namespaces_of_the_hub() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let name = "quick-start-argocd";
    let git = GitRepository::new()?;
    let config_map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    git.commit(&[(&format!("{name}/config.yaml"), &config_map)])?;
    // A plugin without a policy, so that only the AppProject denies it.
    let mut app = application(name, &git)?;
    app["spec"]["source"]["plugin"]["env"] = json!([{"name": "TARGET_CLUSTER", "value": "argocd"}]);
    hub.create_application(&app).await?;
    let application = ObjectRef::application(name);
    let refused = "namespace argocd is not permitted in project 'managed-clusters'";
    let is_refused = |app: &Value| {
        let resources = app["status"]["operationState"]["syncResult"]["resources"].as_array();
        resources.is_some_and(|all| {
            all.iter().any(|resource| {
                resource["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(refused))
            })
        })
    };
    hub.wait_for(&application, is_refused).await?;
    assert!(hub.get(&ObjectRef::manifest_work("argocd", name)).await?.is_none());
    // The same Application, for a managed cluster.
    let patch = json!({"operation": null, "spec": {"source": {"plugin": {"env": [{"name": "TARGET_CLUSTER", "value": "cluster1"}]}}}});
    hub.patch(&application, &patch).await?;
    hub.refresh_application(name, "hard").await?;
    hub.wait_for(&application, is_synced).await?;
    assert!(hub.get(&ObjectRef::manifest_work("cluster1", name)).await?.is_some());
    // Argo CD checks the destination's namespace too.
    for namespace in ["argocd", "kube-system", "open-cluster-management-hub", "local-cluster"] {
        let patch = json!({"spec": {"destination": {"namespace": namespace}}});
        hub.patch(&application, &patch).await?;
        let named = format!(
            "namespace '{namespace}' do not match any of the allowed destinations in project 'managed-clusters'"
        );
        let is_invalid = |app: &Value| invalid(app).is_some_and(|message| message.contains(&named));
        hub.wait_for(&application, is_invalid).await?;
    }
    let back = json!({"spec": {"destination": {"namespace": "default"}}});
    hub.patch(&application, &back).await?;
    hub.wait_for(&application, |app| is_synced(app) && invalid(app).is_none())
        .await?;
    hub.delete(&application).await
}

/// Returns Argo CD's error about an invalid Application.
fn invalid(app: &Value) -> Option<&str> {
    condition(app, "InvalidSpecError")?["message"].as_str()
}
