//! Tests that `status`, `status --wait` and `doctor` explain the first mistakes of a user, by the texts of the real Argo CD.

use crate::stage::{application, argocd, hub_with, run};
use crate::status::printed;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use testbed::{GitRepository, Hub, ObjectRef, wait};

/// The policy of the plugin.
const POLICY: &str = "\
apiVersion: argocd-ocm-cmp.github.io/v1alpha1
kind: Policy
projects:
- names: [managed-clusters]
  clusters: [cluster1, cluster2, cluster9]
  namespaces: [default]
";

/// A mistake in an Application, and the answers of the commands.
struct Mistake {
    name: &'static str,
    change: fn(&mut Value),
    /// The lines about it of `status` and `status --wait`, after the name.
    status: &'static [&'static str],
    /// The finding of `doctor`, and its text without the names.
    doctor: (&'static str, &'static str),
}

const MISTAKES: [Mistake; 8] = [
    Mistake {
        name: "wrong-plugin",
        change: |app| app["spec"]["source"]["plugin"]["name"] = json!("argocd-ocm-cpm"),
        status: &[
            "has no works: no sidecar of Argo CD's repo-server runs a plugin named argocd-ocm-cpm: set spec.source.plugin.name to \
             argocd-ocm-cmp",
        ],
        doctor: (
            "applications-plugin-name",
            "no sidecar of Argo CD's repo-server runs a plugin named argocd-ocm-cpm",
        ),
    },
    Mistake {
        name: "wrong-variable",
        change: |app| {
            app["spec"]["source"]["plugin"]["env"] = json!([{"name": "TARGET_CLUSTERS", "value": "cluster1"}]);
        },
        status: &[
            "has no works: a setting is wrong: no target cluster: set the plugin env TARGET_CLUSTER or one of the parameters clusters \
             and placement of the Application, or pass --clusters NAME",
            "has no works: a setting is wrong: plugin env TARGET_CLUSTERS is not a setting, and is ignored: did you mean \
             TARGET_CLUSTER?",
        ],
        doctor: ("applications-setting", "no target cluster"),
    },
    Mistake {
        name: "wrong-path",
        change: |app| app["spec"]["source"]["path"] = json!("nowhere"),
        status: &[
            "has no works: the path nowhere does not exist in the repository: correct spec.source.path, or commit the folder to the \
             target revision",
        ],
        doctor: (
            "applications-source",
            "the path nowhere does not exist in the repository",
        ),
    },
    Mistake {
        name: "wrong-project",
        change: |app| app["spec"]["project"] = json!("nobody"),
        status: &[
            "has no works: AppProject nobody does not exist: apply it, such as proj.yaml, or set another one in spec.project",
        ],
        doctor: ("projects-missing", "AppProject nobody of 1 Application does not exist"),
    },
    Mistake {
        name: "wrong-destination",
        change: |app| app["spec"]["destination"] = json!({"name": "cluster1", "namespace": "default"}),
        status: &[
            "has no works: there are no clusters with this name: cluster1: set spec.destination.server to \
             https://kubernetes.default.svc, the hub, without spec.destination.name",
        ],
        doctor: (
            "applications-destination",
            "there are no clusters with this name: cluster1",
        ),
    },
    Mistake {
        name: "wrong-cluster",
        change: |app| app["spec"]["source"]["plugin"]["env"][0]["value"] = json!("cluster9"),
        status: &[
            "has no works: managed cluster cluster9 is not registered on the hub: correct its name, or register it, such as with \
             clusteradm join",
        ],
        doctor: ("applications-cluster", ""),
    },
    Mistake {
        name: "not-accepted",
        change: |app| app["spec"]["source"]["plugin"]["env"][0]["value"] = json!("cluster2"),
        status: &[
            "is not delivered: managed cluster cluster2 is not accepted on the hub: accept it, such as with clusteradm accept \
             --clusters cluster2",
        ],
        doctor: (
            "applications-cluster",
            "managed cluster cluster2 is not accepted on the hub",
        ),
    },
    Mistake {
        name: "wrong-policy",
        change: |app| app["spec"]["destination"]["namespace"] = json!("elsewhere"),
        status: &[
            "has no works: the plugin's policy rejects it: config.yaml:1: document 1: ConfigMap elsewhere/settings: the policy lets \
             project managed-clusters deliver nothing in namespace elsewhere, only in default: to allow it, add `elsewhere` to \
             `projects[0].namespaces`",
        ],
        doctor: (
            "applications-policy",
            "config.yaml:1: document 1: ConfigMap elsewhere/settings",
        ),
    },
];

