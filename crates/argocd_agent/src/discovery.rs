//! The discovery of the address where managed clusters reach the principal, from the way its Service is exposed: a Route, a load
//! balancer, or a node port.

use hub_state::model::DesiredAgent;
use ocm::argocd_agent as names;
use serde_json::Value;
use std::collections::BTreeSet;

/// The address where managed clusters reach the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// A host name or an IP address.
    pub address: Box<str>,
    /// The port number.
    pub port: Box<str>,
}

impl Server {
    fn new(address: &str, port: u64) -> Self {
        Self {
            address: address.into(),
            port: port.to_string().into(),
        }
    }
}

/// The end of each reason why managed clusters cannot reach the principal.
const REMEDIATION: &str = "or set the principal's address and port in the GitOpsCluster";

/// Returns the address where managed clusters reach the principal: the configured one, otherwise the discovered one. The
/// default port of a configured address is 443.
///
/// # Errors
/// Returns the errors of [`discover`] if the address is discovered.
pub fn configured_server(
    desired: &DesiredAgent,
    discovered: impl FnOnce() -> Result<Server, String>,
) -> Result<Server, String> {
    let configured = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
    let port = configured(&desired.port);
    if let Some(address) = configured(&desired.address) {
        let port = port.unwrap_or_else(|| "443".into());
        return Ok(Server { address, port });
    }
    let Server {
        address,
        port: discovered_port,
    } = discovered()?;
    let port = port.unwrap_or(discovered_port);
    Ok(Server { address, port })
}

/// Returns the address where managed clusters reach the principal, from the Services and Routes of Argo CD's namespace and the
/// Nodes. A Route wins over a load balancer, and that over a node port, as with Red Hat ACM; a host name wins over an IP address,
/// as with Red Hat ACM and argocd-pull-integration.
///
/// # Errors
/// Returns the reason why the principal has no such address.
pub fn discover(services: &[&Value], routes: &[&Value], nodes: &[&Value]) -> Result<Server, String> {
    let Some(service) = find(services, names::PRINCIPAL_SERVICES) else {
        let [name, _] = names::PRINCIPAL_SERVICES;
        return Err(format!(
            "Service {name} is missing in Argo CD's namespace: install argocd-agent's principal, {REMEDIATION}"
        ));
    };
    let name = name_of(service);
    if let Some(host) = hosts(routes, name).next() {
        return Ok(Server::new(host, 443));
    }
    let port = port(service, "https", &[443, 8443]);
    match text_at(service, "/spec/type") {
        "LoadBalancer" => {
            let address = ingresses(service, "hostname").chain(ingresses(service, "ip")).next();
            let server = |address| Server::new(address, port.map_or(443, |port| number_at(port, "/port")));
            address.map(server).ok_or_else(|| {
                format!("the load balancer of Service {name} has no address yet: wait until it has one, {REMEDIATION}")
            })
        }
        "NodePort" => {
            let port = port.map(|port| number_at(port, "/nodePort")).filter(|port| *port > 0);
            let address = ready(nodes).find_map(|node| internal_addresses(node).next());
            match (address, port) {
                (Some(address), Some(port)) => Ok(Server::new(address, port)),
                (None, _) => Err(format!(
                    "Service {name} is of type NodePort, but no ready Node has an InternalIP: check the Nodes, \
                     {REMEDIATION}"
                )),
                (_, None) => Err(format!(
                    "Service {name} has no node port yet: wait until it has one, {REMEDIATION}"
                )),
            }
        }
        _ => Err(format!(
            "Service {name} is reachable only inside the hub: set its type to LoadBalancer or NodePort, give it a Route with \
             TLS termination passthrough, {REMEDIATION}"
        )),
    }
}

/// Returns the DNS names and IP addresses for the principal's certificate: those that expose it, and those of its Service inside the
/// hub.
pub fn principal_names(
    services: &[&Value],
    routes: &[&Value],
    nodes: &[&Value],
    namespace: &str,
) -> BTreeSet<Box<str>> {
    let [default, _] = names::PRINCIPAL_SERVICES;
    let service = find(services, names::PRINCIPAL_SERVICES);
    let mut all = inside(service.map_or(default, name_of), namespace);
    let Some(service) = service else { return all };
    let exposed = hosts(routes, name_of(service))
        .chain(ingresses(service, "hostname"))
        .chain(ingresses(service, "ip"));
    all.extend(exposed.map(Into::into));
    if text_at(service, "/spec/type") == "NodePort" {
        // Includes Nodes that are not ready, because they may become ready.
        all.extend(nodes.iter().copied().flat_map(internal_addresses).map(Into::into));
    }
    all
}

