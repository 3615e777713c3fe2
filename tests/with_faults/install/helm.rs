//! Tests of a release of the chart on the hub, the additions beside it, and its removal.

use super::{Installation, installation, printed, shipped};
use anyhow::{Context, Result, ensure};
use argocd_ocm_cmp::cli::Cli;
use clap::Parser as _;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use testbed::{Arguments, ObjectRef, Part, Parts};

/// Runs Helm in a namespace of the hub, and returns its output.
pub(super) fn helm(installation: &Installation, namespace: &str, words: &(impl Arguments + ?Sized)) -> Result<String> {
    let words = words.words();
    let home = tempfile::tempdir()?;
    let parts = Parts::ensure()?;
    let mut command = Command::new(parts.program(Part::Helm));
    command.env_clear().env("HOME", home.path());
    command.arg("--kubeconfig").arg(installation.hub.kubeconfig_path());
    let output = command.args(["--namespace", namespace]).args(&words).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The lines about Argo CD's own objects.
const CONFIGURED: &str = "\
configmap/argocd-cm configured
deployment.apps/argocd-repo-server configured
deployment.apps/argocd-server configured
";

/// The account of the Jobs that add fields to Argo CD's own objects.
const JOBS: &str = "argocd-ocm-cmp-additions";

#[tokio::test]
async fn jobs_of_the_chart_add_and_remove_fields_with_their_own_permissions() -> Result<()> {
    let installation = installation().await?;
    assert_eq!(
        installation.run_err(&["install", "--additions-only", "--no-policy", "--features=plugin,ui"])?,
        "error: ConfigMap argocd/argocd-ocm-cmp does not exist: install or upgrade the Helm release with these features first\n\
         error: ConfigMap argocd/argocd-ocm-cmp-ui does not exist: install or upgrade the Helm release with these features first\n"
    );
    let (hub, chart) = (&installation.hub, shipped("chart"));
    let chart = chart.to_str().context("a plain path")?;
    let values = "--set additionsJob.enabled=true,features={plugin,project,ui}";
    // There is nothing that runs Jobs: the test runs their commands.
    let install = format!("install ours {chart} --no-hooks {values}");
    helm(&installation, "argocd", &install)?;
    let words = format!("template ours {chart} --show-only templates/additions_job.yaml {values}");
    let jobs = helm(&installation, "argocd", &words)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("jobs.yaml");
    fs::write(&file, jobs)?;
    hub.apply_file(&file, &["-n", "argocd"])?;
    let permissions: [&str; 2] = [
        "patch configmaps/argocd-cm --namespace=argocd",
        "patch deployments.apps/argocd-server --namespace=argocd",
    ];
    hub.wait_for_permissions("argocd", JOBS, &permissions).await?;
    let kubeconfig = hub.service_account_kubeconfig("argocd", JOBS)?;
    let run = async |name: &str| -> Result<String> {
        let job = ObjectRef::namespaced("batch/v1", "Job", "argocd", &format!("{JOBS}-{name}"));
        let job = hub.read(&job).await?;
        let command = &job["spec"]["template"]["spec"]["containers"][0]["command"];
        let words = command.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut program = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
        program.env_clear().args(words.skip(1));
        let output = program.arg("--kubeconfig").arg(&kubeconfig).output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    assert_eq!(run("install").await?, CONFIGURED);
    assert_eq!(run("install").await?, CONFIGURED.replace("configured", "unchanged"));
    // The release no longer has the features `project` and `ui`.
    let upgraded = ["upgrade", "ours", chart, "--no-hooks", "--set", "features={plugin}"];
    helm(&installation, "argocd", &upgraded)?;
    let script = ObjectRef::config_map("argocd", "argocd-ocm-cmp-ui");
    hub.read(&script).await.context("argocd-server still mounts it")?;
    let project = ObjectRef::namespaced("argoproj.io/v1alpha1", "AppProject", "argocd", "managed-clusters");
    hub.read(&project).await.context("Applications still need it")?;
    helm(&installation, "argocd", &["rollback", "ours", "1", "--no-hooks"])?;
    helm(&installation, "argocd", &upgraded)?;
    hub.delete(&script).await?;
    let findings = installation.run(&["doctor", "argo-cd"])?;
    let findings = String::from_utf8_lossy(&findings.stdout);
    assert!(
        findings.contains("Deployment argocd/argocd-server mounts ConfigMap argocd/argocd-ocm-cmp-ui"),
        "{findings}"
    );
    let lines = installation.run_ok(&["install", "--additions-only", "--features=plugin"])?;
    assert!(lines.starts_with("deployment.apps/argocd-server restored\n"), "{lines}");
    let server = hub.read(&ObjectRef::deployment("argocd", "argocd-server")).await?;
    assert!(!server["spec"].to_string().contains("argocd-ocm-cmp"), "{server}");
    run("uninstall").await?;

    hub.kubectl(&["delete", "-n", "argocd", "-f", file.to_str().context("a plain path")?])?;
    helm(&installation, "argocd", &["uninstall", "ours", "--wait", "--no-hooks"])?;
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await
}

#[tokio::test]
async fn chart_release_installs_and_uninstalls() -> Result<()> {
    let installation = installation().await?;
    let chart = shipped("chart");
    let chart = chart.to_str().context("a plain path")?;
    let features = ["--set", "features={plugin,project,policy,argocd-rbac,pull,ui}"];
    let install = [&["install", "ours", chart], &features[..]].concat();
    let output = helm(&installation, "argocd", &install)?;
    let (_, notes) = output.split_once("\nNOTES:\n").context("notes")?;
    insta::assert_snapshot!("chart-notes", notes.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    let (_, command) = notes.split_once("  argocd-ocm-cmp install ").context("a command")?;
    let (command, _) = command.split_once("\n\n").context("its end")?;
    let command = format!("install {}", command.replace("\\\n", " "));
    let words: Vec<_> = command.split_whitespace().collect();
    Cli::try_parse_from([&["argocd-ocm-cmp"], &words[..]].concat())?;

    let lines = installation.run_ok(&words)?;
    assert_eq!(lines, CONFIGURED);
    // What an administrator has narrowed stays.
    let project = ObjectRef::namespaced("argoproj.io/v1alpha1", "AppProject", "argocd", "managed-clusters");
    let destinations = json!([{"namespace": "cluster1", "server": "https://kubernetes.default.svc"}]);
    let narrowed = json!({"spec": {"destinations": destinations}});
    installation.hub.patch(&project, &narrowed).await?;
    let role = ObjectRef::cluster_role("argocd-ocm-cmp");
    let rules =
        json!([{"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"], "verbs": ["get"]}]);
    installation.hub.patch(&role, &json!({"rules": rules})).await?;
    // Helm has created the same objects as `install` would.
    let all = ["install", "--features=plugin,project,policy,argocd-rbac,pull,ui"];
    let installed = installation.all()?;
    let constraints = r#"controller.topologySpreadConstraints=[{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]"#;
    let upgrade = [&["upgrade", "ours", chart, "--set-json", constraints], &features[..]].concat();
    helm(&installation, "argocd", &upgrade)?;
    assert_eq!(
        installation.hub.read(&project).await?["spec"]["destinations"],
        destinations
    );
    assert_eq!(installation.hub.read(&role).await?["rules"], rules);
    let error = installation.run_err(&all)?;
    assert!(
        error.contains(".maxSkew is managed by \"helm\" with another value: change it with helm, or"),
        "{error}"
    );
    assert_eq!(
        installation.all()?.len(),
        installed.len() + 1,
        "one more Secret, with the revision of the release"
    );

    let error = installation.run_err(&["uninstall"])?;
    assert!(
        error.starts_with("error: it was installed by Helm: remove the additions"),
        "{error}"
    );
    installation.run_ok(&["uninstall", "--additions-only"])?;
    helm(&installation, "argocd", &["uninstall", "ours", "--wait"])?;
    // Helm has kept its CRD, its policy, the AppProject and the ConfigMaps that Argo CD mounts.
    let lines = installation.run_ok(&["uninstall"])?;
    assert_eq!(lines.matches(" deleted\n").count(), 5, "{lines}");
    installation.until_restored().await
}

/// The chart argo-cd can have the sidecar in its values, and an Application of Argo CD our fields.
#[tokio::test]
async fn uninstall_keeps_config_maps_that_argo_cd_still_mounts() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    installation.run_ok("install --no-policy --features=plugin")?;
    let objects = printed("json", "--features=plugin")?;
    let repo_server = objects.lines().find(|line| line.contains(r#""kind":"Deployment""#));
    let folder = tempfile::tempdir()?;
    let apply_theirs = |text: &str| {
        let file = folder.path().join("theirs.yaml");
        fs::write(&file, text)?;
        hub.apply_file(&file, &["--server-side", "--field-manager=theirs", "--force-conflicts"])
    };
    apply_theirs(repo_server.context("a Deployment")?)?;
    let kept = "configmap/argocd-ocm-cmp kept: Argo CD's Pods need it to start: remove the volume there, then uninstall again\n";
    for words in ["uninstall --dry-run", "uninstall"] {
        let lines = installation.run_ok(words)?;
        assert!(lines.contains(kept), "{lines}");
        hub.read(&ObjectRef::config_map("argocd", "argocd-ocm-cmp")).await?;
    }
    let bare = ObjectRef::deployment("argocd", "argocd-repo-server").with(json!({}));
    apply_theirs(&bare.to_string())?;
    let lines = installation.run_ok("uninstall")?;
    assert!(lines.contains("configmap/argocd-ocm-cmp deleted\n"), "{lines}");
    installation.until_restored().await
}
