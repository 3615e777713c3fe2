//! OCM's controllers of the hub: registration, placement, add-ons, work.

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::parts::Part;
use crate::ports;

/// The namespace OCM's controllers of the hub belong to.
pub(crate) const NAMESPACE: &str = "open-cluster-management-hub";

/// Starts all four and waits until they answer.
pub(crate) async fn start(hub: &ControlPlane) -> Result<()> {
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
        ("addon", Part::Addon, &["manager"]),
        (
            "work-manager",
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
        command.args(arguments).arg("--kubeconfig").arg(hub.kubeconfig_path());
        command.args(["--namespace", NAMESPACE, "--disable-leader-election"]);
        command.arg(format!("--listen=127.0.0.1:{port}"));
        started.push((port, hub.bench.start(name, command)?));
    }
    for (port, process) in started {
        process.until_listening(port).await?;
        hub.keep(process);
    }
    Ok(())
}
