//! Nodes on which Pods become ready at once, without a kubelet and without containers.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::parts::Part;
use crate::ports;

impl ControlPlane {
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
        let config = self.bench.folder(self.name())?.join("stages.yaml");
        fs::write(&config, stages)?;

        let mut command = self.bench.command(Part::Kwok);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig_path())
            .arg("--config")
            .arg(config);
        command.args([
            "--manage-all-nodes=true",
            &format!("--server-address=127.0.0.1:{}", ports::free()?),
        ]);
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
