//! Tests of `status` against a real hub: the health that Argo CD shows, object by object, with the agent's own messages.

use crate::account::account;
use crate::app::App;
use crate::stage::{Outcome, Stage, run, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use testbed::wait;

const NAME: &str = "well-or-not";

const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";

const WEB: &str = include_str!("../data/objects/web.yaml");

/// An object whose namespace does not exist, as the agent reports.
const LOST: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: well-or-not-else}\ndata: {a: b}\n";

/// Runs `status`.
pub(crate) fn printed(kubeconfig: &Path, words: &[&str]) -> Result<Outcome> {
    run(Path::new("/"), Some(kubeconfig), &[&["status"], words].concat())
}

/// Runs `status` without an answer, and returns the error of one line.
fn refused(kubeconfig: &Path, words: &[&str]) -> Result<String> {
    let (code, stdout, stderr) = printed(kubeconfig, words)?;
    assert_eq!(
        (code, &*stdout, stderr.lines().count()),
        (Some(2), "", 1),
        "{words:?}: {stderr}"
    );
    Ok(stderr)
}

/// Asserts that each line names the Application, and that none is repeated.
pub(crate) fn assert_is_progress(stderr: &str, application: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(
        lines.iter().all(|line| line.starts_with(&format!("{application} "))),
        "{stderr}"
    );
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{stderr}");
}

/// Returns the cells of a table's lines up to the totals.
pub(crate) fn cells(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().take_while(|line| !line.is_empty());
    lines
        .map(|line| {
            line.split("   ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect()
}

/// A manifest that is no YAML.
const BROKEN: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: broken}
data: a: b: c
";

#[tokio::test(flavor = "multi_thread")]
async fn shows_problems_until_everything_is_healthy() -> Result<()> {
    let stage = stage().await?;
    let all = stage.hub.kubeconfig_path();
    stage.cluster1.create_namespace(NAME).await?;
    let app = App::start(stage, NAME, &[], &[("settings.yaml", SETTINGS), ("web.yaml", WEB)]).await?;

    let (code, stdout, stderr) = printed(all, &[NAME, "--wait"])?;
    assert_eq!(code, Some(0), "{stdout}");
    assert_is_progress(&stderr, NAME);
    let line = |object| vec!["cluster1", NAME, object, "yes", "yes", "Healthy"];
    let headings = vec!["CLUSTER", "WORK", "OBJECT", "APPLIED", "AVAILABLE", "HEALTH", "MESSAGE"];
    let [settings, web] = ["ConfigMap well-or-not/settings", "Deployment.apps well-or-not/web"];
    assert_eq!(cells(&stdout), [headings, line(settings), line(web)], "{stdout}");
    let totals = "\nwell-or-not is Healthy: 1 of 1 cluster healthy; objects: 2 Healthy\n";
    assert!(stdout.ends_with(totals), "{stdout}");
    assert!(stdout.lines().all(|line| line == line.trim_end()), "{stdout}");
    for name in ["argocd/well-or-not", "argocd_well-or-not"] {
        assert_eq!(printed(all, &[name])?, (Some(0), stdout.clone(), String::new()));
    }

    // An object whose namespace does not exist.
    app.push(&[("lost.yaml", LOST)]).await?;
    let first = "cluster1|well-or-not|ConfigMap well-or-not-else/lost|no|no|";
    let message = "Failed to apply manifest: namespaces \"well-or-not-else\" not found";
    // The agent applies it, and checks it later.
    wait::eventually("the failure is reported", wait::DEADLINE, async || {
        let (code, stdout, _) = printed(all, &[NAME]).ok()?;
        let worst = cells(&stdout).get(1)?.join("|");
        (code == Some(1) && worst.starts_with(first) && worst.ends_with(message)).then_some(())
    })
    .await?;
    check_json(all)?;
    check_overviews(all).await?;

    // The wait has a limit.
    let (code, stdout, stderr) = printed(all, &[NAME, "--wait", "--timeout=1s"])?;
    assert_eq!(code, Some(1), "{stdout}");
    let progress = stderr.strip_suffix("error: gave up after 1s\n");
    assert_is_progress(progress.context("the command gave up")?, NAME);
    assert!(stdout.contains(message), "{stdout}");
    // Waits until the Application is repaired, and prints each change.
    let watching =
        tokio::task::spawn_blocking(|| printed(all, &[NAME, "--wait", "--watch", "--timeout=5m", "-o", "json"]));
    stage.cluster1.create_namespace("well-or-not-else").await?;
    app.reconcile().await?;
    let (code, stdout, stderr) = watching.await??;
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{stdout}");
    let last: Value = serde_json::from_str(lines.last().context("a line")?)?;
    assert_eq!(
        (&last["health"], &last["objects"]),
        (&json!("Healthy"), &json!({"Healthy": 3}))
    );

    check_few_permissions(stage).await?;
    check_errors(stage)?;

    // Argo CD cannot compare the Application. Its works are still on the cluster.
    app.push(&[("broken.yaml", BROKEN)]).await?;
    let what = "an Application that cannot be compared is on its cluster";
    wait::eventually(what, wait::DEADLINE, async || {
        let ours = overview_of_ours(all, &["--clusters=cluster1"])?;
        (ours["sync"] == "Unknown" && ours["works"] == json!([NAME])).then_some(())
    })
    .await?;
    app.remove(&["broken.yaml"]).await?;
    app.end().await
}

fn check_json(all: &Path) -> Result<()> {
    let (code, stdout, _) = printed(all, &[NAME, "-o", "json"])?;
    assert_eq!(code, Some(1));
    let report: Value = serde_json::from_str(&stdout)?;
    let objects = report["works"][0]["objects"].as_array().context("objects")?;
    let lost = objects.iter().find(|object| object["name"] == "lost");
    let lost = lost.context("the object does not exist")?;
    assert_eq!((&lost["kind"], &lost["applied"]), (&json!("ConfigMap"), &json!(false)));
    assert_eq!(report["clusters"], json!({"healthy": 0, "total": 1}));
    assert_eq!(report["application"], NAME);
    Ok(())
}

/// Returns our Application in a list.
fn overview_of_ours(all: &Path, words: &[&str]) -> Option<Value> {
    let (_, stdout, _) = printed(all, &[words, &["-o", "json"]].concat()).ok()?;
    let list: Value = serde_json::from_str(&stdout).ok()?;
    let mut items = list["items"].as_array()?.iter();
    items.find(|item| item["application"] == NAME).cloned()
}

/// Checks the lists of all Applications, and of those on a cluster. Other tests have Applications there, too.
async fn check_overviews(all: &Path) -> Result<()> {
    let on_cluster = ["--clusters=cluster1", "--project=managed-clusters"];
    for (words, place) in [(&["--all"][..], ""), (&on_cluster[..], "cluster1/")] {
        let lists_ours = async || {
            let ours = overview_of_ours(all, words)?;
            let is_told =
                ours["project"] == "managed-clusters" && ours["message"].to_string().contains("well-or-not-else");
            is_told.then_some(())
        };
        // The first shows what Argo CD and the controller wrote.
        wait::eventually(&format!("{words:?} lists {NAME}"), wait::DEADLINE, lists_ours).await?;
        let unhealthy = [words, &["-o", "name", "--health=degraded,progressing,waiting"]].concat();
        let (code, stdout, _) = printed(all, &unhealthy)?;
        assert_eq!(code, Some(1));
        assert!(stdout.lines().any(|line| line == format!("{place}{NAME}")), "{stdout}");
    }
    Ok(())
}

async fn check_few_permissions(stage: &Stage) -> Result<()> {
    let who = account(stage, "status-reader", &["manifestworks"], &["get", "list"])?;
    let (code, stdout, stderr) = wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let printed = printed(&who, &[NAME, "--cluster=cluster1"]).ok();
        printed.filter(|printed| printed.0 != Some(2))
    })
    .await?;
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let error = refused(&who, &[NAME])?;
    let remediation = ": name managed clusters whose works you may read with --clusters\n";
    assert!(
        error.starts_with("error: the hub at https://") && error.ends_with(remediation),
        "{error}"
    );
    let error = refused(&who, &["--clusters=cluster1"])?;
    let lacks = "cannot be read: user system:serviceaccount:default:status-reader lacks the permission to get \
                 applications.argoproj.io in namespace argocd\n";
    assert!(error.contains(lacks), "{error}");
    Ok(())
}

