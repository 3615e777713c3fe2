//! Nodes on which Pods become ready at once, without a kubelet and without containers.

use std::fs::{self, File};
use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::parts::Part;
use crate::ports;

/// The file with the port of this machine that every port of a Pod leads to.
const FORWARDED_PORT: &str = "forwarded-port";

/// The log of every container, in the format of container runtimes.
const LOG: &str = "\
2026-01-01T00:00:00.000000001Z stdout F starting
2026-01-01T00:00:01.000000001Z stdout F listening on :8080
";

impl ControlPlane {
    /// Adds a line to the log of every container of this cluster.
    pub fn log(&self, line: &str) -> Result<()> {
        let log = self.bench.folder(self.name())?.join("containers.log");
        writeln!(
            File::options().append(true).open(log)?,
            "2026-01-01T00:00:02.000000001Z stdout F {line}"
        )?;
        Ok(())
    }

    /// Returns the port on 127.0.0.1 that every port of a Pod leads to: a server there is reached through `kubectl port-forward`.
    pub(crate) fn forwarded_port(&self) -> Result<Option<u16>> {
        match fs::read_to_string(self.bench.folder(self.name())?.join(FORWARDED_PORT)) {
            Ok(port) => Ok(Some(port.parse()?)),
            Err(_) => Ok(None),
        }
    }

    /// Starts the scheduler and kwok, and creates this number of nodes.
    pub(crate) async fn start_nodes(&self, count: u32) -> Result<()> {
        self.start_scheduler()?;
        self.start_kwok()?;
        for node in 1..=count {
            self.create(&node_named(&format!("node-{node}"))).await?;
        }
        Ok(())
    }

    fn start_scheduler(&self) -> Result<()> {
        let mut command = self.bench.command(Part::KubeScheduler);
        command.arg("--kubeconfig").arg(self.kubeconfig_path());
        command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
        command.arg(format!("--secure-port={}", ports::free()?));
        self.keep(self.bench.start(&format!("kube-scheduler-{}", self.name()), command)?);
        Ok(())
    }

    fn start_kwok(&self) -> Result<()> {
        let mut files = Vec::new();
        // Chaos only affects Pods that request it, with the label pod-container-running-failed.stage.kwok.x-k8s.io.
        for stages in ["node/fast", "node/heartbeat", "pod/fast", "pod/chaos"] {
            files.extend(self.bench.parts.kwok_stages(stages)?);
        }
        let stages = files
            .iter()
            .map(fs::read_to_string)
            .collect::<Result<Vec<_>, _>>()?
            .join("\n---\n");
        let folder = self.bench.folder(self.name())?;
        let (config, log) = (folder.join("stages.yaml"), folder.join("containers.log"));
        fs::write(&log, LOG)?;
        let logs = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "all"},
            "spec": {"logs": [{"logsFile": log, "follow": true}]},
        });
        let forwarded = ports::free()?;
        fs::write(folder.join(FORWARDED_PORT), forwarded.to_string())?;
        let forwards = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterPortForward",
            "metadata": {"name": "all"},
            "spec": {"forwards": [{"target": {"port": forwarded, "address": "127.0.0.1"}}]},
        });
        fs::write(&config, format!("{stages}\n---\n{logs}\n---\n{forwards}\n"))?;

        let mut command = self.bench.command(Part::Kwok);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig_path())
            .arg("--config")
            .arg(config);
        let port = ports::free()?;
        command.args([
            "--manage-all-nodes=true",
            "--node-ip=127.0.0.1",
            &format!("--node-port={port}"),
            &format!("--server-address=127.0.0.1:{port}"),
        ]);
        command.arg("--tls-cert-file").arg(folder.join("tls.crt"));
        command.arg("--tls-private-key-file").arg(folder.join("tls.key"));
        // kwok sometimes panics during its start.
        let command = self.bench.restarting(&command);
        self.keep(self.bench.start(&format!("kwok-{}", self.name()), command)?);
        Ok(())
    }
}

fn node_named(name: &str) -> Value {
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "nodeInfo": {"kernelVersion": "6.12.0", "osImage": "Debian GNU/Linux 13 (trixie)"},
        },
    })
}
