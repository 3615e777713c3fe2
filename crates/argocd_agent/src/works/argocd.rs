//! The ArgoCD resource from which an operator creates an Argo CD and an agent.

use crate::Server;
use hub_state::model::DesiredAgent;
use ocm::argocd_agent as names;
use serde_json::{Map, Value, json};

/// Returns the name of the ArgoCD resource, which is part of the names of the ServiceAccounts that the operator creates.
pub(crate) fn name(desired: &DesiredAgent) -> String {
    let mut manifests = desired.argocd_manifests.iter().flatten();
    let argocd = manifests.find(|it| it["kind"] == "ArgoCD");
    let name = argocd.and_then(|it| it["metadata"]["name"].as_str());
    name.unwrap_or(ARGOCD).to_owned()
}

/// The default name of the ArgoCD resource, as in argocd-pull-integration.
const ARGOCD: &str = "argocd";

/// The name of the Secret to which argocd-pull-integration's add-on copies the agent's certificate.
pub(super) const COPIED_SECRET: &str = "argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert";

/// Adds the required settings that an ArgoCD resource does not have.
pub(super) fn complete(argocd: &mut Value, desired: &DesiredAgent, server: &Server, image: Option<&str>) {
    if let Some(metadata) = child(argocd, "metadata") {
        fill(metadata, "namespace", &desired.namespace);
    }
    let Some(spec) = child(argocd, "spec") else { return };
    if desired.operator {
        // Our operator may not grant all permissions, which the default cluster-scoped roles do.
        spec.entry("defaultClusterScopedRoleDisabled")
            .or_insert(Value::Bool(true));
    }
    let agent = spec.get_mut("argoCDAgent").and_then(|agent| agent.get_mut("agent"));
    if let Some(agent @ Value::Object(_)) = agent {
        let image = image.filter(|_| !desired.operator);
        if let (Some(image), Some(agent)) = (image, agent.as_object_mut()) {
            fill(agent, "image", image);
        }
        if let Some(client) = child(agent, "client") {
            fill(client, "principalServerAddress", &server.address);
            fill(client, "principalServerPort", &server.port);
        }
        if let Some(tls) = child(agent, "tls") {
            if tls.get("secretName").is_some_and(|name| name == COPIED_SECRET) {
                tls.remove("secretName");
            }
            fill(tls, "secretName", names::CLIENT_SECRET);
            fill(tls, "rootCASecretName", names::CA_SECRET);
        }
    } else if let Some(Value::Object(extra)) = Some(spec.entry("extraConfig").or_insert_with(|| json!({}))) {
        fill(extra, "agent.principal.server.address", &server.address);
        fill(extra, "agent.principal.server.port", &server.port);
    }
}

/// Returns the object in a field, created if missing; `None` if the field holds another type.
fn child<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Map<String, Value>> {
    let fields = value.as_object_mut()?;
    fields.entry(field).or_insert_with(|| json!({})).as_object_mut()
}

/// Sets a field that is missing, null or empty.
fn fill(fields: &mut Map<String, Value>, field: &str, value: &str) {
    let is_set = fields.get(field).is_some_and(|value| !value.is_null() && value != "");
    if !is_set {
        fields.insert(field.to_owned(), value.into());
    }
}
