//! Checks each hop of the view into the clusters, if it is installed: argocd-server, the service, cluster-proxy and its add-on.

use super::{Check, refused};
use crate::doctor::hub_state::{HubState, LiveState, Lookup, items, name};
use crate::doctor::message::{Finding, Message, list_names};
use crate::install::{AUTHORITY, AUTHORITY_KEY, CLUSTER_PROXY_NAMESPACE, LIVE, component_of};
use jiff::Timestamp;
use pki::Certificate;
use std::collections::BTreeSet;

pub(super) static CHECK: Check = Check {
    name: "live",
    messages: &[
        &NO_EXTENSION,
        &NO_DEPLOYMENT,
        &NOT_READY,
        &NO_TOKEN,
        &NOT_TRUSTED,
        &NOT_PERMITTED,
        &NO_AUTHORITY,
        &EXPIRED,
        &OTHER_AUTHORITY,
        &NO_ADDON,
        &NOT_AVAILABLE,
        &NO_PERMISSIONS,
        &OK,
    ],
    run,
};

static NO_EXTENSION: Message = Message::error(
    "live-extension-missing",
    "argocd-cm has no extension.config.live, so argocd-server does not forward requests to argocd-ocm-cmp-live",
    "restore it with argocd-ocm-cmp install --features live",
);
static NO_DEPLOYMENT: Message = Message::error(
    "live-deployment-missing",
    "Deployment {namespace}/argocd-ocm-cmp-live does not exist",
    "restore it with argocd-ocm-cmp install --features live",
);
static NOT_READY: Message = Message::error(
    "live-not-ready",
    "Deployment {namespace}/argocd-ocm-cmp-live has no ready Pod",
    "see the Events of its Pods with `kubectl describe`, and its log with `kubectl logs`",
);
static NO_TOKEN: Message = Message::error(
    "live-token-missing",
    "Secret {namespace}/argocd-ocm-cmp-live has no token for argocd-server",
    "create it with argocd-ocm-cmp install --features live",
);
static NOT_TRUSTED: Message = Message::error(
    "live-not-trusted",
    "argocd-server does not mount ConfigMap {namespace}/argocd-ocm-cmp-live, or the ConfigMap has no certificate",
    "restore it with argocd-ocm-cmp install --features live",
);
static NOT_PERMITTED: Message = Message::warning(
    "live-not-permitted",
    "no policy in argocd-rbac-cm permits extensions, invoke, live",
    "add one for each role that may use the view, as docs/live.md describes",
);
static NO_AUTHORITY: Message = Message::error(
    "live-authority-missing",
    "ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy has no certificate authority of cluster-proxy in ca.crt",
    "create it with argocd-ocm-cmp install --features live",
);
static EXPIRED: Message = Message::error(
    "live-authority-expired",
    "the certificate authority in ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy expired at {time}",
    "replace it with argocd-ocm-cmp install --features live",
);
static OTHER_AUTHORITY: Message = Message::error(
    "live-authority-differs",
    "ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy differs from Secret open-cluster-management-addon/proxy-server-ca",
    "replace it with argocd-ocm-cmp install --features live",
);
static NO_ADDON: Message = Message::warning(
    "live-cluster-proxy-missing",
    "the add-on cluster-proxy is not on managed clusters with works: {names}",
    "install it there, or leave these clusters out of the view",
);
static NOT_AVAILABLE: Message = Message::warning(
    "live-cluster-proxy-not-available",
    "the add-on cluster-proxy is not available on {names}",
    "see the conditions of ManagedClusterAddOn cluster-proxy in the namespace of the cluster",
);
static NO_PERMISSIONS: Message = Message::warning(
    "live-permissions-missing",
    "no work delivers the permissions of the view to {names}",
    "deliver deploy/live_cluster_rbac.yaml there with an Application, or leave these clusters out of the view",
);
static OK: Message = Message::ok(
    "live",
    "argocd-server, argocd-ocm-cmp-live and cluster-proxy are connected",
);

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let Some(live) = &hub_state.live else { return Vec::new() };
    let mut findings = about_argocd_server(hub_state, live);
    findings.extend(about_service(hub_state, live));
    findings.extend(about_authority(hub_state, live, now));
    findings.extend(about_addons(hub_state, live));
    if findings.is_empty() {
        findings.push(OK.finding(&[]));
    }
    findings
}

fn about_argocd_server(hub_state: &HubState, live: &LiveState) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let mut findings = Vec::new();
    // Another check reports a ConfigMap that is missing or cannot be read.
    if hub_state
        .config
        .found()
        .is_some_and(|config| config["data"]["extension.config.live"].is_null())
    {
        findings.push(NO_EXTENSION.finding(&[]));
    }
    let server = hub_state
        .deployments
        .found()
        .and_then(|all| component_of(all, "server"));
    if let Some(server) = server {
        let volumes = items(&server["spec"]["template"]["spec"]["volumes"]);
        let is_mounted = volumes.iter().any(|volume| volume["configMap"]["name"] == LIVE);
        match &live.certificate {
            Lookup::Refused(why) => findings.extend(refused(&format!("ConfigMap {namespace}/{LIVE}"), why)),
            Lookup::Found(config) if is_mounted && config["data"]["tls.crt"].is_string() => {}
            _ => findings.push(NOT_TRUSTED.finding(&[("namespace", namespace)])),
        }
    }
    match &live.rbac {
        Lookup::Refused(why) => findings.extend(refused(&format!("ConfigMap {namespace}/argocd-rbac-cm"), why)),
        Lookup::Found(rbac) if is_permitted(&rbac["data"]) => {}
        _ => findings.push(NOT_PERMITTED.finding(&[])),
    }
    findings
}

