//! Tests of upgrades of an installation by kubectl, from the files of an earlier release.

use super::principal::make_ready;
use super::{ALL, IMAGE, Installation, installation, name, printed, read_shipped, shipped, without_history};
use crate::documents::documents;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use testbed::proxy::{Fault, Proxy, Times};

/// The files, applied as documented in their comments.
const BY_KUBECTL: [(&str, &[&str]); 11] = [
    (
        "apply",
        &[
            "proj.yaml",
            "cm_plugin.yaml",
            "deploy/policy_cm.yaml",
            "deploy/appset_placement.yaml",
            "deploy/argocd_rbac.yaml",
            "deploy/argocd_actions.yaml",
        ],
    ),
    (
        "apply --server-side --field-manager argocd-ocm-cmp",
        &["deploy/argocd_cm.yaml", "deploy_cmp.yaml", "deploy/deploy_ui.yaml"],
    ),
    (
        "apply --server-side --field-manager argocd-ocm-cmp-principal",
        &["deploy/deploy_principal.yaml", "deploy/redis_proxy.yaml"],
    ),
    (
        "apply --server-side --field-manager argocd-ocm-cmp-policy",
        &["deploy/deploy_policy.yaml"],
    ),
    (
        "apply",
        &["deploy/deploy_controller.yaml", "deploy/admission_policy.yaml"],
    ),
    (
        "apply",
        &[
            "deploy/report_crd.yaml",
            "deploy/deploy_pull.yaml",
            "deploy/deploy_cluster_secrets.yaml",
            "deploy/deploy_report.yaml",
        ],
    ),
    ("apply", &["deploy/argocd_addon.yaml"]),
    ("apply --server-side", &["deploy/gitopscluster_crd.yaml"]),
    (
        "apply",
        &["deploy/deploy_gitopscluster.yaml", "deploy/deploy_argocd_agent.yaml"],
    ),
    ("apply", &["deploy/live.yaml"]),
    (
        "apply --server-side --field-manager argocd-ocm-cmp-live",
        &["deploy/live_argocd.yaml"],
    ),
];

/// Returns a file as an earlier release could have had it: another image, and objects that were removed since.
fn earlier(text: &str) -> String {
    let text = text.replace(
        concat!("argocd-ocm-cmp:", env!("CARGO_PKG_VERSION")),
        "argocd-ocm-cmp:0.0.1",
    );
    let text = text.replace("\n  labels:\n", "\n  labels:\n    earlier: release\n");
    let text = text.replace("\ndata:\n", "\ndata:\n  earlier: release\n");
    // Changes only our additions to Argo CD's own objects.
    let command = "        command: [/var/run/argocd/argocd-cmp-server]\n";
    let text = text.replace(command, &format!("{command}        workingDir: /tmp\n"));
    let links = "      enableServiceLinks: false\n";
    let text = text.replace(links, &format!("{links}      automountServiceAccountToken: true\n"));
    text.replace("  verbs: [list, watch]\n", "  verbs: [list, watch, deletecollection]\n")
}

fn apply(installation: &Installation, earlier: fn(&str) -> String) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (how, files) in BY_KUBECTL {
        for file in files {
            let path = folder.path().join(file.replace('/', "-"));
            fs::write(&path, earlier(&read_shipped(file)?))?;
            let options: Vec<_> = how.split(' ').skip(1).collect();
            installation.hub.apply_file(&path, &options)?;
        }
    }
    Ok(())
}

/// Returns the objects of an installation, as they are on the hub.
fn installed(installation: &Installation) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for line in printed("json", ALL)?.lines() {
        let object: Value = serde_json::from_str(line)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("argocd");
        let words = ["kind", "name"].map(|key| {
            object[key]
                .as_str()
                .or(object["metadata"][key].as_str())
                .unwrap_or_default()
        });
        let group = object["apiVersion"]
            .as_str()
            .and_then(|version| version.split_once('/'));
        let kind = group.map_or(words[0].to_owned(), |(group, version)| {
            format!("{}.{version}.{group}", words[0])
        });
        let get = format!("get {kind} {} -n {namespace} -o json --show-managed-fields", words[1]);
        all.push(serde_json::from_str(&installation.hub.kubectl(&get)?)?);
    }
    Ok(all)
}

/// Returns an object without the fields that differ between installations.
fn lasting(object: &Value) -> Value {
    let mut object = without_history(object);
    for key in ["uid", "creationTimestamp"] {
        object["metadata"][key] = Value::Null;
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|key, _| !key.starts_with("clusterIP"));
    }
    // The API server assigns free ports.
    for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
        port["nodePort"] = Value::Null;
    }
    // Each installation of the view creates an identity.
    if object["metadata"]["name"] == "argocd-ocm-cmp-live" {
        object["data"] = Value::Null;
    }
    if let Some(pod) = object.pointer_mut("/spec/template/metadata/annotations") {
        pod["argocd-ocm-cmp.github.io/live-certificate"] = Value::Null;
    }
    object["status"] = Value::Null;
    object
}

