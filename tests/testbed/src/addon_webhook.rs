//! OCM's conversion webhook for the add-on API, whose newer version OCM's controllers read since OCM 1.3.

use anyhow::Result;
use k8s_openapi::ByteString;
use serde_json::json;

use crate::control_plane::ControlPlane;
use crate::object::ObjectRef;
use crate::parts::Part;
use crate::ports;

/// The CRDs whose objects OCM converts between `v1alpha1` and `v1beta1`.
const CONVERTED: [&str; 2] = [
    "clustermanagementaddons.addon.open-cluster-management.io",
    "managedclusteraddons.addon.open-cluster-management.io",
];

/// Starts the webhook for a hub that has OCM's CRDs, and makes the CRDs use it, as OCM's operator does.
pub(crate) async fn start(hub: &ControlPlane) -> Result<()> {
    let port = ports::free()?;
    let serving = hub.bench.authority.serving(hub.bench.folder("addon-webhook")?)?;
    let mut command = hub.bench.command(Part::Addon);
    command.env("KUBECONFIG", hub.kubeconfig_path());
    command.arg("webhook-server").arg(format!("--port={port}"));
    command.args(["--health-probe-port=0", "--metrics-port=0"]);
    command.arg("--certdir").arg(&serving.folder);
    let process = hub.bench.start("addon-webhook", command)?;
    process.until_listening(port).await?;
    hub.keep(process);
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/convert"),
                "caBundle": ByteString(hub.bench.authority.pem().into()),
            },
        },
    });
    for name in CONVERTED {
        hub.patch(&ObjectRef::crd(name), &json!({"spec": {"conversion": conversion}}))
            .await?;
    }
    Ok(())
}
