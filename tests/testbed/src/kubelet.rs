//! Replaces the kubelet of a hub: runs the containers of this program as processes, as their Deployments describe them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::argocd::{self, NAMESPACE, Plugin};
use crate::container::Container;
use crate::control_plane::ControlPlane;
use crate::object::ObjectRef;
use crate::ports;
use crate::process::Process;

/// The name of the program and of the sidecar with the plugin.
const PROGRAM: &str = "argocd-ocm-cmp";

/// The Deployments and containers of this program.
const CONTAINERS: [(&str, &str); 2] = [
    ("argocd-ocm-cmp-controller", "controller"),
    ("argocd-repo-server", PROGRAM),
];

/// The running containers of this program.
#[derive(Debug)]
pub struct Kubelet {
    program: PathBuf,
    /// The Pod and the process of each container.
    running: BTreeMap<&'static str, (Value, Process)>,
}

impl Kubelet {
    /// Creates a kubelet that runs this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            running: BTreeMap::new(),
        }
    }

    /// Ensures that the controller and the plugin run as their Deployments describe them, with the current files of their volumes.
    /// Settings from a `ConfigMap` are those at the start, as in a Pod.
    pub async fn sync(&mut self, hub: &ControlPlane) -> Result<()> {
        for (deployment, name) in CONTAINERS {
            let deployment = ObjectRef::deployment(NAMESPACE, deployment);
            let container = Container::find(hub, &deployment, name).await?;
            if let Some(container) = &container
                && container.write_files().await.is_err()
            {
                // A new Pod waits until its volumes exist, and the old one runs meanwhile.
                continue;
            }
            let pod = container.as_ref().map(Container::pod);
            if self.running.get(name).map(|(pod, _)| pod) == pod {
                continue;
            }
            // The controller releases its Lease; argocd-cmp-server ignores the signal, and is killed.
            if let Some((_, process)) = self.running.remove(name)
                && name != PROGRAM
            {
                process.terminate().await?;
            }
            if let Some(container) = container {
                let process = match name {
                    PROGRAM => self.start_plugin(hub, &container).await?,
                    _ => self.start_controller(hub, &container).await?,
                };
                self.running.insert(name, (container.pod().clone(), process));
            }
        }
        Ok(())
    }

    async fn start_controller(&self, hub: &ControlPlane, container: &Container<'_>) -> Result<Process> {
        let mut command = container.command(&self.program, &[(PROGRAM, &self.program)]).await?;
        command.arg(format!("--bind-address=127.0.0.1:{}", ports::free()?));
        hub.bench.start("argocd-ocm-cmp-controller", command)
    }

    async fn start_plugin(&self, hub: &ControlPlane, container: &Container<'_>) -> Result<Process> {
        let plugin = Plugin {
            environment: container.environment().await?,
            ..Plugin::new(
                container.path("/home/argocd/cmp-server/config"),
                self.program.parent().context("the program has no parent folder")?,
            )
        };
        // Of an earlier process.
        let _ = fs::remove_file(argocd::sockets(hub)?.join(format!("{PROGRAM}.sock")));
        argocd::start_plugin(hub, PROGRAM, &plugin).await
    }
}
