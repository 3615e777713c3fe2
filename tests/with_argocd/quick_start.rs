//! Tests of the README's quick start, from `kubectl apply` to removal, with only the shipped files: what they permit, and what
//! they deny.

use crate::policy::{desired_works, messages};
use crate::stage::{PLUGIN_AS_SHIPPED, application, shipped, shipped_object, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef, is_synced};

#[tokio::test]
async fn project_missing_in_the_shipped_policy_delivers_nothing() -> Result<()> {
    let stage = stage().await?;
    let name = "quick-start-web";
    let git = GitRepository::new()?;
    git.commit_folder(&shipped("guestbook"), name)?;
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!("web");
    stage.hub.apply(&project).await?;
    let mut app = application(name, &git)?;
    app["spec"]["source"]["plugin"]["name"] = json!(PLUGIN_AS_SHIPPED);
    app["spec"]["project"] = json!("web");
    stage.hub.create_application(&app).await?;
    let lines = messages(stage, name).await?;
    let start = "the policy has no entry for project web, so it may deliver nothing: add `- names: [web]`, with its clusters, namespaces and \
                 kinds, to `projects` in ";
    assert!(lines.len() == 1 && lines[0].starts_with(start), "{lines:?}");
    // In the project of the policy, and beyond its limits.
    let patch = json!({"spec": {
        "project": "managed-clusters",
        "source": {"plugin": {"env": [{"name": "TARGET_CLUSTER", "value": "drift-default"}]}},
    }});
    stage.hub.patch(&ObjectRef::application(name), &patch).await?;
    assert_eq!(
        messages(stage, name).await?,
        [
            "cluster drift-default: the policy lets project managed-clusters deliver nothing to it, only to cluster1: to allow it, add \
             `drift-default` to `projects[0].clusters`"
        ]
    );
    assert!(desired_works(stage, name).await?.is_empty(), "no work was written");
    stage.hub.delete(&ObjectRef::application(name)).await
}

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
            all.iter()
                .any(|it| it["message"].as_str().is_some_and(|message| message.contains(refused)))
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
    let conditions = app["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|it| it["type"] == "InvalidSpecError");
    found?["message"].as_str()
}
