//! The controller that installs argocd-agent, with its own ServiceAccount.

use anyhow::Result;
use testbed::process::{self, Process};
use testbed::{Hub, ports};

/// The name of its ServiceAccount.
pub(crate) const ACCOUNT: &str = "argocd-ocm-cmp-controller";

/// Starts it with the permissions on the hub, after they are effective, and with these additional arguments.
pub(crate) async fn start(hub: &Hub, arguments: &[&str]) -> Result<Process> {
    hub.wait_for_crds().await?;
    let permissions: [&str; 3] = [
        "create addontemplates.addon.open-cluster-management.io --all-namespaces",
        "get secrets/argocd-agent-ca --namespace=argocd",
        "create leases --namespace=argocd",
    ];
    hub.wait_for_permissions("argocd", ACCOUNT, &permissions).await?;
    let fixed = [
        "--controllers=gitopscluster,argocd-agent",
        "--agent-supervisor-image=example.com/argocd-ocm-cmp:v1",
    ];
    let command = process::controller(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        env!("CARGO_TARGET_TMPDIR").as_ref(),
        &[&fixed, arguments].concat(),
        ports::free()?,
        hub.service_account_kubeconfig("argocd", ACCOUNT)?,
    );
    Process::start("controller", command, &hub.logs().join("controller.log"))
}
