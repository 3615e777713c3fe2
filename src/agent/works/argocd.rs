//! The ArgoCD resource that an operator makes an Argo CD and an agent of.

use crate::agent::{Mode, Server, Wanted, names};
use serde_json::{Map, Value, json};

/// What the ArgoCD is called that the operator is given: its name is in those of the ServiceAccounts that the operator makes.
pub(in crate::agent) fn name(wanted: &Wanted) -> String {
    let mut said = wanted.argocd_manifests.iter().flatten();
    let argocd = said.find(|it| it["kind"] == "ArgoCD");
    let name = argocd.and_then(|it| it["metadata"]["name"].as_str());
    name.unwrap_or(ARGOCD).to_owned()
}

/// The name of the ArgoCD where none is said, as argocd-pull-integration has it.
const ARGOCD: &str = "argocd";

/// The ArgoCD where none is said: what the add-on brings by itself, as an operator makes it.
pub(super) fn default(mode: Mode) -> Value {
    let mut agent = json!({
        "enabled": true,
        // What is behind the colon counts at the principal only.
        "creds": "mtls:client-certificate",
        "client": {"mode": mode.name(), "keepAliveInterval": "50s"},
    });
    let mut controller = json!({"respectRBAC": "strict"});
    if mode == Mode::Managed {
        agent["allowedNamespaces"] = json!(["*"]);
        agent["destinationBasedMapping"] = json!({"enabled": true, "createNamespace": true});
        // By sourceNamespaces the operator would make roles in all of them.
        controller["extraCommandArgs"] = json!(["--application-namespaces", "*"]);
    }
    json!({
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": ARGOCD},
        "spec": {
            "server": {"enabled": false},
            "controller": controller,
            "argoCDAgent": {"agent": agent},
        },
    })
}

/// Where argocd-pull-integration's add-on copies the agent's certificate to.
pub(super) const COPIED_SECRET: &str = "argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert";

/// Says in an ArgoCD what it does not say and has to.
pub(super) fn complete(argocd: &mut Value, wanted: &Wanted, server: &Server) {
    if let Some(metadata) = child(argocd, "metadata") {
        fill(metadata, "namespace", &wanted.namespace);
    }
    let Some(spec) = child(argocd, "spec") else { return };
    if wanted.operator {
        // Our operator may not give everything, which is what these roles do.
        spec.entry("defaultClusterScopedRoleDisabled")
            .or_insert(Value::Bool(true));
    }
    let agent = spec.get_mut("argoCDAgent").and_then(|agent| agent.get_mut("agent"));
    if let Some(agent @ Value::Object(_)) = agent {
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

/// The object in a field, which is made if there is none; nothing where something else is.
fn child<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Map<String, Value>> {
    let fields = value.as_object_mut()?;
    fields.entry(field).or_insert_with(|| json!({})).as_object_mut()
}

/// Says what is not said.
fn fill(fields: &mut Map<String, Value>, field: &str, value: &str) {
    let is_said = fields.get(field).is_some_and(|said| !said.is_null() && said != "");
    if !is_said {
        fields.insert(field.to_owned(), value.into());
    }
}
