//! Tests of Argo CD's own commands and options with an Application of the plugin, as docs/argocd-commands.md describes them.

use super::{colour, desk};
use crate::app::open_gate;
use crate::stage::shipped_object;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use testbed::{GitRepository, ObjectRef, is_true, wait};

#[tokio::test]
async fn commands_show_deliver_and_undo_what_clusters_get() -> Result<()> {
    let desk = desk().await?;
    let git = GitRepository::new()?;
    let name = "commands";
    let file = "commands/colour.yaml";
    let first = git.commit(&[(file, &colour(name, "green"))])?;
    desk.create(name, &git, |_| {}).await?;
    desk.sync(name)?;
    // `wait` returns after the agent has reported the object, not when the work is on the hub.
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    let second = git.commit(&[(file, &colour(name, "blue"))])?;
    let diff = desk.run(&["app", "diff", name, "--hard-refresh"])?;
    assert_eq!(diff.code, Some(1), "{diff:?}");
    for line in ["ManifestWork cluster1/commands", "colour: green", "colour: blue"] {
        assert!(diff.output.contains(line), "no {line} in {diff:?}");
    }
    let manifests = desk.argocd(&["app", "manifests", name])?;
    assert!(
        manifests.contains("kind: ManifestWork") && manifests.contains("colour: blue"),
        "{manifests}"
    );
    let before = desk.argocd(&["app", "manifests", name, "--revision", &first])?;
    assert!(before.contains("colour: green"), "{before}");
    let live = desk.argocd(&["app", "manifests", name, "--source=live"])?;
    assert!(
        live.contains("colour: green") && live.contains("resourceStatus"),
        "{live}"
    );

    fs::write(git.path().join(file), colour(name, "red"))?;
    // The root of the repository; the Application has the path below it.
    let root = git.path().to_str().context("a plain path")?;
    let local = ["app", "diff", name, "--local", root];
    let diff = desk.run(&[&local[..], &["--server-side-generate"]].concat())?;
    assert_eq!(diff.code, Some(1), "{diff:?}");
    assert!(diff.output.contains("colour: red"), "{diff:?}");
    let diff = desk.run(&local)?;
    assert_eq!(diff.code, Some(20), "{diff:?}");
    assert!(diff.errors.contains("does not work with plugins"), "{diff:?}");

    fs::write(git.path().join(file), colour(name, "blue"))?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "blue"}));
    let diff = desk.run(&["app", "diff", name])?;
    assert_eq!(diff.code, Some(0), "{diff:?}");
    let history = desk.argocd(&["app", "history", name])?;
    for commit in [&first, &second] {
        assert!(history.contains(&commit[..7]), "{history}");
    }

    desk.argocd(&["app", "set", name, "--sync-policy=automated"])?;
    let refused = desk.run(&["app", "rollback", name, "0"])?;
    assert!(refused.errors.contains("auto-sync is enabled"), "{refused:?}");
    desk.argocd(&["app", "set", name, "--sync-policy=none"])?;
    desk.argocd(&["app", "rollback", name, "0", "--timeout=600"])?;
    desk.argocd(&["app", "wait", name, "--health", "--operation", "--timeout=600"])?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    desk.delete(name)?;
    assert!(desk.data(name).await.is_err());
    Ok(())
}

#[tokio::test]
async fn closed_sync_window_keeps_what_clusters_have() -> Result<()> {
    let desk = desk().await?;
    let git = GitRepository::new()?;
    let name = "window";
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!(name);
    desk.hub.apply(&project).await?;
    git.commit(&[("window/colour.yaml", &colour(name, "green"))])?;
    desk.create(name, &git, |app| {
        app["spec"]["project"] = json!(name);
        app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
    })
    .await?;
    desk.wait(name)?;

    let project = ObjectRef::app_project(name);
    let windows = json!([{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}]);
    desk.hub
        .patch(&project, &json!({"spec": {"syncWindows": windows}}))
        .await?;
    let commit = git.commit(&[("window/colour.yaml", &colour(name, "blue"))])?;
    let application = ObjectRef::application(name);
    let is_behind = |app: &Value| {
        let sync = &app["status"]["sync"];
        sync["status"] == "OutOfSync" && sync["revision"] == *commit
    };
    desk.hub.refresh_application(name, "hard").await?;
    desk.hub.wait_for(&application, is_behind).await?;
    let refused = desk.run(&["app", "sync", name])?;
    assert!(refused.errors.contains("blocked by sync window"), "{refused:?}");
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    desk.hub
        .patch(&project, &json!({"spec": {"syncWindows": null}}))
        .await?;
    desk.hub.refresh_application(name, "normal").await?;
    desk.wait(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "blue"}));
    desk.delete(name)
}