/// Returns the URL where the hub's Argo CD reaches the principal's resource proxy, and the names for its certificate.
pub fn resource_proxy(services: &[&Value], namespace: &str) -> (String, BTreeSet<Box<str>>) {
    const PORT: u64 = 9090;
    let [default, _] = names::RESOURCE_PROXY_SERVICES;
    let service = find(services, names::RESOURCE_PROXY_SERVICES);
    let name = service.map_or(default, name_of);
    let port = service.and_then(|service| port(service, "resource-proxy", &[PORT]));
    let port = port.map_or(PORT, |port| number_at(port, "/port"));
    let names = inside(name, namespace);
    // `argocd-agentctl` writes the short name of its own Service; Red Hat's uses the full name.
    let host = if name == default {
        name.to_owned()
    } else {
        format!("{name}.{namespace}.svc")
    };
    (format!("https://{host}:{port}"), names)
}

/// Returns the names of a Service inside the hub.
fn inside(service: &str, namespace: &str) -> BTreeSet<Box<str>> {
    let names = ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}").into());
    let local = ["localhost", "127.0.0.1", "::1", service].map(Into::into);
    names.into_iter().chain(local).collect()
}

fn find<'v>(services: &[&'v Value], names: [&str; 2]) -> Option<&'v Value> {
    let with = |name| services.iter().copied().find(|service| name_of(service) == name);
    names.into_iter().find_map(with)
}

/// Returns the port of this name, else of one of the usual numbers, else the first.
fn port<'v>(service: &'v Value, name: &str, usual: &[u64]) -> Option<&'v Value> {
    let ports = list_at(service, "/spec/ports");
    let named = ports.iter().find(|port| text_at(port, "/name") == name);
    let usual = || ports.iter().find(|port| usual.contains(&number_at(port, "/port")));
    named.or_else(usual).or(ports.first())
}

/// Returns the hosts of Routes to a Service that pass TLS through, because TLS is between the agent and the principal.
fn hosts<'v>(routes: &[&'v Value], service: &str) -> impl Iterator<Item = &'v str> {
    let leads_there = move |route: &&Value| {
        text_at(route, "/spec/to/name") == service && text_at(route, "/spec/tls/termination") == "passthrough"
    };
    let host = |route: &'v Value| {
        let admitted = text_at(route, "/status/ingress/0/host");
        if admitted.is_empty() {
            text_at(route, "/spec/host")
        } else {
            admitted
        }
    };
    routes
        .iter()
        .copied()
        .filter(leads_there)
        .map(host)
        .filter(|host| !host.is_empty())
}

/// Returns the host names or IP addresses that a load balancer has assigned.
fn ingresses<'v>(service: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    let given = list_at(service, "/status/loadBalancer/ingress").iter();
    given.filter_map(move |ingress| ingress[field].as_str().filter(|address| !address.is_empty()))
}

/// Returns the ready Nodes sorted by name, so that the result does not depend on their order in a list.
fn ready<'v>(nodes: &[&'v Value]) -> impl Iterator<Item = &'v Value> {
    let is_ready = |node: &&Value| {
        let is_true = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        list_at(node, "/status/conditions").iter().any(is_true)
    };
    let mut ready: Vec<&Value> = nodes.iter().copied().filter(is_ready).collect();
    ready.sort_by_key(|node| name_of(node));
    ready.into_iter()
}

fn internal_addresses(node: &Value) -> impl Iterator<Item = &str> {
    let addresses = list_at(node, "/status/addresses").iter();
    addresses
        .filter(|address| address["type"] == "InternalIP")
        .filter_map(|address| address["address"].as_str())
}

fn name_of(object: &Value) -> &str {
    text_at(object, "/metadata/name")
}

fn text_at<'v>(object: &'v Value, path: &str) -> &'v str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn number_at(object: &Value, path: &str) -> u64 {
    object.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

fn list_at<'v>(object: &'v Value, path: &str) -> &'v [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