fn check_errors(stage: &Stage) -> Result<()> {
    let who = account(stage, "status-stranger", &["manifestworks"], &["get"])?;
    let error = refused(&who, &[NAME, "--clusters=cluster1"])?;
    let lacks = "user system:serviceaccount:default:status-stranger lacks the permission to list \
                 manifestworks.work.open-cluster-management.io in namespace cluster1\n";
    assert!(
        error.starts_with("error: the hub at https://") && error.contains(lacks),
        "{error}"
    );

    let all = stage.hub.kubeconfig_path();
    let error = refused(all, &["no-such-application"])?;
    let unknown =
        "has no Application argocd/no-such-application, and no works of it: check its name, or pass NAMESPACE/NAME\n";
    assert!(error.contains(unknown), "{error}");
    for shown in [NAME, "--all", "--clusters=cluster1"] {
        let error = refused(all, &[shown, "-n", "argo"])?;
        let elsewhere = "error: namespace argo has no Argo CD: it has no ConfigMap argocd-cm: pass the namespace of Argo CD with \
                         --namespace: argocd";
        assert!(error.starts_with(elsewhere), "{error}");
    }
    let (code, stdout, _) = printed(all, &[NAME, "--clusters=cluster9"])?;
    let unknown = "managed cluster cluster9 is not registered on the hub: ";
    assert!(
        code == Some(1) && stdout.starts_with(&format!("well-or-not has no works: {unknown}")),
        "{stdout}"
    );
    let error = refused(all, &["--clusters=cluster9"])?;
    assert!(error.starts_with(&format!("error: {unknown}")), "{error}");
    Ok(())
}
