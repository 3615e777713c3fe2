//! Access to an API server: tokens, kubeconfigs, clients.

use std::path::Path;

use anyhow::{Result, anyhow};
use aws_lc_rs::rand;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

/// Creates a random bearer token.
pub(crate) fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| anyhow!("the system has no random numbers"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Returns a kubeconfig as JSON, which is YAML too.
pub(super) fn kubeconfig_for(name: &str, url: &str, authority: &Path, token: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "current-context": name,
    })
    .to_string()
}

/// Creates a client with the permissions of a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
