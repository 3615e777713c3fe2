//! Tests of a release of the chart on the hub, the additions beside it, and its removal.

use super::{Ground, ground, shipped};
use anyhow::{Context, Result, ensure};
use argocd_ocm_cmp::cli::Cli;
use clap::Parser as _;
use std::process::Command;
use testbed::{Part, Parts};

fn helm(ground: &Ground, words: &[&str]) -> Result<String> {
    let home = tempfile::tempdir()?;
    let parts = Parts::ensure()?;
    let mut command = Command::new(parts.program(Part::Helm));
    command.env_clear().env("HOME", home.path());
    command.arg("--kubeconfig").arg(ground.hub.kubeconfig_path());
    let output = command.args(["--namespace", "argocd"]).args(words).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn chart_release_installs_and_uninstalls() -> Result<()> {
    let Some(ground) = ground().await? else { return Ok(()) };
    let before = ground.all()?;
    let chart = shipped("chart");
    let chart = chart.to_str().context("a plain path")?;
    let features = ["--set", "features={plugin,project,policy,pull,ui}"];
    let said = helm(&ground, &[&["install", "ours", chart], &features[..]].concat())?;
    let (_, notes) = said.split_once("\nNOTES:\n").context("notes")?;
    insta::assert_snapshot!("chart-notes", notes.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    let (_, command) = notes.split_once("  argocd-ocm-cmp install ").context("a command")?;
    let (command, _) = command.split_once("\n\n").context("its end")?;
    let command = format!("install {}", command.replace("\\\n", " "));
    let words: Vec<_> = command.split_whitespace().collect();
    Cli::try_parse_from([&["argocd-ocm-cmp"], &words[..]].concat())?;

    let lines = ground.done(&words)?;
    assert_eq!(
        lines,
        "configmap/argocd-cm configured\ndeployment.apps/argocd-repo-server configured\ndeployment.apps/argocd-server configured\n"
    );
    // Helm has created the same objects as `install` would.
    let all = ["install", "--features=plugin,project,policy,pull,ui"];
    let installed = ground.all()?;
    helm(
        &ground,
        &[
            &["upgrade", "ours", chart, "--set", "controller.replicas=3"],
            &features[..],
        ]
        .concat(),
    )?;
    let said = ground.refused(&all)?;
    assert!(
        said.contains(".spec.replicas is managed by \"helm\" with another value: change it with helm, or"),
        "{said}"
    );
    assert_eq!(ground.all()?.len(), installed.len() + 1, "a revision of the release");

    let said = ground.refused(&["uninstall"])?;
    assert!(
        said.starts_with("error: it was installed by Helm: remove the additions"),
        "{said}"
    );
    ground.done(&["uninstall", "--additions-only"])?;
    helm(&ground, &["uninstall", "ours", "--wait"])?;
    // Its CRD and its policy are kept, as set in values.yaml, and are removed with the rest.
    let lines = ground.done(&["uninstall"]);
    assert!(lines.is_err(), "it still says that it is Helm's: {lines:?}");
    let crd = "multiclusterapplicationsetreports.apps.open-cluster-management.io";
    ground.hub.kubectl(&["delete", "crd", crd])?;
    let policy = ["delete", "configmap", "argocd-ocm-cmp-policy", "-n", "argocd"];
    ground.hub.kubectl(&policy)?;
    ground.until(&before).await
}
