//! Tests of argocd-operator as the add-on installs it, the real one on a real API server: with only the permissions of the
//! AddOnTemplate, it creates an Argo CD and an agent from the ArgoCD resource of the clusters, and deletes them again.

use crate::agent_template::{apply, ours, server};
use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use argocd_agent as agent;
use hub_state::model::{DesiredAgent, Mode, shipped};
use ocm::argocd_agent as names;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::process::{self, Process};
use testbed::{ObjectRef, Part, Parts, is_true};

/// The agent that the operator creates.
const AGENT: &str = "argocd-agent-agent";

#[tokio::test(flavor = "multi_thread")]
async fn operator_creates_an_agent_with_its_permissions() -> Result<()> {
    let stage = stage("operated").await?;
    for mode in [Mode::Managed, Mode::Autonomous] {
        let expected = DesiredAgent {
            mode,
            namespace: format!("operated-{}", mode.name()).into(),
            operator: true,
            ..DesiredAgent::default()
        };
        operator_creates_and_deletes_it(&stage, &expected)
            .await
            .with_context(|| format!("{mode:?}"))?;
    }
    Ok(())
}

async fn operator_creates_and_deletes_it(stage: &Stage, expected: &DesiredAgent) -> Result<()> {
    let hub = &stage.hub;
    hub.create_namespace(&expected.namespace).await?;
    let goc = primitives::object_ref::ObjectRef::new("argocd", "operated");
    let template = agent::template(&goc, expected, &ours(), "argocd");
    let all = template.pointer("/spec/agentSpec/workload/manifests");
    let all = all.and_then(Value::as_array).context("no manifests")?;
    for manifest in all {
        // Existing objects are kept; only missing ones are created.
        let exists = manifest["kind"] == "CustomResourceDefinition" && {
            let name = manifest["metadata"]["name"].as_str().context("a name")?;
            hub.kubectl(&["get", "customresourcedefinition", name]).is_ok()
        };
        if !exists {
            apply(stage, manifest, "")?;
        }
    }
    hub.wait_for_crds().await?;
    let work = agent::argocd_work(&goc, &stage.cluster, expected, &server(), None);
    let manifests = work.pointer("/spec/workload/manifests").and_then(Value::as_array);
    for manifest in manifests.context("no manifests")? {
        apply(stage, manifest, "")?;
    }
    let deployment = all.iter().find(|object| object["kind"] == "Deployment");
    let pod = deployment.and_then(|deployment| deployment.pointer("/spec/template/spec"));
    let pod = Pod {
        stage,
        namespace: &expected.namespace,
        spec: pod.context("no operator")?,
    };

    let operator = pod.operator()?;
    let log = || fs::read_to_string(operator.log()).unwrap_or_default();
    let argocd = ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", &expected.namespace, "argocd");
    hub.wait_for(&argocd, |argocd| is_true(argocd, "Reconciled"))
        .await
        .with_context(log)?;
    check_created_objects(&pod, expected).await?;
    check_restart_on_new_certificates(&pod).await.with_context(log)?;
    hub.delete_and_wait(&argocd).await.with_context(log)?;
    ensure!(!log().contains("forbidden"), "{}", log());
    Ok(())
}

