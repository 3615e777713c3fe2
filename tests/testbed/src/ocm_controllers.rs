//! OCM's controllers of the hub: registration, placement, add-ons, work.

use anyhow::Result;

use crate::agent_rights;
use crate::control_plane::ControlPlane;
use crate::operator_templates::{apply, render};
use crate::parts::Part;
use crate::ports;

/// The namespace of OCM's controllers on the hub.
pub(crate) const NAMESPACE: &str = "open-cluster-management-hub";

/// Starts all four with the permissions that OCM's operator grants them, and waits until they answer.
pub(crate) async fn start(hub: &ControlPlane) -> Result<()> {
    let variables = [
        ("ClusterManagerName", "cluster-manager"),
        ("ClusterManagerNamespace", NAMESPACE),
    ];
    apply(hub, &render(&hub.bench.parts.hub_controller_manifests()?, &variables)?)?;
    let controllers: [(&str, Part, &[&str]); 4] = [
        (
            "registration",
            Part::Registration,
            &[
                "controller",
                "--feature-gates=ManagedClusterAutoApproval=true",
                "--auto-approved-csr-users=admin",
            ],
        ),
        ("placement", Part::Placement, &["controller"]),
        ("addon-manager", Part::Addon, &["manager"]),
        (
            "work",
            Part::Work,
            &[
                "manager",
                "--feature-gates=ManifestWorkReplicaSet=true,CleanUpCompletedManifestWork=true",
            ],
        ),
    ];
    let mut started = Vec::new();
    for (name, part, arguments) in controllers {
        let port = ports::free()?;
        let mut command = hub.bench.command(part);
        command.env("POD_NAMESPACE", NAMESPACE);
        let kubeconfig = hub.service_account_kubeconfig(NAMESPACE, &format!("{name}-controller-sa"))?;
        // A permission of each of them, which is checked to detect that its role is effective.
        let lease_permission = ("update", "coordination.k8s.io", "leases");
        agent_rights::wait_for(
            &kubeconfig,
            "a controller of OCM's has its permissions",
            &[lease_permission],
        )
        .await?;
        command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
        command.args(["--namespace", NAMESPACE, "--disable-leader-election"]);
        command.arg(format!("--listen=127.0.0.1:{port}"));
        started.push((port, hub.bench.start(&format!("ocm-{name}"), command)?));
    }
    for (port, process) in started {
        process.until_listening(port).await?;
        hub.keep(process);
    }
    Ok(())
}
