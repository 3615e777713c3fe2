//! Tests of the executor that applies a work.

use crate::app::App;
use crate::mistakes::comparison_error;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use testbed::ObjectRef;

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
