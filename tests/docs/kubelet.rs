//! Replaces the kubelet of a hub without nodes: starts the controller as its Deployment specifies, and restarts it when that
//! changes.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use testbed::process::{self, Process};
use testbed::{Hub, ObjectRef, ports};

/// The name of the controller's Deployment, ServiceAccount and ConfigMap.
const NAME: &str = "argocd-ocm-cmp-controller";

/// The running controller, if any.
#[derive(Default)]
pub(crate) struct Kubelet {
    running: Option<(Value, Process)>,
}

impl Kubelet {
    /// Ensures that the controller runs as the Deployment specifies. Settings are those of the ConfigMap at the start, as in a
    /// Pod.
    pub(crate) async fn sync(&mut self, hub: &Hub) -> Result<()> {
        let deployment = hub.get(&ObjectRef::deployment("argocd", NAME)).await?;
        let template = deployment.map(|it| it["spec"]["template"].clone());
        if self.running.as_ref().map(|(running, _)| running) == template.as_ref() {
            return Ok(());
        }
        if let Some((_, process)) = self.running.take() {
            process.terminate().await?;
        }
        if let Some(template) = template {
            let process = start(hub, &template["spec"]["containers"][0]).await?;
            self.running = Some((template, process));
        }
        Ok(())
    }
}

async fn start(hub: &Hub, container: &Value) -> Result<Process> {
    let mut variables = BTreeMap::from([("POD_NAME".to_owned(), "controller-0".to_owned())]);
    variables.insert("POD_NAMESPACE".to_owned(), "argocd".to_owned());
    let settings = hub
        .get(&ObjectRef::config_map("argocd", NAME))
        .await?
        .unwrap_or_default();
    for (name, value) in settings["data"].as_object().into_iter().flatten() {
        variables.insert(name.clone(), value.as_str().context("text")?.to_owned());
    }
    for variable in container["env"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str()) {
            variables.insert(name.to_owned(), value.to_owned());
        }
    }
    let words = container["command"].as_array().context("a command")?;
    let mut command = process::command(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        env!("CARGO_TARGET_TMPDIR").as_ref(),
    );
    command.args(words[1..].iter().filter_map(Value::as_str));
    command.arg(format!("--bind-address=127.0.0.1:{}", ports::free()?));
    command
        .arg("--kubeconfig")
        .arg(hub.service_account_kubeconfig("argocd", NAME)?);
    command.envs(variables);
    Process::start(NAME, command, &hub.logs().join(format!("{NAME}.log")))
}