/// Starts a hub with Argo CD and a plugin with the policy, and a managed cluster that it does not accept.
async fn hub() -> Result<Hub> {
    let hub = hub_with("proj.yaml cm_plugin.yaml").await?;
    let mut argocd = argocd(&hub, "plugin-for-diagnosis").await?;
    let plugin = &mut argocd.plugins[0];
    let policy = plugin.config_dir.join("policy.yaml");
    fs::write(&policy, POLICY)?;
    let variable = "ARGOCD_OCM_CMP_POLICY_FILE".to_owned();
    plugin.environment.push((variable, policy.display().to_string()));
    hub.declare_managed_cluster("cluster1").await?;
    hub.declare_managed_cluster("cluster2").await?;
    let rejected = json!({"spec": {"hubAcceptsClient": false}});
    hub.patch(&ObjectRef::managed_cluster("cluster2"), &rejected).await?;
    hub.start_argocd(argocd).await?;
    Ok(hub)
}

/// Returns the lines about problems, without the name of the Application.
fn problems<'t>(printed: &'t str, name: &str) -> Vec<&'t str> {
    let lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    lines
        .filter(|line| line.starts_with("has no works: ") || line.starts_with("is not delivered: "))
        .collect()
}

/// Returns the text of a finding of `doctor` if it is about the Application.
fn finding(hub: &Hub, id: &str, name: &str) -> Option<String> {
    let words = ["doctor", "-o", "json"];
    let report = run(Path::new("/"), Some(hub.kubeconfig_path()), &words).ok()?.1;
    let report: Value = serde_json::from_str(&report).ok()?;
    let mut findings = report["findings"].as_array()?.iter();
    let message = findings.find(|finding| finding["id"] == id)?["message"].as_str()?;
    message.contains(name).then(|| message.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn first_mistakes_have_an_answer() -> Result<()> {
    let hub = hub().await?;
    let git = GitRepository::new()?;
    let config_map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}\n";
    for Mistake { name, change, .. } in &MISTAKES {
        git.commit(&[(&format!("{name}/config.yaml"), config_map)])?;
        let mut application = application(name, &git)?;
        change(&mut application);
        hub.create_application(&application).await?;
        hub.refresh_application(name, "hard").await?;
    }
    for Mistake {
        name, status, doctor, ..
    } in &MISTAKES
    {
        let kubeconfig = hub.kubeconfig_path();
        let answered = wait::eventually("status explains the mistake", wait::DEADLINE, async || {
            let (code, stdout, _) = printed(kubeconfig, &[name]).ok()?;
            (code == Some(1) && problems(&stdout, name) == *status).then_some(())
        });
        answered
            .await
            .with_context(|| format!("{name}: {:?}", printed(kubeconfig, &[name])))?;
        // Waiting does not help, so the command does not wait.
        let (code, stdout, stderr) = printed(kubeconfig, &[name, "--wait", "--timeout=1h"])?;
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        assert_eq!(problems(&stdout, name), *status, "{stdout}{stderr}");
        assert!(stdout.contains("\nArgo CD: sync "), "{stdout}");
        let (id, text) = *doctor;
        let message = finding(&hub, id, name).with_context(|| format!("{name}: doctor does not find {id}"))?;
        assert!(message.contains(text), "{message}");
    }
    // As argocd-operator creates it by default.
    let of_hub = json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": "in-cluster", "server": "https://kubernetes.default.svc", "namespaces": "argocd", "config": "{}"},
    });
    hub.create(&ObjectRef::secret("argocd", "hub").with(of_hub)).await?;
    let name = "one-namespace";
    git.commit(&[(&format!("{name}/config.yaml"), config_map)])?;
    hub.create_application(&application(name, &git)?).await?;
    let expected = "has no works: Failed to load live state: namespace \"cluster1\" for ManifestWork ";
    wait::eventually("status explains the list of namespaces", wait::DEADLINE, async || {
        let (code, stdout, _) = printed(hub.kubeconfig_path(), &[name]).ok()?;
        let line = *problems(&stdout, name).first()?;
        (code == Some(1) && line.starts_with(expected) && line.contains("ARGOCD_CLUSTER_CONFIG_NAMESPACES"))
            .then_some(())
    })
    .await
    .with_context(|| format!("{:?}", printed(hub.kubeconfig_path(), &[name])))
}
