//! Tests of the sidecar's policy: a new hub gets one, an installation without one stays so, and an existing policy is never
//! replaced.

use super::{Installation, installation, named, read_shipped};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use testbed::ObjectRef;

const POLICY: &str = "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects:\n- names: [shop]\n";

/// Returns the ConfigMap that the sidecar mounts as its policy, if any.
async fn mounted(installation: &Installation) -> Result<Option<String>> {
    let repo_server = ObjectRef::deployment("argocd", "argocd-repo-server");
    let repo_server = installation.hub.read(&repo_server).await?;
    let pod = &repo_server["spec"]["template"]["spec"];
    let sidecar = named(&pod["containers"], "argocd-ocm-cmp").context("the sidecar")?;
    let variable = named(&sidecar["env"], "ARGOCD_OCM_CMP_POLICY_FILE");
    let mount = named(&sidecar["volumeMounts"], "argocd-ocm-cmp-policy");
    let volume = named(&pod["volumes"], "argocd-ocm-cmp-policy");
    assert_eq!(variable.is_some(), mount.is_some());
    assert_eq!(variable.is_some(), volume.is_some());
    Ok(volume.and_then(|volume| volume["configMap"]["name"].as_str().map(str::to_owned)))
}

fn config_map() -> ObjectRef {
    ObjectRef::config_map("argocd", "argocd-ocm-cmp-policy")
}

async fn live(installation: &Installation) -> Result<Value> {
    installation.hub.get(&config_map()).await?.context("the policy")
}

fn file(text: &str) -> Result<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("policy.yaml");
    fs::write(&path, text)?;
    let flag = format!("--policy={}", path.display());
    Ok((folder, flag))
}

#[tokio::test]
async fn new_hub_gets_the_sample_policy_and_keeps_changes_to_it() -> Result<()> {
    let installation = installation().await?;
    let lines = installation.run_ok(&["install"])?;
    assert!(
        lines.ends_with(
            "ConfigMap argocd/argocd-ocm-cmp-policy: the sample policy allows only the quick start of the README: add what your \
             AppProjects need\n"
        ),
        "{lines}"
    );
    assert_eq!(mounted(&installation).await?.as_deref(), Some("argocd-ocm-cmp-policy"));
    assert!(
        live(&installation).await?["data"]["policy.yaml"]
            .as_str()
            .is_some_and(|text| text.contains("[managed-clusters]"))
    );

    // A policy that a user changes by any means stays unchanged, including its field managers.
    installation
        .hub
        .patch(&config_map(), &json!({"data": {"policy.yaml": POLICY}}))
        .await?;
    let changed = live(&installation).await?;
    let (_folder, other) = file(&POLICY.replace("shop", "other"))?;
    for words in [
        &["install"][..],
        &["install", "--force-conflicts"],
        &["install", "--features=plugin,policy"],
    ] {
        let lines = installation.run_ok(words)?;
        assert!(
            lines.contains("configmap/argocd-ocm-cmp-policy kept\n"),
            "{words:?}: {lines}"
        );
        assert_eq!(live(&installation).await?, changed, "{words:?}");
        assert!(mounted(&installation).await?.is_some(), "{words:?}");
    }
    assert_eq!(
        installation.run_err(&["install", &other])?,
        "error: ConfigMap argocd/argocd-ocm-cmp-policy: its policy differs from --policy: leave --policy out to keep it, or pass \
         --force-conflicts to replace it\n"
    );
    let (_folder, same) = file(POLICY)?;
    assert!(
        installation
            .run_ok(&["install", &same])?
            .contains("configmap/argocd-ocm-cmp-policy kept\n")
    );
    assert_eq!(live(&installation).await?, changed);
    // No flag removes a policy.
    let error = installation.run_err(&["install", "--no-policy"])?;
    assert!(
        error.starts_with(
            "error: Deployment argocd/argocd-repo-server: the sidecar has a policy, which --no-policy would remove"
        ),
        "{error}"
    );
    let (_folder, broken) = file("kind: Policy\n")?;
    assert!(
        installation
            .run_err(&["install", &broken])?
            .contains("apiVersion is missing")
    );
    assert_eq!(live(&installation).await?, changed);

    let lines = installation.run_ok(&["uninstall"])?;
    let expected = "configmap/argocd-ocm-cmp-policy kept: its policy is not our sample: to delete it, run kubectl -n argocd delete configmap \
                    argocd-ocm-cmp-policy";
    assert!(lines.lines().any(|line| line == expected), "{lines}");
    assert_eq!(live(&installation).await?, changed);
    // The next installation creates the policy again.
    let lines = installation.run_ok(&["install"])?;
    assert!(lines.contains("configmap/argocd-ocm-cmp-policy kept\n"), "{lines}");
    assert_eq!(live(&installation).await?, changed);
    installation.run_ok(&["uninstall"])?;
    installation.without_policy()?;
    installation.until_restored().await
}

