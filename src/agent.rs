//! What a GitOpsCluster asks for of argocd-agent.
use serde_json::Value;
pub mod requests;
use std::collections::BTreeSet;
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Managed,
    Autonomous,
}
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Images {
    pub agent: Option<Box<str>>,
    pub argocd: Option<Box<str>>,
    pub redis: Option<Box<str>>,
    pub ours: Option<Box<str>>,
}
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub mode: Mode,
    pub address: Option<Box<str>>,
    pub port: Option<Box<str>>,
    pub namespace: Box<str>,
    pub images: Images,
    pub rollout: Option<Value>,
    pub revoked: BTreeSet<Box<str>>,
    pub argocd_manifests: Option<Vec<Value>>,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub address: Box<str>,
    pub port: Box<str>,
}
pub struct Entry {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub template: String,
    pub rollout: Option<Value>,
}
pub fn template(_goc: (&str, &str), _wanted: &Wanted, _defaults: &Images, _argocd: &str) -> Value {
    Value::Null
}
pub fn deployment_config(_goc: (&str, &str), _wanted: &Wanted, _server: &Server) -> Value {
    Value::Null
}
pub fn placement(_goc: (&str, &str)) -> Value {
    Value::Null
}
pub fn decisions(_goc: (&str, &str), _clusters: &BTreeSet<&str>, _there: &[&Value]) -> Vec<Value> {
    Vec::new()
}
pub fn management(_entries: &[Entry], _there: Option<&Value>) -> Value {
    Value::Null
}
pub fn ca_work(_cluster: &str, _namespace: &str, _bundle: &str, _owner: &str) -> Value {
    Value::Null
}
pub fn argocd_work(_goc: (&str, &str), _cluster: &str, _wanted: &Wanted, _server: &Server) -> Value {
    Value::Null
}
pub fn discover(_services: &[&Value], _routes: &[&Value], _nodes: &[&Value]) -> Result<Server, String> {
    Err(String::new())
}
pub fn principal_names(
    _services: &[&Value],
    _nodes: &[&Value],
    _argocd: &str,
    _addresses: &BTreeSet<&str>,
) -> BTreeSet<Box<str>> {
    BTreeSet::new()
}
pub fn resource_proxy(_services: &[&Value], _argocd: &str) -> (String, BTreeSet<Box<str>>) {
    (String::new(), BTreeSet::new())
}
pub fn difference(_wanted: &Value, _there: &Value) -> Option<Value> {
    None
}
pub mod names {
    pub fn user(cluster: &str) -> String {
        format!("system:open-cluster-management:cluster:{cluster}:addon:{ADDON}:agent:{ADDON}-agent")
    }
    pub fn groups(cluster: &str) -> [String; 3] {
        [
            format!("system:open-cluster-management:cluster:{cluster}:addon:{ADDON}"),
            format!("system:open-cluster-management:addon:{ADDON}"),
            "system:authenticated".to_owned(),
        ]
    }
    pub fn argocd_work(_ns: &str, goc: &str) -> String {
        goc.to_owned()
    }
    pub fn placement(goc: &str) -> String {
        goc.to_owned()
    }
    pub fn deployment_config(goc: &str) -> String {
        goc.to_owned()
    }
    pub const ADDON: &str = "argocd-agent-addon";
    pub const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";
    pub const CA_SECRET: &str = "argocd-agent-ca";
    pub const JWT_SECRET: &str = "argocd-agent-jwt";
    pub const PRINCIPAL_TLS: &str = "argocd-agent-principal-tls";
    pub const RESOURCE_PROXY_TLS: &str = "argocd-agent-resource-proxy-tls";
    pub const CERTIFICATES: [&str; 3] = [CA_SECRET, PRINCIPAL_TLS, RESOURCE_PROXY_TLS];
    pub const CA_BUNDLE: &str = "argocd-agent-ca-bundle";
    pub const CA_WORK: &str = "argocd-agent-ca-mw";
    pub const OF_GITOPSCLUSTER: &str = "apps.open-cluster-management.io/gitopscluster";
    pub const BLOCKLIST: &str = "argocd-agent-tls-blocklist";
    pub const PRINCIPALS: [&str; 2] = ["argocd-agent-principal", "openshift-gitops-agent-principal"];
}

pub mod images {
    pub const AGENT: &str = "quay.io/argoprojlabs/argocd-agent:v0.9.0";
    pub const ARGOCD: &str = "quay.io/argoproj/argocd:v3.2.6";
    pub const REDIS: &str = "redis";
}
