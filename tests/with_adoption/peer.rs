//! The objects that argocd-pull-integration's controller for GitOpsClusters leaves on the hub, with the names and in the form in
//! which it writes them.

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use pki::{Authority, Recipe};
use runtime::writer::read_authority;
use serde_json::{Map, Value, json};
use testbed::{Hub, ObjectRef};

const ADDONS: &str = "addon.open-cluster-management.io/v1alpha1";
pub(crate) const ADDON: &str = "argocd-agent-addon";
pub(crate) const TEMPLATE: &str = "argocd-agent-addon-argocd-fleet";
const CONFIG: &str = "argocd-agent-addon-config";
const PEER: &str = "argocd-pull-integration";

pub(crate) fn secret(name: &str) -> ObjectRef {
    ObjectRef::secret("argocd", name)
}

pub(crate) fn management() -> ObjectRef {
    ObjectRef::cluster_management_addon(ADDON)
}

pub(crate) fn addon(cluster: &str) -> ObjectRef {
    ObjectRef::managed_cluster_addon(cluster, ADDON)
}

pub(crate) fn template() -> ObjectRef {
    ObjectRef::cluster(ADDONS, "AddOnTemplate", TEMPLATE)
}

pub(crate) fn config(cluster: &str) -> ObjectRef {
    ObjectRef::namespaced(ADDONS, "AddOnDeploymentConfig", cluster, CONFIG)
}

pub(crate) fn work(cluster: &str) -> ObjectRef {
    ObjectRef::manifest_work(cluster, "argocd-agent-ca-mw")
}

fn tls(name: &str, data: &Map<String, Value>) -> Value {
    let metadata = json!({"name": name, "namespace": "argocd"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data})
}

fn made(recipe: &Recipe, authority: Option<&Value>) -> Result<Map<String, Value>> {
    let authority = authority
        .map(|authority| read_authority(&authority.to_string()))
        .transpose();
    let authority = authority.ok().context("an authority")?;
    let made = pki::make(recipe, authority.as_ref().map(|(_, data)| data))?;
    Ok(made
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value.map(ByteString))))
        .collect())
}

/// Creates all its objects for these clusters, with a time of one day ago.
pub(crate) async fn install(hub: &Hub, clusters: &[&str]) -> Result<()> {
    let from = Timestamp::now() - SignedDuration::from_hours(24);
    let until = |days: i64| from + SignedDuration::from_hours(24 * days);
    let authority = Recipe::Authority {
        common_name: format!("argocd-agent-ca@{}", from.as_second()),
        validity: from..until(365),
    };
    let authority = tls("argocd-agent-ca", &made(&authority, None)?);
    let signed_by = || Authority {
        object_ref: primitives::object_ref::ObjectRef::new("argocd", "argocd-agent-ca"),
        version: "1".into(),
    };
    hub.create(&authority).await?;
    for name in ["argocd-agent-principal-tls", "argocd-agent-resource-proxy-tls"] {
        let server = Recipe::Server {
            common_name: "127.0.0.1".to_owned(),
            names: ["argocd-agent-principal.argocd.svc", "localhost", "127.0.0.1"]
                .map(Into::into)
                .into(),
            validity: from..until(30),
            authority: signed_by(),
        };
        hub.create(&tls(name, &made(&server, Some(&authority))?)).await?;
    }
    let key = ObjectRef::secret("argocd", "argocd-agent-jwt")
        .with(json!({"type": "Opaque", "stringData": {"jwt.key": "theirs"}}));
    hub.create(&key).await?;
    let text = &authority["data"]["tls.crt"];
    let bundle = ObjectRef::config_map("argocd", "argocd-agent-ca-bundle")
        .with(json!({"data": {"ca-bundle.crt": decoded(text)?}}));
    hub.create(&bundle).await?;
    hub.create(&addon_template()).await?;
    hub.create(&cluster_management()).await?;
    for cluster in clusters {
        let client = Recipe::Client {
            common_name: (*cluster).to_owned(),
            validity: from..until(30),
            authority: signed_by(),
        };
        let made = made(&client, Some(&authority))?;
        let mut config: Value = serde_json::from_str(&decoded(&made["config"])?)?;
        config["username"] = json!(cluster);
        config["password"] = json!(cluster);
        for object in of_cluster(cluster, text, &config) {
            hub.create(&object).await?;
        }
    }
    Ok(())
}

