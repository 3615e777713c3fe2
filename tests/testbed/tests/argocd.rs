//! Tests of Argo CD with a plugin, from Git to the managed cluster, and of Argo CD on the managed cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{ArgoCd, GitRepository, Hub, ManagedClusterOptions, ObjectRef, Plugin, is_applied, is_synced, wait};

/// A plugin that prints a `ManifestWork` with one `ConfigMap`, which contains the text of the file `greeting`.
const PROGRAM: &str = r#"#!/bin/sh
set -e
greeting=$(cat greeting)
cat <<END
{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
 "metadata": {"name": "$ARGOCD_APP_NAME", "namespace": "$ARGOCD_ENV_TARGET_CLUSTER"},
 "spec": {"workload": {"manifests": [
   {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting", "namespace": "default"},
    "data": {"greeting": "$greeting"}}]}}}
END
"#;

const CONFIGURATION: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata:
  name: greeter
spec:
  generate:
    command: [greet]
";

fn greeter(folder: &Path) -> anyhow::Result<Plugin> {
    let (config, programs) = (folder.join("config"), folder.join("programs"));
    fs::create_dir(&config)?;
    fs::create_dir(&programs)?;
    fs::write(config.join("plugin.yaml"), CONFIGURATION)?;
    fs::write(programs.join("greet"), PROGRAM)?;
    fs::set_permissions(programs.join("greet"), fs::Permissions::from_mode(0o755))?;
    Ok(Plugin::new(config, programs))
}

fn application(repository: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "hello", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "source": {
                "repoURL": repository,
                "targetRevision": "main",
                "path": "hello",
                "plugin": {"name": "greeter", "env": [{"name": "TARGET_CLUSTER", "value": "cluster1"}]},
            },
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
    })
}

#[tokio::test]
async fn delivers_from_git_to_the_cluster_through_argo_cd_and_ocm() -> anyhow::Result<()> {
    testbed::Parts::ensure()?;
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    let hub = Hub::start().await?;
    let cluster1 = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;
    println!("hub and cluster up after {:?}", started.elapsed());
    hub.start_argocd(ArgoCd::with_plugin(greeter(folder.path())?)).await?;
    println!("Argo CD up after {:?}", started.elapsed());

    let git = GitRepository::new()?;
    git.commit(&[("hello/greeting", "hello")])?;
    hub.create_application(&application(&git.url())).await?;
    let (hello, work) = (
        ObjectRef::application("hello"),
        ObjectRef::manifest_work("cluster1", "hello"),
    );
    hub.wait_for(&hello, is_synced).await?;
    println!("synced after {:?}", started.elapsed());
    hub.wait_for(&work, is_applied).await?;
    let greeting = ObjectRef::config_map("default", "greeting");
    cluster1
        .wait_for(&greeting, |it| it["data"]["greeting"] == "hello")
        .await?;
    println!("on the cluster after {:?}", started.elapsed());

    let has_work = async || {
        let tree = hub.resource_tree("hello").ok()??;
        let mut nodes = tree["nodes"].as_array()?.iter();
        nodes.any(|node| node["kind"] == "ManifestWork").then_some(())
    };
    wait::eventually("Argo CD shows the work", wait::DEADLINE, has_work).await?;

    let commit = git.commit(&[("hello/greeting", "good morning")])?;
    hub.refresh_application("hello", "normal").await?;
    cluster1
        .wait_for(&greeting, |it| it["data"]["greeting"] == "good morning")
        .await?;
    println!("changed after {:?}", started.elapsed());
    hub.wait_for(&hello, |it| {
        is_synced(it) && it["status"]["sync"]["revision"] == commit.as_str()
    })
    .await?;

    hub.refresh_application("hello", "hard").await?;
    hub.holds_for(&hello, Duration::from_secs(3), is_synced).await?;

    hub.delete(&hello).await?;
    hub.wait_gone(&hello).await?;
    hub.wait_gone(&work).await?;
    cluster1.wait_gone(&greeting).await?;
    println!("removed after {:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn application_set_generates_applications() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    hub.start_argocd(ArgoCd {
        application_sets: true,
        ..ArgoCd::default()
    })
    .await?;
    hub.apply(&json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {
            "generators": [{"list": {"elements": [{"cluster": "cluster1"}]}}],
            "template": {
                "metadata": {"name": "{{cluster}}-app"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "file:///nowhere", "path": "."},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "cluster1"},
                },
            },
        },
    }))
    .await?;
    hub.wait_for(&ObjectRef::application("cluster1-app"), |_| true).await?;
    // A watch event may arrive before the audit log has the request.
    let has = async |verb: &str, resource: &str, code: u64| {
        let events = async || {
            let events = hub.requests_by("argocd-applicationset-controller").ok()?;
            let is_it = |event: &&Value| {
                let events = (&event["verb"], &event["objectRef"]["resource"]);
                events == (&json!(verb), &json!(resource)) && event["responseStatus"]["code"] == code
            };
            events.iter().find(is_it).map(|_| ())
        };
        let what = format!("{verb} {resource} is answered with {code}");
        wait::eventually(&what, wait::DEADLINE, events).await
    };
    has("list", "applicationsets", 200).await?;
    has("create", "applications", 201).await?;
    assert!(hub.requests_by("argocd-redis")?.is_empty());
    Ok(())
}

#[tokio::test]
async fn managed_cluster_can_run_its_own_argo_cd() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    let options = ManagedClusterOptions {
        argocd: Some(ArgoCd::default()),
        ..ManagedClusterOptions::default()
    };
    let cluster1 = hub.add_managed_cluster("cluster1", options).await?;
    let git = GitRepository::new()?;
    let greeting = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}}"#;
    git.commit(&[("hello/greeting.json", greeting)])?;
    let mut hello = application(&git.url());
    hello["metadata"]["namespace"] = json!("argocd");
    hello["spec"]["source"]["plugin"] = Value::Null;
    cluster1.create(&hello).await?;
    cluster1.wait_for(&ObjectRef::application("hello"), is_synced).await?;
    let greeting = ObjectRef::config_map("default", "greeting");
    cluster1.wait_for(&greeting, |_| true).await?;

    cluster1.delete(&ObjectRef::application("hello")).await?;
    cluster1.wait_gone(&greeting).await
}
