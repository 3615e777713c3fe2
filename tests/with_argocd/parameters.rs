//! Tests of an Application's parameters in Argo CD's UI: the test calls the repo-server as Argo CD's API server does, and it
//! calls the plugin.

use crate::stage::{Stage, application, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use testbed::{GitRepository, Part, Parts};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\n";

/// Returns the announced parameters of an Application, which need not exist yet: the UI also requests them while one is created.
fn announced(stage: &Stage, application: &Value) -> Result<Vec<Value>> {
    let repo_server = stage.hub.repo_server().context("Argo CD runs")?;
    let question = json!({"repoServer": repo_server, "application": application}).to_string();
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), question)?;
    let output = Command::new(Parts::ensure()?.program(Part::AppDetails))
        .stdin(file.reopen()?)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(answer["error"] == "", "{}", answer["error"]);
    ensure!(answer["details"]["type"] == "Plugin", "{answer}");
    let parameters = answer["details"]["plugin"]["parametersAnnouncement"].as_array();
    parameters.cloned().context("parameters")
}

#[tokio::test]
async fn announcement_describes_a_parameter_and_its_value() -> Result<()> {
    let stage = stage().await?;
    let git = GitRepository::new()?;
    git.commit(&[
        ("shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n"),
        ("shop/templates/config.yaml", CONFIG_MAP),
    ])?;
    let mut application = application("shop", &git)?;
    application["spec"]["source"]["plugin"]["env"] = json!([
        {"name": "TARGET_CLUSTER", "value": "cluster1"},
        {"name": "HELM_RELEASE_NAME", "value": "$ARGOCD_APP_NAME-blue"},
    ]);
    application["spec"]["source"]["plugin"]["parameters"] = json!([
        {"name": "helm-value-files", "array": ["values-eu.yaml", "/values.yaml"]},
        {"name": "helm-parameters", "map": {"image.tag": "1.2", "greeting": "a=b, c"}},
        {"name": "delete-crds", "string": "true"},
        {"name": "rollout-groups", "string": "canary"},
    ]);
    let all = announced(stage, &application)?;
    let parameter = |name: &str| {
        let entry = all.iter().find(|parameter| parameter["name"] == name);
        entry.cloned().with_context(|| format!("{name}: {all:?}"))
    };
    assert_eq!(
        parameter("helm-value-files")?,
        json!({
            "name": "helm-value-files",
            "title": "Value files",
            "tooltip": "Value files besides the chart's own, or globs of them (** for all sub-folders); the last wins; relative to the \
                        chart, or with a leading / to the repository (default: none)",
            "itemType": "string",
            "collectionType": "array",
            "array": ["values-eu.yaml", "/values.yaml"],
        })
    );
    let flag = parameter("delete-crds")?;
    assert_eq!(
        (&flag["itemType"], &flag["string"]),
        (&json!("boolean"), &json!("true"))
    );
    let map = parameter("helm-parameters")?;
    assert_eq!(
        (&map["collectionType"], &map["itemType"]),
        (&json!("map"), &json!("string"))
    );
    assert_eq!(map["map"], json!({"image.tag": "1.2", "greeting": "a=b, c"}));
    // A list that the Application sets as one string is announced as a string, because the UI reads only that field then.
    let groups = parameter("rollout-groups")?;
    assert_eq!(
        (&groups["string"], &groups["collectionType"]),
        (&json!("canary"), &Value::Null)
    );
    // Plugin envs count too, and unset parameters show their default.
    assert_eq!(parameter("clusters")?["array"], json!(["cluster1"]));
    assert_eq!(parameter("helm-release-name")?["string"], "shop-blue");
    assert_eq!(parameter("allow-secrets")?["string"], "false");
    assert_eq!(parameter("placement")?["string"], Value::Null);
    Ok(())
}
