//! Tests of the executor that applies a work.

use crate::app::App;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use testbed::ObjectRef;
use testbed::application::has_health;

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
        .args("rights --name=rights --namespace=rights --executor=rights/deployer".split(' '))
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
    hub.wait_for(&app.application(), |app| has_health(app, "Healthy"))
        .await?;
    app.end().await
}