/// Returns true if a line of Argo CD's policy permits the view to a subject.
fn is_permitted(policies: &serde_json::Value) -> bool {
    let policies = policies.as_object().into_iter().flatten();
    let policies = policies.filter(|(key, _)| key.starts_with("policy.") && key.strip_suffix(".csv").is_some());
    let mut lines = policies.flat_map(|(_, text)| text.as_str().unwrap_or_default().lines());
    lines.any(|line| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let is_one_of = |at: usize, names: [&str; 2]| fields.get(at).is_some_and(|field| names.contains(field));
        is_one_of(0, ["p"; 2])
            && is_one_of(2, ["extensions", "*"])
            && is_one_of(3, ["invoke", "*"])
            && is_one_of(4, ["live", "*"])
            && is_one_of(5, ["allow"; 2])
    })
}

fn about_service(hub_state: &HubState, live: &LiveState) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let mut findings = Vec::new();
    // Another check reports that Deployments cannot be read.
    if let Lookup::Found(deployments) = &hub_state.deployments {
        match deployments.iter().find(|deployment| name(deployment) == LIVE) {
            None => findings.push(NO_DEPLOYMENT.finding(&[("namespace", namespace)])),
            Some(deployment)
                if deployment["status"]["readyReplicas"]
                    .as_u64()
                    .is_none_or(|ready| ready == 0) =>
            {
                findings.push(NOT_READY.finding(&[("namespace", namespace)]));
            }
            Some(_) => {}
        }
    }
    match &live.has_token {
        Lookup::Refused(why) => findings.extend(refused(&format!("Secret {namespace}/{LIVE}"), why)),
        Lookup::Found(true) => {}
        _ => findings.push(NO_TOKEN.finding(&[("namespace", namespace)])),
    }
    findings
}

fn about_authority(hub_state: &HubState, live: &LiveState, now: Timestamp) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let text = match &live.authority {
        Lookup::Refused(why) => return refused(&format!("ConfigMap {namespace}/{AUTHORITY}"), why),
        Lookup::NotFound => "",
        Lookup::Found(config) => config["data"][AUTHORITY_KEY].as_str().unwrap_or_default(),
    };
    let Ok(certificates) = Certificate::read_all(text.as_bytes()) else {
        return vec![NO_AUTHORITY.finding(&[("namespace", namespace)])];
    };
    let until = certificates
        .iter()
        .map(|certificate| certificate.not_after)
        .max()
        .unwrap_or(now);
    if until <= now {
        return vec![EXPIRED.finding(&[("namespace", namespace), ("time", &until)])];
    }
    match &live.issued_authority {
        Lookup::Refused(why) => refused(&format!("Secret {CLUSTER_PROXY_NAMESPACE}/proxy-server-ca"), why),
        Lookup::Found(issued) if issued.trim() != text.trim() => {
            vec![OTHER_AUTHORITY.finding(&[("namespace", namespace)])]
        }
        // An administrator has installed cluster-proxy elsewhere.
        Lookup::NotFound | Lookup::Found(_) => Vec::new(),
    }
}

fn about_addons(hub_state: &HubState, live: &LiveState) -> Vec<Finding> {
    let addons = match &live.addons {
        Lookup::Refused(why) => return refused("ManagedClusterAddOns", why),
        // Another check reports that add-ons are not served.
        Lookup::NotFound => return Vec::new(),
        Lookup::Found(addons) => addons,
    };
    let works = hub_state.works.found().into_iter().flatten();
    let clusters: BTreeSet<&str> = works
        .filter(|work| work.application.is_some())
        .map(|work| &*work.cluster)
        .collect();
    let missing: Vec<_> = clusters
        .iter()
        .filter(|cluster| !addons.contains_key(**cluster))
        .collect();
    let unavailable: Vec<_> = clusters
        .iter()
        .filter(|cluster| addons.get(**cluster) == Some(&false))
        .collect();
    let with_addon = clusters.iter().filter(|cluster| addons.contains_key(**cluster));
    let refusing: Vec<_> = with_addon.filter(|text| !live.permitting.contains(**text)).collect();
    let mut findings = Vec::new();
    for (message, names) in [
        (&NO_ADDON, missing),
        (&NOT_AVAILABLE, unavailable),
        (&NO_PERMISSIONS, refusing),
    ] {
        if !names.is_empty() {
            findings.push(message.finding(&[("names", &list_names(names))]));
        }
    }
    findings
}