#[tokio::test]
async fn install_takes_over_objects_applied_by_kubectl() -> Result<()> {
    let installation = installation().await?;
    let policy = format!("--policy={}", policy_file()?.display());
    installation.run_ok(&["install", ALL, &policy])?;
    make_ready(&installation.hub).await?;
    installation.run_ok(&["install", ALL, &policy])?;
    let expected: Vec<_> = installed(&installation)?.iter().map(lasting).collect();
    let is_policy = |object: &Value| object["metadata"]["name"] == "argocd-ocm-cmp-policy";
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await?;

    for earlier in [earlier, str::to_owned] {
        apply(&installation, earlier)?;
        installation.run_ok(&["install", ALL, &policy])?;
        let objects = installed(&installation)?;
        for (object, expected) in objects.iter().zip(&expected) {
            if is_policy(object) {
                let managers = object["metadata"]["managedFields"].to_string();
                assert!(
                    !managers.contains("argocd-ocm-cmp"),
                    "a policy is not taken over: {managers}"
                );
                continue;
            }
            assert_eq!(&lasting(object), expected, "{}", name(object));
            let managers: Vec<_> = object["metadata"]["managedFields"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|entry| {
                    entry["manager"]
                        .as_str()
                        .is_some_and(|manager| manager.contains("argocd-ocm-cmp"))
                })
                .map(|entry| [&entry["manager"], &entry["operation"]])
                .collect();
            assert_eq!(managers, [["argocd-ocm-cmp", "Apply"]], "{}", name(object));
        }
        let lines = installation.run_ok(&["install", ALL, &policy])?;
        let is_expected_line =
            |line: &str| line.ends_with(" unchanged") || line == "configmap/argocd-ocm-cmp-policy kept";
        ensure!(lines.lines().all(is_expected_line), "{lines}");
        installation.run_ok(&["uninstall"])?;
        installation.without_policy()?;
        installation.until_restored().await?;
    }
    Ok(())
}

/// The API server writes the status of a FlowSchema at any time, also between a read and a write of `install`.
#[tokio::test]
async fn takes_over_an_object_whose_status_changes_meanwhile() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    hub.apply_file(&shipped("deploy/deploy_controller.yaml"), &[])?;
    let proxy = Proxy::start(hub).await?;
    proxy.fault(Fault::Status(409), Times::Next(2), |request| {
        request.is("patch", "flowschemas")
    });
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
        .args(["install", "--features=controller", IMAGE, "--kubeconfig"])
        .arg(proxy.kubeconfig(hub.kubeconfig_path())?)
        .env_clear()
        .output()?;
    ensure!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let conflicts = proxy
        .requests()
        .iter()
        .filter(|request| request.answer == Some(409))
        .count();
    assert_eq!(conflicts, 2);
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await
}

#[tokio::test]
async fn kubectl_applies_the_printed_manifests() -> Result<()> {
    let installation = installation().await?;
    for form in ["yaml", "json"] {
        let printed = printed(form, ALL)?;
        let apply = ["apply", "--server-side", "--field-manager", "argocd-ocm-cmp", "-f", "-"];
        installation.hub.kubectl_with_input(&apply, &printed)?;
    }
    let changes = |lines: &str| -> Vec<String> {
        let is_expected = |line: &&str| line.ends_with(" unchanged") || *line == "configmap/argocd-ocm-cmp-policy kept";
        lines
            .lines()
            .filter(|line| !is_expected(line))
            .map(str::to_owned)
            .collect()
    };
    // The identity of the view is of the hub, so it is not printed.
    let identity = [
        "argocd-ocm-cmp-live",
        "argocd-ocm-cmp-cluster-proxy",
        "deployment.apps/argocd-server",
    ];
    let first = changes(&installation.run_ok(&["install", ALL])?);
    let is_identity = |line: &String| identity.iter().any(|name| line.contains(name));
    // The annotation for Argo CD is only printed.
    let printed = printed("json", ALL)?;
    let for_argo_cd: Vec<String> = printed
        .lines()
        .filter(|line| line.contains("Prune=false"))
        .filter_map(|line| {
            let object: Value = serde_json::from_str(line).ok()?;
            Some(format!("/{} configured", object["metadata"]["name"].as_str()?))
        })
        .collect();
    let is_for_argo_cd = |line: &String| for_argo_cd.iter().any(|end| line.ends_with(end));
    let others = first.iter().filter(|line| !is_identity(line) && !is_for_argo_cd(line));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(changes(&installation.run_ok(&["install", ALL])?), [""; 0]);
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await
}

/// Returns a file with the policy of deploy/policy_cm.yaml.
fn policy_file() -> Result<std::path::PathBuf> {
    let config_map = documents(&read_shipped("deploy/policy_cm.yaml")?)?
        .pop()
        .context("an object")?;
    let policy = config_map["data"]["policy.yaml"].as_str().context("a policy")?;
    let file = shipped(env!("CARGO_TARGET_TMPDIR")).join("install-policy.yaml");
    fs::write(&file, policy)?;
    Ok(file)
}
