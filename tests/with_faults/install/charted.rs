//! Tests of an Argo CD that a Helm chart installs under the name of its release: the additions survive the next upgrade of the
//! release, and are removed again.
//!
//! `TESTBED_ARGO_CD_CHART` names a folder with the chart argo-cd, instead of our imitation.

use super::helm::helm;
use super::{HEALTH, Installation, has_sidecar, installation};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use testbed::{Arguments, ObjectRef};

const NAMESPACE: &str = "charted";

fn repo_server() -> ObjectRef {
    ObjectRef::deployment(NAMESPACE, "edge-argocd-repo-server")
}

fn config() -> ObjectRef {
    ObjectRef::config_map(NAMESPACE, "argocd-cm")
}

/// Installs or upgrades the release with these values. Its hooks are Jobs, which nothing runs here.
fn release(installation: &Installation, chart: &Path, values: &[&str]) -> Result<()> {
    let chart = chart.to_str().context("a plain path")?;
    // The hub has these CRDs.
    let words = format!("upgrade edge {chart} --install --no-hooks --set crds.install=false");
    let values = values.iter().flat_map(|value| ["--set", value]);
    let words: Vec<_> = words.words().into_iter().chain(values).collect();
    helm(installation, NAMESPACE, &words).map(drop)
}

fn check_additions(deployment: &Value, config: &Value) -> Result<()> {
    ensure!(has_sidecar(deployment), "no sidecar: {deployment:#}");
    ensure!(config["data"][HEALTH].is_string(), "no health check");
    Ok(())
}

#[tokio::test]
async fn additions_survive_an_upgrade_of_the_chart() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    hub.create_namespace(NAMESPACE).await?;
    let folder = tempfile::tempdir()?;
    let given = env::var_os("TESTBED_ARGO_CD_CHART");
    let chart = given.map_or_else(|| imitation(folder.path()), |path| Ok(path.into()))?;
    release(&installation, &chart, &[])?;
    let before = hub.read(&repo_server()).await?;

    let words = format!("install -n {NAMESPACE} --features=plugin,applicationset,argocd-rbac,ui");
    let lines = installation.run_ok(&words)?;
    for changed in ["repo-server", "server"] {
        let line = format!("deployment.apps/edge-argocd-{changed} configured\n");
        assert!(lines.contains(&line), "{lines}");
    }
    let live = async || {
        let [repo_server, config] = [hub.get(&repo_server()).await?, hub.get(&config()).await?];
        anyhow::Ok((repo_server.context("theirs")?, config.context("theirs")?))
    };
    let (deployment, config) = live().await?;
    check_additions(&deployment, &config)?;
    let server = ObjectRef::deployment(NAMESPACE, "edge-argocd-server");
    let server = hub.read(&server).await?;
    let containers = &server["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1), "{containers:#}");
    assert!(containers[0]["volumeMounts"].to_string().contains("argocd-ocm-cmp-ui"));

    // Helm merges its own fields.
    release(
        &installation,
        &chart,
        &["repoServer.replicas=2", "configs.cm.help\\.chatText=ask us"],
    )?;
    let (deployment, config) = live().await?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(config["data"]["help.chatText"], "ask us");
    check_additions(&deployment, &config)?;
    let again = installation.run_ok(&words)?;
    assert!(!again.contains("created") && !again.contains("configured"), "{again}");

    installation.run_ok(&["uninstall", "-n", NAMESPACE])?;
    let (deployment, config) = live().await?;
    // The chart's annotations follow the changed setting.
    let pod = |deployment: &Value| deployment["spec"]["template"]["spec"].clone();
    assert_eq!(pod(&deployment), pod(&before));
    assert_eq!(config["data"][HEALTH], Value::Null);
    helm(&installation, NAMESPACE, &["uninstall", "edge", "--no-hooks"])?;
    let namespace = ObjectRef::namespace(NAMESPACE);
    hub.delete_and_wait(&namespace).await
}

/// Writes a chart that names the parts of Argo CD as the chart argo-cd does.
fn imitation(folder: &Path) -> Result<PathBuf> {
    let chart = folder.join("argo-cd");
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: argo-cd\nversion: 0.1.0\n",
    )?;
    fs::write(
        chart.join("values.yaml"),
        "crds: {install: true}\nconfigs: {cm: {admin.enabled: \"true\"}}\nrepoServer: {replicas: 1}\n",
    )?;
    let mut templates = String::from(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\n  labels:\n    app.kubernetes.io/part-of: argocd\n\
         data:\n  {{- toYaml .Values.configs.cm | nindent 2 }}\n",
    );
    for (kind, component) in [
        ("Deployment", "repo-server"),
        ("Deployment", "server"),
        ("Deployment", "applicationset-controller"),
        ("StatefulSet", "application-controller"),
    ] {
        let labels =
            json!({"app.kubernetes.io/name": format!("argocd-{component}"), "app.kubernetes.io/instance": "edge"});
        let mut all = labels.clone();
        all["app.kubernetes.io/component"] = component.into();
        all["app.kubernetes.io/part-of"] = "argocd".into();
        let account = format!("argocd-{component}");
        let object = ObjectRef::cluster("apps/v1", kind, &format!("edge-argocd-{component}")).with(json!({
            "metadata": {"labels": all},
            "spec": {
                "replicas": if component == "repo-server" { json!("REPLICAS") } else { json!(1) },
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": all},
                    "spec": {
                        "serviceAccountName": account,
                        "containers": [{"name": component, "image": "quay.io/argoproj/argocd:v3.2.6"}],
                        "volumes": [{"name": "var-files", "emptyDir": {}}, {"name": "plugins", "emptyDir": {}}],
                    },
                },
            },
        }));
        let text = object
            .to_string()
            .replace("\"REPLICAS\"", "{{ .Values.repoServer.replicas }}");
        templates.extend(["---\n", &text, "\n"]);
    }
    fs::write(chart.join("templates/all.yaml"), templates)?;
    Ok(chart)
}
