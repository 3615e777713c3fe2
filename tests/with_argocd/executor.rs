//! Tests of the executor that applies a work.

use crate::app::App;
use crate::health_check;
use crate::mistakes::comparison_error;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use serde_json::Value;
use testbed::ObjectRef;

#[tokio::test]
async fn executor_decides_permissions_of_a_work() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    let name = "executor";
    cluster1.create_namespace(name).await?;
    cluster1.apply_yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer, namespace: executor}\n")?;
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {colour: green}}";
    let settings: &[(&str, &[&str])] = &[("executor", &["executor/deployer"])];
    let app = App::start(stage, name, settings, &[("config.yaml", manifest)]).await?;
    let config_map = ObjectRef::config_map(name, "config");

    let refusal = "not allowed to apply the resource  configmaps, executor config";
    let refused = hub
        .wait_for(&app.work(), |work| {
            let conditions = work["status"]["resourceStatus"]["manifests"][0]["conditions"].as_array();
            let applied = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Applied"));
            applied.is_some_and(|applied| applied["status"] == "False" && contains(&applied["message"], refusal))
        })
        .await?;
    // Argo CD also shows the failure: for a minute the work is Progressing.
    let (status, message) = health_check::health(&refused)?;
    assert!(["Progressing", "Degraded"].contains(&&*status), "{status}");
    assert!(message.contains(refusal), "{message}");
    assert!(cluster1.get(&config_map).await?.is_none());

    cluster1.apply_yaml(RIGHTS)?;
    // The agent retries every minute, and at once when the work has changed.
    app.reconcile().await?;
    app.applied().await?;
    cluster1
        .wait_for(&config_map, |it| it["data"]["colour"] == "green")
        .await?;
    hub.wait_for(&app.application(), |app| app["status"]["health"]["status"] == "Healthy")
        .await?;
    app.end().await?;
    cluster1.wait_gone(&config_map).await
}

#[tokio::test]
async fn printed_rights_suffice_for_the_executor() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    let name = "rights";
    cluster1.create_namespace(name).await?;
    cluster1.apply_yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer, namespace: rights}\n")?;
    let objects = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config}}\n---\n\
                   {apiVersion: v1, kind: Namespace, metadata: {name: rights-more}}\n---\n\
                   {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, \
                   rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}\n---\n\
                   {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: rights-viewers}, \
                   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, \
                   subjects: [{kind: ServiceAccount, name: deployer, namespace: rights}]}\n";
    let folder = tempfile::TempDir::new()?;
    std::fs::write(folder.path().join("objects.yaml"), objects)?;
    let printed = std::process::Command::new(crate::stage::program())
        .args(["rights", "--name=rights", "--executor=rights/deployer"])
        .current_dir(folder.path())
        .output()?;
    let printed = String::from_utf8(printed.stdout)?;
    cluster1.apply_yaml(&printed).with_context(|| printed.clone())?;

    let settings: &[(&str, &[&str])] = &[("executor", &["rights/deployer"])];
    let app = App::start(stage, name, settings, &[("objects.yaml", objects)]).await?;
    app.applied().await?;
    cluster1
        .wait_for(&ObjectRef::config_map(name, "config"), |_| true)
        .await?;
    hub.wait_for(&app.application(), |app| app["status"]["health"]["status"] == "Healthy")
        .await?;
    app.end().await
}

/// The agent checks the permissions of the executor for the ConfigMap, but its strategy `Update` decodes the ClusterRoleBinding.
#[tokio::test]
async fn a_manifest_that_the_agent_takes_for_another_is_refused() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    let name = "two-readings";
    cluster1.create_namespace(name).await?;
    let account = RIGHTS.replace("executor", name);
    cluster1.apply_yaml(&format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: deployer, namespace: {name}}}\n---{account}"
    ))?;
    let executor = format!("{name}/deployer");
    let settings: &[(&str, &[&str])] = &[("executor", &[&executor])];
    let good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: takeover}, data: {colour: green}}";
    let app = App::start(stage, name, settings, &[("config.yaml", good)]).await?;
    app.applied().await?;

    app.push(&[("config.yaml", TAKEOVER)]).await?;
    let shown = hub.refresh_application(name, "hard").await?;
    let shown = comparison_error(&shown).context("a ComparisonError")?;
    let expected = "config.yaml:4: document 1: ConfigMap takeover: decoders that ignore case read the key \"apiVer\\u{17f}ion\" as \
                    apiVersion: remove it";
    assert!(shown.contains(expected), "{shown}");
    assert!(
        cluster1
            .get(&ObjectRef::cluster(
                "rbac.authorization.k8s.io/v1",
                "ClusterRoleBinding",
                "takeover"
            ))
            .await?
            .is_none()
    );
    app.end().await
}

const TAKEOVER: &str = "
apiVersion: v1
kind: ConfigMap
\"apiVer\\u017fion\": rbac.authorization.k8s.io/v1
\"\\u212aind\": ClusterRoleBinding
metadata:
  name: takeover
  annotations: {argocd-ocm-cmp.github.io/update-strategy: Update}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: two-readings}]
";

fn contains(text: &Value, part: &str) -> bool {
    text.as_str().is_some_and(|text| text.contains(part))
}

const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: executor}
rules:
- apiGroups: ['']
  resources: [configmaps]
  verbs: [get, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: executor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: deployer, namespace: executor}]
";
