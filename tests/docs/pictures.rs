//! Pictures of commands on a terminal, in docs/ui: drawn from the output of the program on a hub, with `REWRITE=1`, and compared with
//! it otherwise.

use crate::page::root;
use crate::picture::svg;
use crate::shell::Shell;
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fs;
use testbed::{Hub, ObjectRef, new_condition};

#[tokio::test]
async fn pictures_show_what_the_program_prints() -> Result<()> {
    let hub = Hub::start().await?;
    for name in ["eu1", "us1"] {
        hub.declare_managed_cluster(name).await?;
    }
    let shell = Shell::new("https://git.example.com/shop.git").with_cluster(hub.kubeconfig_path().to_owned(), &[]);
    let pictures = [
        diff(&shell, &hub)?,
        status(&shell, &hub).await?,
        doctor(&shell, &hub).await?,
    ];
    let outdated: Vec<&str> = pictures.iter().filter_map(Picture::check).collect();
    ensure!(
        outdated.is_empty(),
        "the program prints something else than {}: REWRITE=1 cargo test --test docs pictures",
        outdated.join(", ")
    );
    Ok(())
}

/// A picture of a command, and what it prints.
struct Picture {
    file: &'static str,
    command: String,
    outputs: Vec<String>,
}

impl Picture {
    /// Returns the name of the file if the picture there is another one. Writes the file instead if `REWRITE` is set.
    fn check(&self) -> Option<&'static str> {
        let path = root().join("docs/ui").join(self.file);
        let drawn = svg(&self.command, &self.outputs);
        if std::env::var_os("REWRITE").is_some() {
            fs::write(&path, drawn).expect("a file");
            return None;
        }
        let is_same = fs::read_to_string(&path).is_ok_and(|text| text == drawn);
        (!is_same).then_some(self.file)
    }
}

/// Runs a command on a terminal with colours.
fn on_terminal(shell: &Shell, command: &str) -> Result<String> {
    let outcome = shell.run(&format!("{command} --color always"));
    ensure!(
        outcome.code <= Some(1) && outcome.stderr.is_empty(),
        "{command}: {outcome:?}"
    );
    Ok(outcome.stdout)
}

/// Writes the works of a folder to the hub.
fn deliver(shell: &Shell, hub: &Hub, command: &str) -> Result<()> {
    let works = shell.run(command);
    ensure!(works.code == Some(0), "{works:?}");
    hub.kubectl_with_input("apply -f -", &works.stdout).map(drop)
}

/// The folder `shop` has changed since the hub got its works.
fn diff(shell: &Shell, hub: &Hub) -> Result<Picture> {
    let words = "--clusters eu1,us1 --name shop --namespace shop --allow-secrets";
    deliver(shell, hub, &format!("argocd-ocm-cmp generate shop-before {words}"))?;
    let command = format!("argocd-ocm-cmp diff shop {words}");
    Ok(Picture {
        file: "terminal-diff.svg",
        outputs: vec![on_terminal(shell, &command)?],
        command,
    })
}

/// A rollout of the guestbook: no agent has answered, then both clusters roll it out, then one of them fails.
///
/// Each screen is printed by a separate command: what `--watch` prints depends on the moments at which it reads.
async fn status(shell: &Shell, hub: &Hub) -> Result<Picture> {
    deliver(
        shell,
        hub,
        "argocd-ocm-cmp generate guestbook --clusters eu1,us1 --name guestbook",
    )?;
    for cluster in ["eu1", "us1"] {
        // As Argo CD does it.
        let id = format!(
            "argocd.argoproj.io/tracking-id=guestbook:work.open-cluster-management.io/ManifestWork:{cluster}/guestbook"
        );
        hub.kubectl(&["annotate", "manifestwork", "guestbook", "--namespace", cluster, &id])?;
    }
    let application = ObjectRef::namespaced("argoproj.io/v1alpha1", "Application", "argocd", "guestbook").with(json!({
        "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://git.example.com/shop.git", "path": "guestbook"}},
        "status": {"sync": {"status": "Synced"}},
    }));
    hub.create(&application).await?;
    let command = "argocd-ocm-cmp status guestbook";
    let mut outputs = vec![on_terminal(shell, command)?];
    let complete = [
        ("DesiredReplicas", json!(1)),
        ("UpdatedReplicas", json!(1)),
        ("AvailableReplicas", json!(1)),
    ];
    let progressing = complete[..2].to_vec();
    let late = json!("ReplicaSet \"guestbook-ui-7f9c\" has timed out progressing.");
    let failed = [progressing.clone(), vec![("Failed", late)]].concat();
    for (eu1, us1) in [(&progressing[..], &progressing[..]), (&complete[..], &failed[..])] {
        answer(hub, "eu1", eu1).await?;
        answer(hub, "us1", us1).await?;
        outputs.push(on_terminal(shell, command)?);
    }
    hub.delete(&ObjectRef::of(&application)).await?;
    Ok(Picture {
        file: "terminal-status.svg",
        command: format!("{command} --watch"),
        outputs,
    })
}

