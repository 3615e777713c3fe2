//! Tests of an Argo CD that argocd-operator creates, the real one: the additions are in its ArgoCD resource, survive each
//! reconcile, and are removed again.

use super::{HEALTH, Installation, has_sidecar, installation, named};
use crate::agent_operator::argocd_operator;
use anyhow::Result;
use hub_state::model::shipped;
use serde_json::{Value, json};
use testbed::process::Process;
use testbed::{ObjectRef, Parts};

const NAMESPACE: &str = "operated";

fn argocd() -> ObjectRef {
    ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", NAMESPACE, "cd")
}

fn repo_server() -> ObjectRef {
    ObjectRef::deployment(NAMESPACE, "cd-repo-server")
}

fn config() -> ObjectRef {
    ObjectRef::config_map(NAMESPACE, "argocd-cm")
}

/// Starts the operator with all permissions: those that it needs on a hub are its own affair.
fn start_operator(installation: &Installation) -> Result<Process> {
    let mut command = argocd_operator(installation.hub.kubeconfig_path())?;
    command.env("WATCH_NAMESPACE", NAMESPACE);
    command.envs([
        ("ARGOCD_IMAGE", shipped::ARGOCD),
        ("ARGOCD_REDIS_IMAGE", shipped::REDIS),
    ]);
    Process::start(
        "argocd-operator",
        command,
        &installation.hub.logs().join("argocd-operator.log"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn additions_are_in_the_resource_of_an_operator() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    hub.create_namespace(NAMESPACE).await?;
    let crds = Parts::ensure()?.argocd_operator_crds();
    for kind in "argocds argocdexports namespacemanagements notificationsconfigurations".split(' ') {
        let crd = crds.join(format!("argoproj.io_{kind}.yaml"));
        hub.apply_file(&crd, &["--server-side"])?;
    }
    hub.wait_for_crds().await?;
    let operator = start_operator(&installation)?;
    hub.create(
        &ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", NAMESPACE, "cd")
            .with(json!({"spec": {"applicationSet": {}, "extraConfig": {"users.anonymous.enabled": "false"}}})),
    )
    .await?;
    for name in ["cd-repo-server", "cd-server", "cd-applicationset-controller"] {
        hub.wait_for(&ObjectRef::deployment(NAMESPACE, name), |_| true).await?;
    }
    let controller = ObjectRef::namespaced("apps/v1", "StatefulSet", NAMESPACE, "cd-application-controller");
    hub.wait_for(&controller, |_| true).await?;

    let words = [
        "install",
        "-n",
        NAMESPACE,
        "--features=plugin,applicationset,argocd-rbac,ui",
    ];
    let lines = installation.run_ok(&words)?;
    assert!(lines.contains("argocd.argoproj.io/cd configured\n"), "{lines}");
    assert!(!lines.contains("repo-server configured"), "{lines}");
    hub.wait_for(&repo_server(), has_sidecar).await?;
    let is_extended = |deployment: &Value| {
        let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
        named(volumes, "argocd-ocm-cmp-ui").is_some()
    };
    hub.wait_for(&ObjectRef::deployment(NAMESPACE, "cd-server"), is_extended)
        .await?;
    hub.wait_for(&config(), |config_map| config_map["data"][HEALTH].is_string())
        .await?;
    let binding = ObjectRef::role_binding(NAMESPACE, "argocd-ocm-cmp-placement");
    let binding = hub.read(&binding).await?;
    assert_eq!(binding["subjects"][0]["name"], "cd-applicationset-controller");
    let binding = ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "argocd-ocm-cmp");
    let binding = hub.read(&binding).await?;
    assert_eq!(binding["subjects"][0]["name"], "cd-argocd-application-controller");

    // The next change of the resource makes the operator write the Deployment again.
    let change = json!({"spec": {"repo": {"logLevel": "debug"}}});
    hub.patch(&argocd(), &change).await?;
    let is_changed = |deployment: &Value| deployment["spec"]["template"].to_string().contains("debug");
    let changed = hub.wait_for(&repo_server(), is_changed).await?;
    assert!(has_sidecar(&changed), "{changed:#}");
    let again = installation.run_ok(&words)?;
    assert!(!again.contains("created") && !again.contains("configured"), "{again}");

    let lines = installation.run_ok(&["uninstall", "-n", NAMESPACE])?;
    assert!(lines.contains("argocd.argoproj.io/cd restored\n"), "{lines}");
    hub.wait_for(&repo_server(), |deployment| {
        !deployment["spec"].to_string().contains("argocd-ocm-cmp")
    })
    .await?;
    let left = hub.read(&argocd()).await?;
    assert_eq!(left["spec"]["extraConfig"], json!({"users.anonymous.enabled": "false"}));
    hub.wait_for(&config(), |config_map| config_map["data"][HEALTH].is_null())
        .await?;

    // A list of the resource has one manager, so nothing may take over that of another.
    let theirs =
        json!({"spec": {"repo": {"sidecarContainers": [{"name": "theirs", "image": "example.com/plugin:v1"}]}}});
    hub.patch(&argocd(), &theirs).await?;
    for force in [&[][..], &["--force-conflicts"]] {
        let error = installation.run_err(&[&words[..], force].concat())?;
        let expected = "error: ArgoCD operated/cd: .spec.repo.sidecarContainers is managed by ";
        assert!(
            error.starts_with(expected) && error.contains("add our entries there by hand"),
            "{error}"
        );
    }

    hub.delete_and_wait(&argocd()).await?;
    operator.terminate().await?;
    let namespace = ObjectRef::namespace(NAMESPACE);
    hub.delete_and_wait(&namespace).await
}