pub(crate) fn decoded(data: &Value) -> Result<String> {
    let text: ByteString = serde_json::from_value(data.clone())?;
    Ok(String::from_utf8(text.0)?)
}

fn addon_template() -> Value {
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "default"}});
    ObjectRef::cluster(ADDONS, "AddOnTemplate", TEMPLATE).with(json!({
        "spec": {"addonName": ADDON, "agentSpec": {"workload": {"manifests": [manifest]}}, "registration": [{
            "type": "CustomSigner",
            "customSigner": {
                "signerName": "open-cluster-management.io/argocd-agent-addon",
                "signingCA": {"name": "argocd-agent-ca", "namespace": "argocd"},
            },
        }]},
    }))
}

fn cluster_management() -> Value {
    let group = "addon.open-cluster-management.io";
    ObjectRef::cluster(ADDONS, "ClusterManagementAddOn", ADDON).with(json!({
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {
            "addOnMeta": {"displayName": "ArgoCD Agent Addon", "description": "theirs"},
            "supportedConfigs": [
                {"group": group, "resource": "addontemplates"},
                {"group": group, "resource": "addondeploymentconfigs"},
            ],
            "installStrategy": {"type": "Manual"},
        },
    }))
}

/// Returns its objects for one cluster.
fn of_cluster(cluster: &str, authority: &Value, connection: &Value) -> [Value; 5] {
    let group = "addon.open-cluster-management.io";
    let managed = json!({"app.kubernetes.io/managed-by": PEER, "app.kubernetes.io/component": "addon"});
    let secret = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "argocd"}, "type": "Opaque", "stringData": data});
    let server = format!("https://{cluster}-control-plane");
    let mut known = secret(
        &format!("cluster-{cluster}"),
        json!({"name": cluster, "server": server, "config": connection.to_string()}),
    );
    known["metadata"]["labels"] = json!({
        "argocd.argoproj.io/secret-type": "cluster",
        "apps.open-cluster-management.io/cluster-name": cluster,
        "argocd-agent.argoproj-labs.io/agent-name": cluster,
        "placement-name": "fleet",
    });
    let trusted =
        ObjectRef::secret("argocd", "argocd-agent-ca").with(json!({"type": "Opaque", "data": {"ca.crt": authority}}));
    [
        secret(
            &format!("argocd-cluster-client-{cluster}"),
            json!({"tls.key": "theirs"}),
        ),
        known,
        ObjectRef::manifest_work(cluster, "argocd-agent-ca-mw").with(json!({
            "metadata": {"labels": {"apps.open-cluster-management.io/gitopscluster": "true"}, "annotations": {"apps.open-cluster-management.io/propagate-argocd-agent-ca": "true"}},
            "spec": {"workload": {"manifests": [trusted]}},
        })),
        ObjectRef::namespaced(ADDONS, "AddOnDeploymentConfig", cluster, CONFIG).with(json!({
            "metadata": {"labels": managed},
            "spec": {"customizedVariables": [{"name": "ARGOCD_NAMESPACE", "value": "argocd"}]},
        })),
        ObjectRef::namespaced(ADDONS, "ManagedClusterAddOn", cluster, ADDON).with(json!({
            "metadata": {"labels": managed},
            "spec": {"configs": [
                {"group": group, "resource": "addontemplates", "name": TEMPLATE},
                {"group": group, "resource": "addondeploymentconfigs", "name": CONFIG, "namespace": cluster},
            ]},
        })),
    ]
}
