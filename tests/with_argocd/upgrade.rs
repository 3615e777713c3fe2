//! Tests that an upgrade of the plugin and of the health check writes no work.

use crate::stage::{application, argocd, hub_with, program};
use crate::upgrades::{Case, cases, recorded};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use testbed::{GitRepository, Hub, ObjectRef, is_synced};

/// Writes a program that prints the works that the release before generated.
fn write_program_of_release_before(program: &Path) -> Result<()> {
    let works = recorded("$ARGOCD_APP_NAME");
    fs::write(
        program,
        format!("#!/bin/sh\n[ \"$1\" = generate ] && exec cat \"{}\"\n", works.display()),
    )?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Changes the text of the health check in argocd-cm, as a release does that changes a verdict.
async fn change_health_check(hub: &Hub) -> Result<()> {
    let config_map = ObjectRef::config_map("argocd", "argocd-cm");
    let key = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
    let now = hub.read(&config_map).await?;
    let lua = now["data"][key].as_str().context("a health check of works")?;
    let changed = format!("-- The next release.\n{lua}");
    hub.patch(&config_map, &json!({"data": {key: changed}})).await.map(drop)
}

/// Returns the resource version of each work, which every write changes.
async fn works(hub: &Hub) -> Result<BTreeMap<String, Value>> {
    let works = hub.works().await?;
    let version = |work: &Value| {
        (
            work["metadata"]["name"].to_string(),
            work["metadata"]["resourceVersion"].clone(),
        )
    };
    Ok(works.iter().map(version).collect())
}

#[tokio::test]
async fn upgrade_writes_no_work_and_no_application_becomes_out_of_sync() -> Result<()> {
    let hub = hub_with(&["proj.yaml", "cm_plugin.yaml"]).await?;
    hub.declare_managed_cluster("cluster1").await?;
    let programs = TempDir::new()?;
    let installed = programs.path().join("argocd-ocm-cmp");
    write_program_of_release_before(&installed)?;
    let mut argocd = argocd(&hub, "plugin-upgrade").await?;
    programs.path().clone_into(&mut argocd.plugins[0].path);
    hub.start_argocd(argocd).await?;
    let cases = cases();
    assert_eq!(cases.len(), 30);
    let git = GitRepository::new()?;
    let file = |case: &Case| format!("{}/all.yaml", case.name);
    let files: Vec<_> = cases.iter().map(|case| (file(case), &*case.manifests)).collect();
    git.commit(&files.iter().map(|(file, text)| (&**file, *text)).collect::<Vec<_>>())?;
    for case in &cases {
        let mut app = application(&case.name, &git)?;
        if let Some((name, value)) = case.setting {
            app["spec"]["source"]["plugin"]["parameters"] = json!([{"name": name, "string": value}]);
        }
        hub.create_application(&app).await?;
    }
    for case in &cases {
        hub.wait_for(&ObjectRef::application(&case.name), is_synced).await?;
    }

    let before = works(&hub).await?;
    assert!(before.len() >= cases.len(), "{before:?}");
    let next = programs.path().join("next");
    fs::copy(program(), &next)?;
    fs::rename(next, &installed)?;
    change_health_check(&hub).await?;
    let mut out_of_sync = Vec::new();
    for case in &cases {
        let compared = hub.refresh_application(&case.name, "hard").await?;
        if !is_synced(&compared) {
            out_of_sync.push(&case.name);
        }
    }
    assert!(out_of_sync.is_empty(), "{out_of_sync:?}");
    assert_eq!(works(&hub).await?, before);

    // The new program runs: a change in Git arrives, with a write of its work only.
    let changed = cases[0].manifests.replace("web:1", "web:2");
    let commit = git.commit(&[(&file(&cases[0]), &changed)])?;
    hub.refresh_application(&cases[0].name, "normal").await?;
    let has_commit = |app: &Value| is_synced(app) && app["status"]["sync"]["revision"] == commit;
    hub.wait_for(&ObjectRef::application(&cases[0].name), has_commit)
        .await?;
    let mut after = works(&hub).await?;
    after.retain(|name, version| before.get(name) != Some(version));
    assert_eq!(after.keys().collect::<Vec<_>>(), [&json!(cases[0].name).to_string()]);
    Ok(())
}
