//! OCM's validating webhook for `ManifestWorks`, for every write to the hub.

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::control_plane::ControlPlane;
use crate::object::ObjectRef;
use crate::parts::Part;
use crate::ports;
use crate::process::Process;
use crate::wait::{self, DEADLINE};

/// The name under which OCM registers its webhook; it is part of the error that a user gets.
const NAME: &str = "manifestworkvalidators.admission.work.open-cluster-management.io";

/// The path of controller-runtime for a validator of `ManifestWorks`.
const PATH: &str = "/validate-work-open-cluster-management-io-v1-manifestwork";

/// The webhook's process, started and not yet registered.
#[derive(Debug)]
pub(crate) struct WorkWebhook {
    process: Process,
    port: u16,
}

impl WorkWebhook {
    pub(crate) fn start(hub: &ControlPlane) -> Result<Self> {
        let port = ports::free()?;
        let serving = hub.bench.authority.serving(hub.bench.folder("work-webhook")?)?;
        let mut command = hub.bench.command(Part::WorkWebhook);
        command.env("KUBECONFIG", hub.kubeconfig_path());
        command
            .arg(format!("--port={port}"))
            .arg("--certdir")
            .arg(&serving.folder);
        Ok(Self {
            process: hub.bench.start("work-webhook", command)?,
            port,
        })
    }

    /// Registers the webhook with a hub that has OCM's CRDs, and waits until the hub calls it.
    pub(crate) async fn register(self, hub: &ControlPlane) -> Result<()> {
        let Self { process, port } = self;
        process.until_listening(port).await?;
        hub.apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [{
                "name": NAME,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}{PATH}"),
                    "caBundle": ByteString(hub.bench.authority.pem().into()),
                },
                "rules": [{
                    "apiGroups": ["work.open-cluster-management.io"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["manifestworks"],
                    "scope": "Namespaced",
                }],
            }],
        }))
        .await
        .context("failed to register OCM's work webhook")?;
        hub.keep(process);
        wait_until_called(hub).await
    }
}

/// Waits until the API server calls the webhook, which it does with a delay after the registration; until then it would accept
/// everything.
async fn wait_until_called(hub: &ControlPlane) -> Result<()> {
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"namespace": "default", "name": "refused"},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]}},
    });
    let api = wait::api(&hub.client().await?, &ObjectRef::of(&work)).await?;
    let work: DynamicObject = serde_json::from_value(work)?;
    let only_try = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait::eventually("OCM's work webhook is called", DEADLINE, async || {
        let refused = api.create(&only_try, &work).await.err()?;
        refused.to_string().contains("name must be set").then_some(())
    })
    .await
}