#[tokio::test]
async fn respected_differences_freeze_a_work_and_doctor_finds_them() -> Result<()> {
    let desk = desk().await?;
    let git = GitRepository::new()?;
    let name = "frozen";
    let object = |value: &str, more: &str| colour(name, value) + more;
    git.commit(&[("frozen/colour.yaml", &object("green", ""))])?;
    desk.create(name, &git, |app| {
        app["spec"]["ignoreDifferences"] = json!([{
            "group": "work.open-cluster-management.io",
            "kind": "ManifestWork",
            "jqPathExpressions": [".spec.workload.manifests[].data.colour"],
        }]);
        app["spec"]["syncPolicy"] = json!({"syncOptions": ["RespectIgnoreDifferences=true"]});
    })
    .await?;
    desk.sync(name)?;

    git.commit(&[("frozen/colour.yaml", &object("blue", "  size: large\n"))])?;
    desk.hub.refresh_application(name, "hard").await?;
    desk.argocd(&["app", "sync", name, "--timeout=600"])?;
    let application = ObjectRef::application(name);
    let is_frozen = |app: &Value| {
        app["status"]["sync"]["status"] == "OutOfSync" && app["status"]["operationState"]["phase"] == "Succeeded"
    };
    desk.hub.wait_for(&application, is_frozen).await?;
    assert_eq!(desk.data(name).await?, json!({"colour": "green"}));

    let findings = desk.findings()?;
    assert!(findings.contains("applications-freeze-works"), "{findings}");

    // Without the option, the sync applies all of the work.
    desk.hub
        .patch(&application, &json!({"spec": {"syncPolicy": {"syncOptions": null}}}))
        .await?;
    desk.sync(name)?;
    assert_eq!(desk.data(name).await?, json!({"colour": "blue", "size": "large"}));
    desk.delete(name)
}

const BACKUP: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: backup
  annotations: {argocd.argoproj.io/hook: PreDelete}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {gate: pre-delete}
      tolerations: [{key: gate, value: pre-delete}]
      containers: [{name: backup, image: example.com/backup:1}]
";

/// The number of deletions. Argo CD 3.6.1 sometimes takes a hook that it has just created for completed, and deletes everything (of 23
/// deletions, 2): docs/argocd-commands.md warns of it.
const DELETIONS: usize = 6;

#[tokio::test]
async fn deletion_waits_until_a_pre_delete_hook_has_run_on_the_cluster() -> Result<()> {
    let desk = desk().await?;
    let git = GitRepository::new()?;
    let name = "pre-delete";
    git.commit(&[
        ("pre-delete/colour.yaml", &colour(name, "green")),
        ("pre-delete/backup.yaml", BACKUP),
    ])?;
    let (application, object) = (ObjectRef::application(name), ObjectRef::config_map("default", name));
    let jobs = async || {
        let mut jobs = desk.cluster1.list("batch/v1", "Job").await?;
        jobs.retain(|job| {
            job["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("backup"))
        });
        anyhow::Ok(jobs)
    };
    for _ in 0..DELETIONS {
        desk.create(name, &git, |_| {}).await?;
        desk.sync(name)?;
        assert!(jobs().await?.is_empty(), "the hook runs before the deletion only");

        desk.argocd(&["app", "delete", name, "--yes", "--wait=false"])?;
        let waits = async || match jobs().await.ok()?.len() {
            0 => desk.hub.get(&application).await.ok()?.is_none().then_some(false),
            _ => Some(desk.cluster1.get(&object).await.ok()?.is_some()),
        };
        let waits = wait::eventually("the hook runs on the cluster", wait::DEADLINE, waits).await?;
        if waits {
            ensure!(jobs().await?.first().is_none_or(|job| !is_true(job, "Complete")));
            open_gate(&desk.cluster1, name).await?;
        }
        desk.hub.wait_gone(&application).await?;
        desk.cluster1.wait_gone(&object).await?;
        let gone = async || jobs().await.ok()?.is_empty().then_some(());
        wait::eventually("the hook's work is deleted", wait::DEADLINE, gone).await?;
        if waits {
            return Ok(());
        }
    }
    bail!("Argo CD has waited for no hook in {DELETIONS} deletions")
}
