//! Tests of an Argo CD in another namespace: the controller can run with the printed objects.

use super::{installation, read_shipped};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::Path;
use testbed::process::{self, Process};
use testbed::{Container, Hub, ObjectRef, ports, wait};

const NAMESPACE: &str = "gitops";

/// Creates the objects of an Argo CD there to which we add.
async fn argocd(hub: &Hub) -> Result<Vec<ObjectRef>> {
    hub.create_namespace(NAMESPACE).await?;
    let mut made = Vec::new();
    for of in [
        ObjectRef::config_map("argocd", "argocd-cm"),
        ObjectRef::config_map("argocd", "argocd-cmd-params-cm"),
        ObjectRef::deployment("argocd", "argocd-repo-server"),
    ] {
        let live = hub.read(&of).await?;
        let mut object = json!({"apiVersion": of.api_version, "kind": of.kind});
        object["metadata"] = json!({"name": of.name, "namespace": NAMESPACE, "labels": live["metadata"]["labels"]});
        for part in ["spec", "data"] {
            if !live[part].is_null() {
                object[part] = live[part].clone();
            }
        }
        // Argo CD's documentation long described the installation with client-side apply.
        hub.kubectl_with_input("apply -f -", &object.to_string())?;
        made.push(ObjectRef::of(&object));
    }
    Ok(made)
}

#[tokio::test]
async fn the_controller_runs_beside_an_argo_cd_in_another_namespace() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    let theirs = argocd(hub).await?;
    // The policies of a second controller, installed by hand.
    let others = read_shipped("deploy/admission_policy.yaml")?.replace(".argocd\n", ".second\n");
    hub.kubectl_with_input("apply -f -", &others)?;
    let before = installation.all()?;
    let features = "--features=plugin,project,pull,gitopscluster,argocd-agent";
    installation.run_ok(&["install", "-n", NAMESPACE, features])?;
    for words in [["install"].as_slice(), &["install", "--features=controller"]] {
        let error = installation.run_err(words)?;
        assert!(
            error.contains("belongs to the installation in namespace gitops: pass --namespace gitops"),
            "{error}"
        );
    }
    // The plugin alone is possible, and its removal leaves the installation to the other Argo CD.
    let installed = installation.all()?;
    installation.run_ok(&["install", "--features=plugin,project"])?;
    installation.run_ok(&["uninstall"])?;
    installation.until(&installed).await?;
    let error = installation.run_err(&["uninstall"])?;
    assert_eq!(
        error,
        "error: it is installed in namespace gitops: pass --namespace gitops\n"
    );
    for (name, object) in installation.all()? {
        let was = before.iter().any(|(was, _)| *was == name);
        assert!(
            was || !name.contains(" argocd/"),
            "{name} is where Argo CD is not: {object}"
        );
    }

    let ours = ObjectRef::deployment(NAMESPACE, "argocd-ocm-cmp-controller");
    let program = Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    let container = Container::of(hub, &ours, "controller").await?;
    let mut command = container.command(program, &[("argocd-ocm-cmp", program)]).await?;
    let port = ports::free()?;
    command.arg(format!("--bind-address=127.0.0.1:{port}"));
    let process = Process::start("controller", command, &hub.logs().join("controller-gitops.log"))?;
    process.until_listening(port).await?;
    let ready = async || (process::http_get(port, "/readyz").await.ok()?.0 == 200).then_some(());
    wait::eventually("the controller is ready", wait::DEADLINE, ready).await?;
    let lease = ObjectRef::namespaced(
        "coordination.k8s.io/v1",
        "Lease",
        NAMESPACE,
        "argocd-ocm-cmp-controller",
    );
    hub.wait_for(&lease, |lease| {
        lease["spec"]["holderIdentity"]
            .as_str()
            .is_some_and(|holder| holder.starts_with("controller-0_"))
    })
    .await?;
    let application = ObjectRef::namespaced("argoproj.io/v1alpha1", "Application", NAMESPACE, "shop").with(json!({
        "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git"}},
    }));
    let application = ObjectRef::of(&hub.create(&application).await?);
    let account = hub.account(NAMESPACE, "argocd-ocm-cmp-controller").await?;
    let patched = account
        .patch(&application, &json!({"spec": {"project": "other"}}))
        .await;
    let refused = format!("{:#}", patched.err().context("the write was not denied")?);
    assert!(refused.contains("argocd-ocm-cmp-applications.gitops"), "{refused}");
    hub.delete(&application).await?;
    process.terminate().await?;
    let log = fs::read_to_string(process.log())?;
    assert!(!log.to_lowercase().contains("forbidden"), "{log}");

    installation.run_ok(&["uninstall", "-n", NAMESPACE])?;
    installation.until(&before).await?;
    hub.kubectl_with_input("delete -f -", &others)?;
    for object in &theirs {
        hub.delete(object).await?;
    }
    let namespace = ObjectRef::namespace(NAMESPACE);
    hub.delete_and_wait(&namespace).await
}