/// Writes the status of an agent that has applied the guestbook, and reports these values of its Deployment.
async fn answer(hub: &Hub, cluster: &str, values: &[(&str, Value)]) -> Result<()> {
    let work = ObjectRef::manifest_work(cluster, "guestbook");
    let generation = hub.read(&work).await?["metadata"]["generation"].take();
    let condition = |kind: &str| new_condition(kind, "True", "", &generation);
    let conditions = ["Applied", "Available", "StatusFeedbackSynced"].map(condition);
    let value = |(name, value): &(&str, Value)| {
        let [kind, field] = match value {
            Value::Number(_) => ["Integer", "integer"],
            _ => ["String", "string"],
        };
        json!({"name": name, "fieldValue": {"type": kind, field: value}})
    };
    let manifest = |group: &str, kind: &str, resource: &str, values: &[(&str, Value)]| {
        json!({
            "resourceMeta": {"group": group, "kind": kind, "resource": resource, "version": "v1", "ordinal": 0,
                "name": "guestbook-ui", "namespace": "default"},
            "conditions": conditions,
            "statusFeedback": {"values": values.iter().map(value).collect::<Vec<_>>()},
        })
    };
    let status = json!({
        "conditions": conditions[..2],
        "resourceStatus": {"manifests": [
            manifest("", "Service", "services", &[]),
            manifest("apps", "Deployment", "deployments", values),
        ]},
    });
    hub.patch_status(&work, &json!({"status": status})).await.map(drop)
}

/// A hub with the plugin and the controller, where Argo CD has lost a health check, and a Pod of the controller is not ready.
async fn doctor(shell: &Shell, hub: &Hub) -> Result<Picture> {
    let installed = shell.run("argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:0.1.0");
    ensure!(installed.code == Some(0), "{installed:?}");
    pods(hub, "argocd-repo-server", 1).await?;
    pods(hub, "argocd-ocm-cmp-controller", 2).await?;
    cluster_manager(hub).await?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let lease =
        ObjectRef::namespaced("coordination.k8s.io/v1", "Lease", "argocd", "argocd-ocm-cmp-controller").with(json!({
            "spec": {"holderIdentity": "argocd-ocm-cmp-controller-0", "leaseDurationSeconds": 3600, "renewTime": now},
        }));
    hub.create(&lease).await?;
    let lost = json!({"data": {"resource.customizations.health.work.open-cluster-management.io_ManifestWork": null}});
    hub.patch(&ObjectRef::config_map("argocd", "argocd-cm"), &lost).await?;
    let command = "argocd-ocm-cmp doctor";
    Ok(Picture {
        file: "terminal-doctor.svg",
        command: command.to_owned(),
        outputs: vec![on_terminal(shell, command)?],
    })
}

/// Creates what OCM's operator is configured with, as `clusteradm init` does.
async fn cluster_manager(hub: &Hub) -> Result<()> {
    let group = "operator.open-cluster-management.io";
    let names = json!({"kind": "ClusterManager", "plural": "clustermanagers"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    hub.create(&ObjectRef::crd(&format!("clustermanagers.{group}")).with(json!({
        "spec": {"group": group, "names": names, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })))
    .await?;
    hub.wait_for_crds().await?;
    hub.create(&ObjectRef::cluster(&format!("{group}/v1"), "ClusterManager", "cluster-manager").with(json!({})))
        .await
        .map(drop)
}

/// Creates the Pods of a Deployment with this number of replicas, as its controllers and the kubelet would. The first is ready.
async fn pods(hub: &Hub, name: &str, replicas: u32) -> Result<()> {
    let deployment = ObjectRef::deployment("argocd", name);
    hub.patch(&deployment, &json!({"spec": {"replicas": replicas}})).await?;
    let status = json!({"status": {"replicas": replicas, "readyReplicas": 1}});
    let deployed = hub.patch_status(&deployment, &status).await?;
    let template = &deployed["spec"]["template"];
    let containers = template["spec"]["containers"].as_array().context("containers")?;
    for number in 0..replicas {
        let named: Vec<Value> = containers
            .iter()
            .map(|container| json!({"name": container["name"], "image": container["image"]}))
            .collect();
        let pod = ObjectRef::namespaced("v1", "Pod", "argocd", &format!("{name}-{number}"))
            .with(json!({"metadata": {"labels": template["metadata"]["labels"]}, "spec": {"containers": named}}));
        let statuses: Vec<Value> = containers
            .iter()
            .map(|container| json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": number == 0, "restartCount": 0}))
            .collect();
        hub.create(&pod).await?;
        hub.patch_status(
            &ObjectRef::of(&pod),
            &json!({"status": {"containerStatuses": statuses}}),
        )
        .await?;
    }
    Ok(())
}
