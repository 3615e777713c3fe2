//! The controller that brings argocd-agent, as it is shipped: with these rights, and by this name.

use anyhow::Result;
use testbed::process::{self, Process};
use testbed::{Hub, ports};

/// What it is called in a cluster.
pub(crate) const ACCOUNT: &str = "argocd-ocm-cmp-controller";

/// Installs it and starts it, with these arguments besides.
pub(crate) async fn start(hub: &Hub, arguments: &[&str]) -> Result<Process> {
    let shipped = |file: &str| format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    hub.kubectl(&["apply", "--server-side", "-f", &shipped("gitopscluster_crd.yaml")])?;
    for file in [
        "deploy_controller.yaml",
        "admission_policy.yaml",
        "deploy_gitopscluster.yaml",
        "deploy_argocd_agent.yaml",
    ] {
        hub.kubectl(&["apply", "-f", &shipped(file)])?;
    }
    hub.wait_for_crds().await?;
    let rights: [&[&str]; 3] = [
        &[
            "create",
            "addontemplates.addon.open-cluster-management.io",
            "--all-namespaces",
        ],
        &["get", "secrets/argocd-agent-ca", "--namespace=argocd"],
        &["create", "leases", "--namespace=argocd"],
    ];
    hub.wait_until_it_may("argocd", ACCOUNT, &rights).await?;
    let folder = env!("CARGO_TARGET_TMPDIR").as_ref();
    let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), folder);
    command
        .args(["controller", "--controllers=gitopscluster,argocd-agent"])
        .args(arguments);
    command.arg("--agent-supervisor-image=example.com/argocd-ocm-cmp:v1");
    command.arg(format!("--bind-address=127.0.0.1:{}", ports::free()?));
    command
        .arg("--kubeconfig")
        .arg(hub.service_account_kubeconfig("argocd", ACCOUNT)?);
    Process::start("controller", command, &hub.logs().join("controller.log"))
}
