//! The controller that installs argocd-agent, as shipped: with its permissions, and with its name.

use anyhow::Result;
use testbed::process::{self, Process};
use testbed::{Hub, ports};

/// The name of its ServiceAccount.
pub(crate) const ACCOUNT: &str = "argocd-ocm-cmp-controller";

/// Installs it and starts it, with these additional arguments.
pub(crate) async fn start(hub: &Hub, arguments: &[&str]) -> Result<Process> {
    let shipped = |file: &str| format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    hub.kubectl(&[
        "apply",
        "--server-side",
        "-f",
        &shipped("deploy/gitopscluster_crd.yaml"),
    ])?;
    for file in [
        "deploy/deploy_controller.yaml",
        "deploy/admission_policy.yaml",
        "deploy/deploy_gitopscluster.yaml",
        "deploy/deploy_argocd_agent.yaml",
    ] {
        hub.kubectl(&["apply", "-f", &shipped(file)])?;
    }
    hub.wait_for_crds().await?;
    let permissions: [&[&str]; 3] = [
        &[
            "create",
            "addontemplates.addon.open-cluster-management.io",
            "--all-namespaces",
        ],
        &["get", "secrets/argocd-agent-ca", "--namespace=argocd"],
        &["create", "leases", "--namespace=argocd"],
    ];
    hub.wait_for_permissions("argocd", ACCOUNT, &permissions).await?;
    let folder = env!("CARGO_TARGET_TMPDIR").as_ref();
    let fixed = [
        "--controllers=gitopscluster,argocd-agent",
        "--agent-supervisor-image=example.com/argocd-ocm-cmp:v1",
    ];
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        folder,
        &[&fixed, arguments].concat(),
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("controller", command, &hub.logs().join("controller.log"))
}
