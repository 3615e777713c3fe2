//! The view into the clusters: reads from the hub what no file has.

use super::{InstallHub, poll};
use crate::cli::HubInstallArgs;
use crate::install::{
    AUTHORITY, AUTHORITY_KEY, AUTHORITY_SECRET, CLUSTER_PROXY_NAMESPACE, Feature, InstallOptions, LIVE, LiveView,
    live_authority,
};
use jiff::Timestamp;
use live::identity::{self, Identity};
use manifest::problem::Problems;
use ocm::resources::SECRETS;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the parts of the view, with a line if argocd-server does not trust it yet. `requested` are the features to apply.
pub(super) async fn completed(
    hub: &InstallHub,
    args: &HubInstallArgs,
    options: &InstallOptions,
    requested: &BTreeSet<Feature>,
) -> Result<(LiveView, String), Problems> {
    if !options.has_feature(Feature::LIVE) {
        return Ok(Default::default());
    }
    let namespace = options.namespace.as_str();
    let is_requested = requested.contains(&Feature::LIVE);
    if is_requested && !args.additions_only {
        let (authority, identity) = tokio::join!(authority(hub, namespace), identity(hub, namespace));
        let (authority, is_authority_foreign) = authority?;
        let identity = identity?;
        let certificate = identity::certificate(&identity);
        let view = LiveView {
            authority,
            is_authority_foreign,
            identity: Some(identity),
            certificate,
        };
        return Ok((view, String::new()));
    }
    let certificate = if is_requested && !args.dry_run {
        poll(async || certificate(hub, namespace).await).await?
    } else {
        certificate(hub, namespace).await?
    };
    let line = match &certificate {
        None if is_requested => format!(
            "warning: ConfigMap {namespace}/{LIVE} has no certificate yet: when Deployment {LIVE} is ready, install again, which restarts \
             argocd-server\n"
        ),
        _ => String::new(),
    };
    let view = LiveView {
        certificate,
        ..LiveView::default()
    };
    Ok((view, line))
}

/// Returns the certificate authority of cluster-proxy, and true if an administrator has created its ConfigMap.
async fn authority(hub: &InstallHub, namespace: &str) -> Result<(Option<String>, bool), String> {
    let config_map = hub.config_map(namespace, AUTHORITY).await?;
    let foreign = config_map.filter(|config_map| config_map["metadata"]["labels"]["app.kubernetes.io/name"] != LIVE);
    if let Some(foreign) = foreign {
        return Ok((foreign["data"][AUTHORITY_KEY].as_str().map(str::to_owned), true));
    }
    let secret = hub
        .get(&SECRETS.path(CLUSTER_PROXY_NAMESPACE), AUTHORITY_SECRET)
        .await?;
    let secret = secret.ok_or_else(|| {
        format!(
            "Secret {CLUSTER_PROXY_NAMESPACE}/{AUTHORITY_SECRET} does not exist: install OCM's cluster-proxy with enableServiceProxy, or, if it is in \
             another namespace, run kubectl -n {namespace} create configmap {AUTHORITY} --from-file {AUTHORITY_KEY} with its certificate \
             authority"
        )
    })?;
    let authority = live_authority(&secret).ok_or_else(|| {
        format!(
            "Secret {CLUSTER_PROXY_NAMESPACE}/{AUTHORITY_SECRET}: {AUTHORITY_KEY} is not a certificate: check OCM's cluster-proxy"
        )
    })?;
    Ok((Some(authority), false))
}

/// Returns the data of the Secret with the identity of the service, or a new identity.
async fn identity(hub: &InstallHub, namespace: &str) -> Result<Value, String> {
    let secret = hub.get(&SECRETS.path(namespace), LIVE).await?;
    let data = secret.map(|mut object| object["data"].take()).unwrap_or_default();
    if data.as_object().is_none_or(serde_json::Map::is_empty) {
        return identity::create(namespace, Timestamp::now());
    }
    let read = Identity::from_secret(&data);
    let problem = |error| format!("Secret {namespace}/{LIVE}: {error}: remove its data, then install again");
    read.map(|_| data).map_err(problem)
}

/// Returns the certificate that the service has published.
async fn certificate(hub: &InstallHub, namespace: &str) -> Result<Option<String>, String> {
    let config_map = hub.config_map(namespace, LIVE).await?;
    Ok(config_map.and_then(|config_map| config_map["data"]["tls.crt"].as_str().map(str::to_owned)))
}
