//! The principal of argocd-agent on a hub: found before ours is installed.

use super::InstallHub;
use crate::install::{
    CMD_PARAMS, Feature, InstallOptions, PARAMS, PRINCIPALS, Principal, is_our_principal, maps_by_destination,
    serves_redis, unknown_redis, wrong_settings,
};
use crate::workload::{is_ready, named};
use manifest::problem::Problems;
use serde_json::Value;
use std::collections::BTreeSet;

/// Decides if the principal of the hub is ours, and if Argo CD reaches its Redis through it. If argocd-agent is among the requested
/// `features`, returns lines about objects that stay, and about settings with which another's principal does not work.
pub(super) async fn decided(
    hub: &InstallHub,
    options: &InstallOptions,
    features: &BTreeSet<Feature>,
    workloads: &[Value],
) -> Result<(Principal, String), Problems> {
    let mut lines = Vec::new();
    if !options.has_feature(Feature::ARGOCD_AGENT) {
        return Ok((Principal::Ours { serves_redis: false }, String::new()));
    }
    let namespace = &options.namespace;
    let is_requested = features.contains(&Feature::ARGOCD_AGENT);
    let params = hub.config_map(namespace, PARAMS).await?;
    let present = PRINCIPALS
        .into_iter()
        .filter_map(|name| Some((name, named(workloads, name)?)));
    let (ours, others): (Vec<_>, Vec<_>) = present.partition(|(_, live)| is_our_principal(live));
    let theirs = Principal::Theirs {
        maps_by_destination: others
            .iter()
            .any(|(_, live)| maps_by_destination(live, params.as_ref())),
    };
    for (name, live) in others.iter().filter(|_| is_requested) {
        lines.push(format!(
            "deployment.apps/{name} kept: it is the principal of this hub\n"
        ));
        for wrong in wrong_settings(live, params.as_ref()) {
            lines.push(format!("Deployment {namespace}/{name}: {wrong}\n"));
        }
    }
    if !others.is_empty() {
        return Ok((theirs, lines.concat()));
    }
    if let Some(resource) = &options.argo_cd.resource {
        if is_requested {
            lines.push(format!(
                "ArgoCD {namespace}/{resource}: the principal is left to its operator: enable it in spec.argoCDAgent.principal\n"
            ));
        }
        return Ok((theirs, lines.concat()));
    }
    let cmd_params = hub.config_map(namespace, CMD_PARAMS).await?;
    let unknown = unknown_redis(cmd_params.as_ref(), params.as_ref());
    if let Some(redis) = unknown.filter(|_| is_requested) {
        return Err(Problems::one(format!(
            "ConfigMap {namespace}/{CMD_PARAMS}: redis.server is {redis}, which the principal does not know and would replace: set \
             principal.redis.server.address to {redis} in ConfigMap {PARAMS}"
        )));
    }
    let is_ready = ours.iter().any(|(_, live)| is_ready(live));
    let serves_redis = serves_redis(is_requested, is_ready, cmd_params.as_ref());
    if is_requested && !serves_redis {
        lines.push(format!(
            "ConfigMap {namespace}/{CMD_PARAMS}: redis.server kept: the principal is not ready: install again when the first \
             GitOpsCluster has agents\n"
        ));
    }
    Ok((Principal::Ours { serves_redis }, lines.concat()))
}
