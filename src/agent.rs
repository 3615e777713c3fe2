//! What a GitOpsCluster asks for of argocd-agent.
use serde_json::Value;
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
pub mod names {
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
