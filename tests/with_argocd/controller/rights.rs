//! Tests that the permissions in deploy/deploy_controller.yaml are exactly those that the controller uses, from the audit log of
//! the real API server.

use super::ACCOUNT;
use crate::stage::{shipped_objects, stage};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use testbed::{Hub, wait};

/// A verb on a resource; in one namespace and for one name if a rule is limited to these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    verb: String,
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

/// Returns the permissions that the roles of these shipped files grant, one by one.
fn granted(files: &str) -> Result<BTreeSet<Permission>> {
    let mut permissions = BTreeSet::new();
    for file in files.split_whitespace() {
        for object in shipped_objects(file)? {
            let namespace = match object["kind"].as_str() {
                Some("ClusterRole") => None,
                Some("Role") => object["metadata"]["namespace"].as_str().map(str::to_owned),
                _ => continue,
            };
            for rule in object["rules"].as_array().context("rules")? {
                permissions.extend(granted_by(rule, namespace.as_ref()));
            }
        }
    }
    Ok(permissions)
}

/// Returns the permissions that a rule grants, one by one.
fn granted_by(rule: &Value, namespace: Option<&String>) -> Vec<Permission> {
    let names = match rule.get("resourceNames") {
        Some(names) => texts(names).map(Some).collect(),
        None => vec![None],
    };
    let mut permissions = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                permissions.extend(names.iter().map(|name| Permission {
                    verb: verb.clone(),
                    resource: format!("{resource}.{group}"),
                    namespace: namespace.cloned(),
                    name: name.clone(),
                }));
            }
        }
    }
    permissions
}

fn texts(list: &Value) -> impl Iterator<Item = String> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice).iter();
    items.filter_map(|item| item.as_str().map(str::to_owned))
}

/// Returns the requests for objects, with their status codes.
fn requests(hub: &Hub) -> Result<Vec<(Permission, u64)>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let requests = hub.requests_by(ACCOUNT)?;
    let requests = requests
        .iter()
        .filter(|event| event["objectRef"]["resource"].is_string());
    let permission = |event: &Value| {
        let object = &event["objectRef"];
        let group = text(&object["apiGroup"]).unwrap_or_default();
        let resource = format!("{}.{group}", text(&object["resource"])?);
        let permission = Permission {
            verb: text(&event["verb"])?,
            resource: resource + text(&object["subresource"]).map_or("", |_| "/"),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
        };
        Some((permission, event["responseStatus"]["code"].as_u64()?))
    };
    requests
        .map(|event| permission(event).with_context(|| event.to_string()))
        .collect()
}

impl Permission {
    /// Returns true if it permits the request.
    fn covers(&self, requests: &Self) -> bool {
        let within = |mine: &Option<String>, requests: &Option<String>| mine.is_none() || mine == requests;
        (&self.verb, &self.resource) == (&requests.verb, &requests.resource)
            && within(&self.namespace, &requests.namespace)
            && within(&self.name, &requests.name)
    }

    /// Returns true if it is the request on API servers without streaming lists.
    fn is_fallback_of(&self, requests: &Self) -> bool {
        let watch = Self {
            verb: "watch".to_owned(),
            ..self.clone()
        };
        self.verb == "list" && watch.covers(requests)
    }
}

/// Waits until the controller has used every permission that these shipped files grant, and checks that it has requested nothing
/// else.
pub(crate) async fn check_exact_permissions(hub: &Hub, files: &str) -> Result<()> {
    let granted = granted(files)?;
    let unused = || -> Result<Vec<&Permission>> {
        let requests = requests(hub)?;
        let used = |permission: &&Permission| {
            requests
                .iter()
                .any(|(requests, _)| permission.covers(requests) || permission.is_fallback_of(requests))
        };
        Ok(granted.iter().filter(|permission| !used(permission)).collect())
    };
    let all_used = async || unused().ok()?.is_empty().then_some(());
    let all_used = wait::eventually("every permission is used", wait::DEADLINE, all_used).await;
    all_used.with_context(|| format!("not used: {:#?}", unused()))?;
    for (requests, answer) in requests(hub)? {
        ensure!(answer != 403, "refused: {requests:?}");
        // Catches requests that succeed with the default permissions of all users, which grant nothing for these objects.
        ensure!(
            granted.iter().any(|permission| permission.covers(&requests)),
            "no rule permits {requests:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn requests_have_their_own_flow_schema_and_leases_another() -> Result<()> {
    let stage = stage().await?;
    let flow = |schema: &str, level: &str| {
        format!(
            "apiserver_flowcontrol_dispatched_requests_total{{flow_schema=\"{schema}\",priority_level=\"{level}\"}} "
        )
    };
    let flows = [
        flow("argocd-ocm-cmp-controller", "argocd-ocm-cmp-controller"),
        flow("argocd-ocm-cmp-controller-leases", "leader-election"),
    ];
    let served = async || {
        let metrics = stage.hub.kubectl("get --raw /metrics").ok()?;
        let has = |flow: &String| metrics.lines().any(|line| line.starts_with(flow));
        flows.iter().all(has).then_some(())
    };
    wait::eventually("both have been served", wait::DEADLINE, served).await
}