#[tokio::test]
async fn sidecar_without_a_policy_stays_open_until_requested() -> Result<()> {
    let installation = installation().await?;
    installation.run_ok(&["install", "--no-policy"])?;
    assert_eq!(mounted(&installation).await?, None);
    assert!(installation.hub.get(&config_map()).await?.is_none());
    // An AppProject of an earlier release, which permits more.
    let project = ObjectRef::app_project("managed-clusters");
    let all = json!([{"server": "https://kubernetes.default.svc", "namespace": "*"}]);
    installation
        .hub
        .patch(&project, &json!({"spec": {"destinations": all}}))
        .await?;
    let open = "Deployment argocd/argocd-repo-server: the sidecar still has no policy, so AppProjects may deliver anything but plain \
                Secrets: pass --policy FILE, or install the feature policy for the sample";
    let lines = installation.run_ok(&["install"])?;
    assert!(lines.lines().any(|line| line == open), "{lines}");
    let expected = "appproject.argoproj.io/managed-clusters kept: its destinations permit every namespace of the hub";
    assert!(lines.lines().any(|line| line.starts_with(expected)), "{lines}");
    assert_eq!(mounted(&installation).await?, None);
    assert!(
        installation.hub.get(&config_map()).await?.is_none(),
        "a policy that is not mounted was written"
    );
    let now = installation.hub.read(&project).await?;
    assert_eq!(now["spec"]["destinations"], all);

    let (_folder, flag) = file(POLICY)?;
    installation.run_ok(&["install", &flag])?;
    assert_eq!(mounted(&installation).await?.as_deref(), Some("argocd-ocm-cmp-policy"));
    assert_eq!(live(&installation).await?["data"]["policy.yaml"], POLICY);
    let lines = installation.run_ok(&["install"])?;
    assert!(!lines.contains("still has no policy"), "{lines}");
    assert!(
        mounted(&installation).await?.is_some(),
        "a mounted policy stays mounted"
    );
    installation.run_ok(&["uninstall"])?;
    installation.without_policy()?;
    installation.until_restored().await
}

#[tokio::test]
async fn mounts_a_config_map_of_the_user_and_keeps_it_mounted() -> Result<()> {
    let installation = installation().await?;
    let words = ["install", "--policy-configmap=theirs"];
    assert_eq!(
        installation.run_err(&words)?,
        "error: ConfigMap argocd/theirs does not exist or has no key policy.yaml: create it first, or pass --no-policy\n"
    );
    let object = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "argocd"}, "data": {"policy.yaml": text}});
    installation.hub.apply(&object("kind: Policy")).await?;
    let error = installation.run_err(&words)?;
    assert!(
        error.starts_with("error: ConfigMap argocd/theirs: apiVersion is missing"),
        "{error}"
    );
    installation.hub.apply(&object(POLICY)).await?;
    let theirs = ObjectRef::config_map("argocd", "theirs");
    let was = installation.hub.get(&theirs).await?;
    for words in [&words[..], &["install"], &["install", "--features=plugin,policy"]] {
        installation.run_ok(words)?;
        assert_eq!(mounted(&installation).await?.as_deref(), Some("theirs"), "{words:?}");
        assert_eq!(installation.hub.get(&theirs).await?, was, "{words:?}");
        assert!(installation.hub.get(&config_map()).await?.is_none(), "{words:?}");
    }
    installation.run_ok(&["uninstall"])?;
    assert_eq!(installation.hub.get(&theirs).await?, was);
    installation.hub.delete(&theirs).await?;
    installation.until_restored().await
}

#[tokio::test]
async fn limits_that_an_administrator_narrowed_with_kubectl_stay() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    let folder = tempfile::tempdir()?;
    for (file, from, to) in [
        ("proj.yaml", "namespace: '!argocd'", "namespace: cluster1"),
        (
            "deploy/argocd_rbac.yaml",
            "verbs: [execute-as]",
            "verbs: [execute-as]\n  resourceNames: ['system:serviceaccount:shop:deployer']",
        ),
    ] {
        let path = folder.path().join("edited.yaml");
        fs::write(&path, read_shipped(file)?.replace(from, to))?;
        hub.apply_file(&path, &[])?;
    }
    let limits = async || -> Result<[Value; 2]> {
        let project = hub.read(&ObjectRef::app_project("managed-clusters")).await?;
        let role = ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "argocd-ocm-cmp");
        let role = hub.read(&role).await?;
        Ok([project["spec"].clone(), role["rules"].clone()])
    };
    let narrowed = limits().await?;
    for _ in 0..2 {
        let lines = installation.run_ok(&["install", "--features=project,argocd-rbac"])?;
        assert_eq!(
            lines.matches(" kept: its limits differ from ours: ").count(),
            2,
            "{lines}"
        );
        assert_eq!(limits().await?, narrowed);
    }
    installation.run_ok(&["install", "--features=project,argocd-rbac", "--force-conflicts"])?;
    assert_ne!(limits().await?, narrowed);
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await
}
