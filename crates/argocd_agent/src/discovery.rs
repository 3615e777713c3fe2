//! The discovery of the address where managed clusters reach the principal, from the way its Service is exposed: a Route, a load
//! balancer, or a node port.

use hub_state::cache::Cache;
use hub_state::model::{DesiredAgent, Kind};
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use serde_json::Value;
use std::collections::BTreeSet;

/// The address where managed clusters reach the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// A host name or an IP address; an IPv6 address is in brackets, because agents dial `address:port`.
    pub address: Box<str>,
    /// The port number.
    pub port: Box<str>,
}

impl Server {
    /// Returns the server at an address as certificates contain it.
    fn new(address: &str, port: u64) -> Self {
        let is_ipv6 = address.contains(':');
        Self {
            address: if is_ipv6 {
                format!("[{address}]").into()
            } else {
                address.into()
            },
            port: port.to_string().into(),
        }
    }

    /// Returns the address as certificates contain it.
    pub(crate) fn alternative_name(&self) -> Option<Box<str>> {
        alternative_name(&self.address)
    }
}

/// Returns an address as certificates contain it. `None` if no certificate can contain it, so that agents cannot verify it.
fn alternative_name(address: &str) -> Option<Box<str>> {
    let bare = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
    pki::alternative_name(bare.unwrap_or(address))
}

/// The end of each reason why managed clusters cannot reach the principal.
const REMEDIATION: &str = "or set the principal's address and port in the GitOpsCluster";

/// Returns the address where managed clusters reach the principal: the configured one, otherwise the discovered one. The
/// default port of a configured address is 443.
///
/// # Errors
/// Returns the reason why there is no such address.
pub fn server(cache: &Cache, desired: &DesiredAgent) -> Result<Server, String> {
    let configured = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
    let server = match configured(&desired.address) {
        Some(address) => {
            let name = alternative_name(&address).ok_or_else(|| {
                format!(
                    "{address:?} is neither a host name nor an IP address: correct the principal's address in the \
                     GitOpsCluster"
                )
            })?;
            Server::new(&name, 443)
        }
        None => discover(cache)?,
    };
    let port = configured(&desired.port).unwrap_or(server.port);
    Ok(Server { port, ..server })
}

