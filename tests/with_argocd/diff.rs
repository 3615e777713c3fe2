//! Tests of `diff` against a real hub: silent when Argo CD has synced; otherwise it prints the changes of the next sync.

use crate::account::account;
use crate::app::App;
use crate::stage::{Outcome, Stage, run, stage};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use testbed::{ObjectRef, wait};

const NAME: &str = "difference";

const FILES: &[(&str, &str)] = &[
    ("web.yaml", include_str!("../data/objects/web.yaml")),
    (
        "settings.yaml",
        r"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  start.sh: |

    exec web <in >out
  ratio: '0.50'
",
    ),
    (
        "late.yaml",
        r"
apiVersion: v1
kind: ConfigMap
metadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: '3'}}
data: {turn: a}
",
    ),
    (
        "secret.yaml",
        r"
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: opensesame, user: me}
",
    ),
    (
        // Argo CD creates its work only when a sync fails.
        "hook.yaml",
        r"
apiVersion: v1
kind: ConfigMap
metadata: {name: sad, annotations: {argocd.argoproj.io/hook: SyncFail}}
",
    ),
];

fn no_output() -> Outcome {
    (Some(0), String::new(), String::new())
}

fn words(cluster: &str) -> String {
    format!("diff . --allow-secrets --name={NAME} --namespace={NAME} --cluster={cluster}")
}

/// Runs `diff` over `folder` with the permissions of a kubeconfig.
fn diff(folder: &Path, kubeconfig: &Path, cluster: &str) -> Result<Outcome> {
    run(folder, Some(kubeconfig), &words(cluster))
}

/// Returns the next commit: a changed object, a changed secret, an object of another wave, and a removed one.
fn change(folder: &Path) -> Result<Vec<(&'static str, String)>> {
    fs::remove_file(folder.join("settings.yaml"))?;
    [
        ("web.yaml", "web:1", "web:2"),
        ("secret.yaml", "opensesame", "closesesame"),
        ("late.yaml", "'3'", "'2'"),
    ]
    .into_iter()
    .map(|(file, from, to)| {
        let text = fs::read_to_string(folder.join(file))?;
        ensure!(text.contains(from), "{file} has no {from}");
        let text = text.replace(from, to);
        fs::write(folder.join(file), &text)?;
        Ok((file, text))
    })
    .collect()
}

#[tokio::test]
async fn predicts_the_next_sync() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    stage.cluster1.create_namespace(NAME).await?;
    let settings: &[(&str, &[&str])] = &[("allow-secrets", &["true"])];
    let app = App::start(stage, NAME, settings, FILES).await?;
    let folder = TempDir::new()?;
    let folder = folder.path();
    for (file, text) in FILES {
        fs::write(folder.join(file), text)?;
    }
    let all = hub.kubeconfig_path();
    assert_eq!(diff(folder, all, "cluster1")?, no_output());
    check_diff_of_kubectl_output(stage, folder)?;
    check_warning_with_few_permissions(stage, folder).await?;

    let changed = change(folder)?;
    let (code, stdout, stderr) = diff(folder, all, "cluster1")?;
    assert_eq!((code, stderr.as_str()), (Some(1), ""), "{stdout}");
    for lines in [
        "cluster1 ManifestWork difference.part-wave2 is new, with 1 object\n",
        "cluster1 ManifestWork difference.part-wave3 is deleted\n",
        "cluster1 ConfigMap difference/late moves from work difference.part-wave3 to difference.part-wave2\n",
        "cluster1 Deployment.apps difference/web\n--- hub: difference\n+++ generated: difference\n@@ ",
        "\n-      - image: web:1\n+      - image: web:2\n",
        "\n-  token: \"*** (before)\"\n+  token: \"*** (after)\"\n   user: \"***\"\n",
        "-    argocd.argoproj.io/sync-wave: \"3\"\n+    argocd.argoproj.io/sync-wave: \"2\"\n",
        "cluster1 ConfigMap difference/settings\n--- hub: difference\n+++ /dev/null\n@@ -1,10 +0,0 @@\n",
        "-    exec web <in >out\n",
    ] {
        assert!(stdout.contains(lines), "{lines}\nis not in\n{stdout}");
    }
    for hidden in ["sesame", "argocd-ocm-cmp.github.io/content-hash: \""] {
        assert!(!stdout.contains(hidden), "{hidden} is in\n{stdout}");
    }

    // The sync makes these changes.
    app.remove(&["settings.yaml"]).await?;
    let changed: Vec<(&str, &str)> = changed.iter().map(|(file, text)| (*file, text.as_str())).collect();
    app.commit(&changed).await?;
    let replaced = ObjectRef::manifest_work("cluster1", "difference.part-wave3");
    hub.wait_gone(&replaced).await?;
    assert_eq!(diff(folder, all, "cluster1")?, no_output());

    // Argo CD's tracking mark identifies the work of a cluster that is no longer a target.
    let (code, stdout, _) = diff(folder, all, "cluster2")?;
    assert_eq!(code, Some(1));
    for line in [
        "cluster1 ManifestWork difference is deleted\n",
        "cluster2 ManifestWork difference is new, with 2 objects\n",
    ] {
        assert!(stdout.contains(line), "{line} is not in\n{stdout}");
    }
    let (_, _, stderr) = diff(folder, all, "cluster9")?;
    let unknown = "warning: managed cluster cluster9 is not registered on the hub: correct its name, or register it";
    assert!(stderr.starts_with(unknown), "{stderr}");
    app.end().await
}

fn check_diff_of_kubectl_output(stage: &Stage, folder: &Path) -> Result<()> {
    let works = folder.with_extension("works");
    fs::write(&works, stage.hub.kubectl("get manifestworks -A -o yaml")?)?;
    let of_file = format!("{} --file={}", words("cluster1"), works.display());
    assert_eq!(run(folder, None, &of_file)?, no_output());
    Ok(fs::remove_file(works)?)
}

async fn check_warning_with_few_permissions(stage: &Stage, folder: &Path) -> Result<()> {
    let kinds = ["manifestworks", "manifestworkreplicasets"];
    let who = account(stage, "diff-reader", &kinds, &["get", "list"])?;
    let (code, stdout, stderr) = wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let printed = diff(folder, &who, "cluster1").ok();
        printed.filter(|printed| printed.0 != Some(2))
    })
    .await?;
    assert_eq!((code, stdout.as_str()), (Some(0), ""));
    let warned = "warning: manifestworks outside the namespaces of the targets are not read: ";
    assert!(stderr.starts_with(warned), "{stderr}");
    Ok(())
}
