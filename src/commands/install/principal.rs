//! The principal of argocd-agent on a hub: found before ours is installed.

use super::InstallHub;
use crate::install::{
    CMD_PARAMS, Feature, InstallOptions, PARAMS, PRINCIPALS, Principal, is_ours, maps_by_destination, objects,
    unknown_redis, wrong_settings,
};
use crate::workload::named;
use manifest::problem::Problems;
use serde_json::Value;
use std::fmt::Write as _;

/// Decides if the principal of the hub is ours, with lines about another's: that it stays, and the settings with which it does
/// not work.
pub(super) async fn decided(
    hub: &InstallHub,
    options: &InstallOptions,
    workloads: &[Value],
) -> Result<(Principal, String), Problems> {
    let mut lines = String::new();
    if !options.has_feature(Feature::ArgocdAgent) {
        return Ok((Principal::Ours, lines));
    }
    let ours = objects(&InstallOptions::everything(&options.namespace));
    let ours = ours
        .iter()
        .find(|object| object.kind() == "Deployment" && PRINCIPALS.contains(&object.name()));
    let Some(ours) = ours else {
        return Ok((Principal::Ours, lines));
    };
    let config_maps = format!("/api/v1/namespaces/{}/configmaps", options.namespace);
    let read = async |name| hub.get(&config_maps, name).await.map_err(Problems::one);
    let params = read(PARAMS).await?;
    let present = PRINCIPALS
        .into_iter()
        .filter_map(|name| Some((name, named(workloads, name)?)));
    let others: Vec<_> = present.filter(|(_, live)| !is_ours(ours, live)).collect();
    for (name, live) in &others {
        let write = "writing to a String never fails";
        writeln!(lines, "deployment.apps/{name} kept: it is the principal of this hub").expect(write);
        for wrong in wrong_settings(live, params.as_ref()) {
            writeln!(lines, "Deployment {}/{name}: {wrong}", options.namespace).expect(write);
        }
    }
    let theirs = Principal::Theirs {
        maps_by_destination: others
            .iter()
            .any(|(_, live)| maps_by_destination(live, params.as_ref())),
    };
    if !others.is_empty() {
        return Ok((theirs, lines));
    }
    if let Some(resource) = &options.argo_cd.resource {
        let line = format!(
            "ArgoCD {}/{resource}: the principal is left to its operator: enable it in spec.argoCDAgent.principal\n",
            options.namespace
        );
        return Ok((theirs, line));
    }
    match unknown_redis(read(CMD_PARAMS).await?.as_ref(), params.as_ref()) {
        None => Ok((Principal::Ours, lines)),
        Some(redis) => Err(Problems::one(format!(
            "ConfigMap {}/{CMD_PARAMS}: redis.server is {redis}, which the principal does not know and would replace: set \
             principal.redis.server.address to {redis} in ConfigMap {PARAMS}, and pass --force-conflicts",
            options.namespace
        ))),
    }
}
