//! The controller that installs argocd-agent, as shipped: with its permissions, and with its name.

use crate::agent_controller;
use anyhow::Result;
use testbed::Hub;
use testbed::process::Process;

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
    agent_controller::start(hub, arguments).await
}
