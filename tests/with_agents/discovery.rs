//! Checks that agents get the address of the principal from a Route or the load balancer of its Service, and a new address after a
//! change.

use crate::handshake;
use crate::stage::{self, ADDRESS, PORT, Stage, data};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{Hub, ObjectRef};

/// The host that an OpenShift router has for the principal.
const HOST: &str = "principal.apps.example.com";

/// Returns the CRD of OpenShift's Routes, reduced to what an API server needs.
pub(crate) fn routes() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
    });
    ObjectRef::crd("routes.route.openshift.io").with(json!({"spec": {
        "group": "route.openshift.io",
        "names": {"kind": "Route", "plural": "routes"},
        "scope": "Namespaced",
        "versions": [version],
    }}))
}

/// Adds and removes a Route, before the load balancer.
pub(crate) async fn check_exposures(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    let expected = hub.read(&stage::fleet()).await?;

    let route = hub.create(&route()).await?;
    let route = ObjectRef::of(&route);
    let admitted = json!({"status": {"ingress": [{"host": HOST}]}});
    hub.patch_status(&route, &admitted).await?;
    wait_for_address(stage, HOST, "443").await?;
    wait_for_certificate_name(hub, HOST).await?;
    handshake::check_handshakes(stage, HOST).await?;
    hub.delete(&route).await?;
    wait_for_address(stage, ADDRESS, PORT).await?;

    let now = hub.read(&stage::fleet()).await?;
    assert_eq!(now["spec"], expected["spec"], "the spec is unchanged");
    Ok(())
}

/// Waits until the status has the address, and every agent has it.
async fn wait_for_address(stage: &Stage, address: &str, port: &str) -> Result<()> {
    let server = json!({"address": address, "port": port});
    let hub = &stage.hub;
    hub.wait_for_value(&stage::fleet(), "/status/server", server).await?;
    for cluster in stage.clusters() {
        let has = |agent: &Value, name: &str, value: &str| {
            let containers = agent["spec"]["template"]["spec"]["containers"].as_array();
            let mut env = containers
                .into_iter()
                .flatten()
                .filter_map(|container| container["env"].as_array())
                .flatten();
            env.any(|variable| variable["name"] == name && variable["value"] == value)
        };
        cluster
            .wait_for(&stage::agent(), |agent| {
                has(agent, "ARGOCD_AGENT_REMOTE_SERVER", address) && has(agent, "ARGOCD_AGENT_REMOTE_PORT", port)
            })
            .await?;
    }
    Ok(())
}

/// Waits until the principal's certificate includes this name or address.
async fn wait_for_certificate_name(hub: &Hub, name: &str) -> Result<()> {
    let certificate = ObjectRef::secret("argocd", "argocd-agent-principal-tls");
    let names_it = |secret: &Value| {
        let text = data(secret, "tls.crt").unwrap_or_default();
        let all = pki::Certificate::read_all(text.as_bytes()).unwrap_or_default();
        all.first().is_some_and(|leaf| leaf.names.contains(name))
    };
    hub.wait_for(&certificate, names_it).await.map(drop)
}

fn route() -> Value {
    ObjectRef::namespaced("route.openshift.io/v1", "Route", "argocd", "principal").with(json!({
        "spec": {"to": {"kind": "Service", "name": "argocd-agent-principal"}, "tls": {"termination": "passthrough"}},
    }))
}
