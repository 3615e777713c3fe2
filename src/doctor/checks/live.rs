//! Checks each hop of the view into the clusters, if it is installed: argocd-server, the service, cluster-proxy and its add-on.

use crate::doctor::hub_state::{HubState, LiveState, Lookup};
use crate::doctor::message::{CLUSTERS, Finding, Message, check};
use crate::install::{AUTHORITY, AUTHORITY_KEY, CLUSTER_PROXY_NAMESPACE, LIVE, SERVER, component_of};
use crate::workload::{is_ready, items};
use jiff::Timestamp;
use pki::Certificate;
use std::collections::BTreeSet;

check! {
    "live"
    error NO_EXTENSION "live-extension-missing":
        "argocd-cm has no extension.config.live, so argocd-server does not forward requests to argocd-ocm-cmp-live",
        "restore it with argocd-ocm-cmp install --features live";
    error NO_DEPLOYMENT "live-deployment-missing":
        "Deployment {namespace}/argocd-ocm-cmp-live does not exist",
        "restore it with argocd-ocm-cmp install --features live";
    error NOT_READY "live-not-ready":
        "Deployment {namespace}/argocd-ocm-cmp-live has no ready Pod",
        "see the Events of its Pods with `kubectl describe`, and its log with `kubectl logs`";
    error NO_TOKEN "live-token-missing":
        "Secret {namespace}/argocd-ocm-cmp-live has no token for argocd-server",
        "create it with argocd-ocm-cmp install --features live";
    error NOT_TRUSTED "live-not-trusted":
        "argocd-server does not mount ConfigMap {namespace}/argocd-ocm-cmp-live, or the ConfigMap has no certificate",
        "restore it with argocd-ocm-cmp install --features live";
    warning NOT_PERMITTED "live-not-permitted":
        "no policy in argocd-rbac-cm permits extensions, invoke, live",
        "add one for each role that may use the view, as docs/live.md describes";
    error NO_AUTHORITY "live-authority-missing":
        "ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy has no certificate authority of cluster-proxy in ca.crt",
        "create it with argocd-ocm-cmp install --features live";
    error EXPIRED "live-authority-expired":
        "the certificate authority in ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy expired at {time}",
        "replace it with argocd-ocm-cmp install --features live";
    error OTHER_AUTHORITY "live-authority-differs":
        "ConfigMap {namespace}/argocd-ocm-cmp-cluster-proxy differs from Secret open-cluster-management-addon/proxy-server-ca",
        "replace it with argocd-ocm-cmp install --features live";
    warning NO_ADDON "live-cluster-proxy-missing":
        "the add-on cluster-proxy is not on managed clusters with works: {names}",
        "install it there, or leave these clusters out of the view";
    warning NOT_AVAILABLE "live-cluster-proxy-not-available":
        "the add-on cluster-proxy is not available on {names}",
        "see the conditions of ManagedClusterAddOn cluster-proxy in the namespace of the cluster";
    warning NO_PERMISSIONS "live-permissions-missing":
        "no work delivers the permissions of the view to {names}",
        "deliver deploy/live_cluster_rbac.yaml there with an Application, or leave these clusters out of the view";
    ok OK "live":
        "argocd-server, argocd-ocm-cmp-live and cluster-proxy are connected";
}

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let Some(live) = &hub_state.live else { return Vec::new() };
    let mut findings = about_argocd_server(hub_state, live);
    findings.extend(about_service(hub_state, live));
    findings.extend(about_authority(hub_state, live, now));
    findings.extend(about_addons(hub_state, live));
    OK.if_none(findings, &[])
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
    if let Some(server) = component_of(hub_state.deployments.items(), SERVER) {
        let volumes = items(&server["spec"]["template"]["spec"]["volumes"]);
        let is_mounted = volumes.iter().any(|volume| volume["configMap"]["name"] == LIVE);
        match &live.certificate {
            refused @ Lookup::Refused(_) => findings.extend(refused.refusal(&format!("ConfigMap {namespace}/{LIVE}"))),
            Lookup::Found(config) if is_mounted && config["data"]["tls.crt"].is_string() => {}
            _ => findings.push(NOT_TRUSTED.finding(&[("namespace", namespace)])),
        }
    }
    match &live.rbac {
        refused @ Lookup::Refused(_) => {
            findings.extend(refused.refusal(&format!("ConfigMap {namespace}/argocd-rbac-cm")));
        }
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
    if hub_state.deployments.found().is_some() {
        match hub_state.deployment(LIVE) {
            None => findings.push(NO_DEPLOYMENT.finding(&[("namespace", namespace)])),
            Some(deployment) if !is_ready(deployment) => findings.push(NOT_READY.finding(&[("namespace", namespace)])),
            Some(_) => {}
        }
    }
    match &live.has_token {
        refused @ Lookup::Refused(_) => findings.extend(refused.refusal(&format!("Secret {namespace}/{LIVE}"))),
        Lookup::Found(true) => {}
        _ => findings.push(NO_TOKEN.finding(&[("namespace", namespace)])),
    }
    findings
}

fn about_authority(hub_state: &HubState, live: &LiveState, now: Timestamp) -> Vec<Finding> {
    let namespace = &hub_state.namespace;
    let refusal = live.authority.refusal(&format!("ConfigMap {namespace}/{AUTHORITY}"));
    if !refusal.is_empty() {
        return refusal;
    }
    let text = live.authority.text(AUTHORITY_KEY).unwrap_or_default();
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
        Lookup::Found(issued) if issued.trim() != text.trim() => {
            vec![OTHER_AUTHORITY.finding(&[("namespace", namespace)])]
        }
        // It does not exist if an administrator has installed cluster-proxy elsewhere.
        issued => issued.refusal(&format!("Secret {CLUSTER_PROXY_NAMESPACE}/proxy-server-ca")),
    }
}

fn about_addons(hub_state: &HubState, live: &LiveState) -> Vec<Finding> {
    // Another check reports that add-ons are not served.
    let Some(addons) = live.addons.found() else {
        return live.addons.refusal("ManagedClusterAddOns");
    };
    let works = hub_state.works.items().iter();
    let clusters: BTreeSet<&str> = works
        .filter(|work| work.application.is_some())
        .map(|work| &*work.cluster)
        .collect();
    let about = |message: &'static Message, has_problem: &dyn Fn(&str) -> bool| {
        message.about(CLUSTERS, clusters.iter().filter(|cluster| has_problem(cluster)), &[])
    };
    let findings = [
        about(&NO_ADDON, &|cluster| !addons.contains_key(cluster)),
        about(&NOT_AVAILABLE, &|cluster| addons.get(cluster) == Some(&false)),
        about(&NO_PERMISSIONS, &|cluster| {
            addons.contains_key(cluster) && !live.permitting.contains(cluster)
        }),
    ];
    findings.into_iter().flatten().collect()
}