/// Returns the address where managed clusters reach the principal, from the Services and Routes of Argo CD's namespace and the
/// Nodes. A Route wins over a load balancer, and that over a node port, as with Red Hat ACM; a host name wins over an IP address,
/// as with Red Hat ACM and argocd-pull-integration.
fn discover(cache: &Cache) -> Result<Server, String> {
    let Some((name, service)) = find(cache, names::PRINCIPAL_SERVICES) else {
        let [name, _] = names::PRINCIPAL_SERVICES;
        return Err(format!(
            "Service {name} is missing in Argo CD's namespace: install argocd-agent's principal, {REMEDIATION}"
        ));
    };
    if let Some(host) = hosts(cache, name).next() {
        return Ok(Server::new(&host, 443));
    }
    let port = port(service, "https", &[443, 8443]);
    match text_at(service, "/spec/type") {
        "LoadBalancer" => {
            let address = ingresses(service, "hostname").chain(ingresses(service, "ip")).next();
            let server = |address: Box<str>| Server::new(&address, port.map_or(443, |port| number_at(port, "/port")));
            address.map(server).ok_or_else(|| {
                format!("the load balancer of Service {name} has no address yet: wait until it has one, {REMEDIATION}")
            })
        }
        "NodePort" => {
            let port = port.map(|port| number_at(port, "/nodePort")).filter(|port| *port > 0);
            let mut ready = nodes(cache).filter(|node| {
                let is_true = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
                list_at(node, "/status/conditions").iter().any(is_true)
            });
            let address = ready.find_map(|node| internal_addresses(node).next());
            match (address, port) {
                (Some(address), Some(port)) => Ok(Server::new(&address, port)),
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
pub(crate) fn principal_names(cache: &Cache) -> BTreeSet<Box<str>> {
    let [default, _] = names::PRINCIPAL_SERVICES;
    let Some((name, service)) = find(cache, names::PRINCIPAL_SERVICES) else {
        return inside(default, cache.argocd());
    };
    let mut all = inside(name, cache.argocd());
    let exposed = hosts(cache, name)
        .chain(ingresses(service, "hostname"))
        .chain(ingresses(service, "ip"));
    all.extend(exposed);
    if text_at(service, "/spec/type") == "NodePort" {
        // Includes Nodes that are not ready, because they may become ready.
        all.extend(nodes(cache).flat_map(internal_addresses));
    }
    all
}

/// Returns the URL where the hub's Argo CD reaches the principal's resource proxy, and the names for its certificate.
pub fn resource_proxy(cache: &Cache) -> (String, BTreeSet<Box<str>>) {
    const PORT: u64 = 9090;
    let [default, _] = names::RESOURCE_PROXY_SERVICES;
    let service = find(cache, names::RESOURCE_PROXY_SERVICES);
    let name = service.map_or(default, |(name, _)| name);
    let port = service.and_then(|(_, service)| port(service, "resource-proxy", &[PORT]));
    let port = port.map_or(PORT, |port| number_at(port, "/port"));
    let names = inside(name, cache.argocd());
    // `argocd-agentctl` writes the short name of its own Service; Red Hat's uses the full name.
    let host = if name == default {
        name.to_owned()
    } else {
        format!("{name}.{}.svc", cache.argocd())
    };
    (format!("https://{host}:{port}"), names)
}

/// Returns the names of a Service inside the hub.
fn inside(service: &str, namespace: &str) -> BTreeSet<Box<str>> {
    let names = ["", ".svc", ".svc.cluster.local"].map(|end| format!("{service}.{namespace}{end}").into());
    let local = ["localhost", "127.0.0.1", "::1", service].map(Into::into);
    names.into_iter().chain(local).collect()
}

/// Returns the first existing one of these Services, with its name.
fn find<'c>(cache: &'c Cache, names: [&'static str; 2]) -> Option<(&'static str, &'c Value)> {
    let with = |name| {
        Some((
            name,
            &cache
                .object(Kind::Services, &ObjectRef::new(cache.argocd(), name))?
                .object,
        ))
    };
    names.into_iter().find_map(with)
}

/// Returns the Nodes, sorted by name.
fn nodes(cache: &Cache) -> impl Iterator<Item = &Value> {
    cache.objects(Kind::Nodes).map(|(_, node)| &node.object)
}

/// Returns the port of this name, else of one of the usual numbers, else the first.
fn port<'v>(service: &'v Value, name: &str, usual: &[u64]) -> Option<&'v Value> {
    let ports = list_at(service, "/spec/ports");
    let named = ports.iter().find(|port| text_at(port, "/name") == name);
    let usual = || ports.iter().find(|port| usual.contains(&number_at(port, "/port")));
    named.or_else(usual).or(ports.first())
}

/// Returns the hosts of Routes to a Service that pass TLS through, because TLS is between the agent and the principal.
fn hosts(cache: &Cache, service: &str) -> impl Iterator<Item = Box<str>> {
    let leads_there = move |route: &&Value| {
        text_at(route, "/spec/to/name") == service && text_at(route, "/spec/tls/termination") == "passthrough"
    };
    let all = cache.objects(Kind::Routes).map(|(_, route)| &route.object);
    // The admitted host, else the requested one.
    let host = |route: &Value| {
        let mut hosts = ["/status/ingress/0/host", "/spec/host"]
            .map(|path| text_at(route, path))
            .into_iter();
        hosts.find_map(alternative_name)
    };
    all.filter(leads_there).filter_map(host)
}

/// Returns the host names or IP addresses that a load balancer has assigned.
fn ingresses(service: &Value, field: &str) -> impl Iterator<Item = Box<str>> {
    let given = list_at(service, "/status/loadBalancer/ingress").iter();
    given.filter_map(move |ingress| alternative_name(ingress[field].as_str()?))
}

fn internal_addresses(node: &Value) -> impl Iterator<Item = Box<str>> {
    let addresses = list_at(node, "/status/addresses").iter();
    addresses
        .filter(|address| address["type"] == "InternalIP")
        .filter_map(|address| alternative_name(address["address"].as_str()?))
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