/// Checks the objects that the operator has created.
async fn check_created_objects(pod: &Pod<'_>, expected: &DesiredAgent) -> Result<()> {
    for (kind, name, image) in [
        ("Deployment", AGENT, shipped::AGENT),
        ("Deployment", "argocd-repo-server", shipped::ARGOCD),
        ("StatefulSet", "argocd-application-controller", shipped::ARGOCD),
        ("Deployment", "argocd-redis", shipped::REDIS),
    ] {
        let workload = pod.object(kind, name).await?;
        let container = workload
            .as_ref()
            .and_then(|workload| workload.pointer("/spec/template/spec/containers/0"));
        ensure!(
            container.is_some_and(|container| container["image"] == image),
            "{name}: {workload:?}"
        );
    }
    ensure!(pod.object("Deployment", "argocd-server").await?.is_none(), "a server");
    let controller = pod.object("StatefulSet", "argocd-application-controller").await?;
    let command =
        controller.context("no controller")?["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
    let of_all = command.contains(r#""--application-namespaces","*""#);
    ensure!(of_all == (expected.mode == Mode::Managed), "{command}");
    let agent = pod.object("Deployment", AGENT).await?.context("no agent")?;
    ensure!(
        agent["spec"]["template"]["spec"]["containers"][0]["args"] == json!(["agent"]),
        "{agent}"
    );
    for (name, value) in [
        ("ARGOCD_AGENT_MODE", expected.mode.name()),
        ("ARGOCD_AGENT_REMOTE_SERVER", "hub.example.com"),
        ("ARGOCD_AGENT_REMOTE_PORT", "8443"),
        ("ARGOCD_AGENT_CREDS", "mtls:client-certificate"),
        ("ARGOCD_AGENT_TLS_SECRET_NAME", names::CLIENT_SECRET),
        ("ARGOCD_AGENT_TLS_ROOT_CA_SECRET_NAME", names::CA_SECRET),
    ] {
        ensure!(setting(&agent, name) == Some(value), "{name} in {agent}");
    }
    Ok(())
}

/// Checks that our program beside the operator restarts the agent once for new certificates, and the operator does not revert
/// that.
async fn check_restart_on_new_certificates(pod: &Pod<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let certificate = folder.path().join("tls.crt");
    fs::write(&certificate, "first")?;
    let _restarter = pod.restarter(folder.path(), &certificate)?;
    let agent = ObjectRef::deployment(pod.namespace, AGENT);
    let first = pod
        .stage
        .hub
        .wait_for(&agent, |deployment| started_with(deployment).is_some())
        .await?;
    fs::write(&certificate, "second")?;
    let is_other =
        |deployment: &Value| started_with(deployment).is_some_and(|value| Some(value) != started_with(&first));
    let second = pod.stage.hub.wait_for(&agent, is_other).await?;
    ensure!(
        second["metadata"]["generation"].as_i64()
            == first["metadata"]["generation"]
                .as_i64()
                .map(|generation| generation + 1),
        "the agent restarted more than once: {second}"
    );
    let argocd = ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", pod.namespace, "argocd");
    let patch = json!({"spec": {"argoCDAgent": {"agent": {"logLevel": "debug"}}}});
    pod.stage.hub.patch(&argocd, &patch).await?;
    let is_debugged = |deployment: &Value| setting(deployment, "ARGOCD_AGENT_LOG_LEVEL") == Some("debug");
    let third = pod.stage.hub.wait_for(&agent, is_debugged).await?;
    ensure!(started_with(&third) == started_with(&second), "{third}");
    Ok(())
}

fn setting<'o>(deployment: &'o Value, name: &str) -> Option<&'o str> {
    let all = deployment.pointer("/spec/template/spec/containers/0/env")?.as_array()?;
    all.iter().find(|variable| variable["name"] == name)?["value"].as_str()
}

fn started_with(deployment: &Value) -> Option<&str> {
    deployment["spec"]["template"]["metadata"]["annotations"]["argocd-ocm-cmp.github.io/certificates"].as_str()
}

/// Returns argocd-operator with this kubeconfig.
pub(crate) fn argocd_operator(kubeconfig: &Path) -> Result<Command> {
    let parts = Parts::ensure()?;
    let folder = kubeconfig.parent().context("a folder")?;
    let mut command = process::command(parts.program(Part::ArgoCdOperator), folder);
    command.args(["--metrics-bind-address=0", "--health-probe-bind-address=0"]);
    command.env("KUBECONFIG", kubeconfig);
    command.env("REDIS_CONFIG_PATH", parts.argocd_operator_redis());
    Ok(command)
}

/// The Pod of the operator's Deployment.
struct Pod<'a> {
    stage: &'a Stage,
    namespace: &'a str,
    spec: &'a Value,
}

impl Pod<'_> {
    /// Returns an object that the operator has created.
    async fn object(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let object_ref = ObjectRef::namespaced("apps/v1", kind, self.namespace, name);
        self.stage.hub.get(&object_ref).await
    }

    /// Returns the kubeconfig with the identity of the Pod's programs on the cluster.
    fn kubeconfig(&self) -> Result<PathBuf> {
        let account = self.spec["serviceAccountName"].as_str().context("no account")?;
        self.stage.hub.service_account_kubeconfig(self.namespace, account)
    }

    /// Runs the operator, with its environment in the Pod.
    fn operator(&self) -> Result<Process> {
        let mut command = argocd_operator(&self.kubeconfig()?)?;
        for variable in self.spec["containers"][0]["env"].as_array().into_iter().flatten() {
            // The only value that depends on the Pod is its namespace.
            let value = variable["value"].as_str().unwrap_or(self.namespace);
            command.env(variable["name"].as_str().context("a name")?, value);
        }
        let log = self
            .stage
            .hub
            .logs()
            .join(format!("argocd-operator-{}.log", self.namespace));
        Process::start("argocd-operator", command, &log)
    }

    /// Runs the second container of the Pod, with this file instead of the mounted files.
    fn restarter(&self, home: &Path, certificate: &Path) -> Result<Process> {
        let command = self.spec["containers"][1]["command"].as_array();
        let arguments: Vec<_> = command.context("nothing")?.iter().filter_map(Value::as_str).collect();
        let until = arguments.iter().position(|argument| *argument == "--when-changed");
        let arguments = &arguments[1..until.context("no files")?];
        let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), home);
        command
            .args(arguments)
            .args(["--interval=1s", "--when-changed"])
            .arg(certificate);
        command.arg("--kubeconfig").arg(self.kubeconfig()?);
        let log = self
            .stage
            .hub
            .logs()
            .join(format!("agent-restart-{}.log", self.namespace));
        Process::start("agent restart", command, &log)
    }
}
