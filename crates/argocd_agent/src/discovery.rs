//! The discovery of the address where managed clusters reach the principal, from the way its Service is exposed: a Route, a load
//! balancer, or a node port.

use crate::reconcile::shared::find_existing;
use crate::state;
use hub_state::{Cache, DesiredAgent, Kind};
use ocm::argocd_agent as names;
use serde_json::Value;
use std::collections::BTreeSet;

/// The address where managed clusters reach the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// A host name or an IP address; an IPv6 address is in brackets, because agents dial `address:port`.
    pub address: Box<str>,
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
}

/// Returns an address as certificates contain it. `None` if no certificate can contain it, so that agents cannot verify it.
pub(crate) fn alternative_name(address: &str) -> Option<Box<str>> {
    let bare = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
    pki::alternative_name(bare.unwrap_or(address))
}

/// The end of each reason why managed clusters cannot reach the principal.
const REMEDIATION: &str = "or set the principal's address and port in the GitOpsCluster";

/// Returns the address where managed clusters reach the principal: the configured one, otherwise the discovered one. The default
/// port of a configured address is 443. The error is the reason why there is none.
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
    let Some((name, service)) = find_existing(cache, Kind::Services, names::PRINCIPAL_SERVICES).next() else {
        let [name, _] = names::PRINCIPAL_SERVICES;
        return Err(format!(
            "Service {name} is missing in Argo CD's namespace: install argocd-agent's principal, {REMEDIATION}"
        ));
    };
    if let Some(host) = hosts(cache, name).next() {
        return Ok(Server::new(&host, 443));
    }
    let port = port(service, "https", &[443, 8443]);
    match service["spec"]["type"].as_str() {
        Some("LoadBalancer") => {
            let address = ingresses(service, "hostname").chain(ingresses(service, "ip")).next();
            let port = port.and_then(|port| port["port"].as_u64()).unwrap_or(443);
            address.map(|address| Server::new(&address, port)).ok_or_else(|| {
                format!("the load balancer of Service {name} has no address yet: wait until it has one, {REMEDIATION}")
            })
        }
        Some("NodePort") => {
            let port = port.and_then(|port| port["nodePort"].as_u64()).filter(|port| *port > 0);
            let mut ready = nodes(cache).filter(|node| state::condition(node, "Ready")["status"] == "True");
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

/// Returns the DNS names and IP addresses that the principal's certificate needs: those that expose it, and those of its Service inside
/// the hub. A new certificate also gets the second list, of Nodes to which agents may connect later.
pub(crate) fn principal_names(cache: &Cache) -> [BTreeSet<Box<str>>; 2] {
    let [default, _] = names::PRINCIPAL_SERVICES;
    let Some((name, service)) = find_existing(cache, Kind::Services, names::PRINCIPAL_SERVICES).next() else {
        return [inside(default, cache.argocd()), BTreeSet::new()];
    };
    let mut needed = inside(name, cache.argocd());
    let exposed = hosts(cache, name)
        .chain(ingresses(service, "hostname"))
        .chain(ingresses(service, "ip"));
    needed.extend(exposed);
    // Includes Nodes that are not ready, because they may become ready.
    let nodes = nodes(cache).filter(|_| service["spec"]["type"] == "NodePort");
    [needed, nodes.flat_map(internal_addresses).collect()]
}

/// Returns the URL where the hub's Argo CD reaches the principal's resource proxy, and the names for its certificate.
pub fn resource_proxy(cache: &Cache) -> (String, BTreeSet<Box<str>>) {
    const PORT: u64 = 9090;
    let [default, ..] = names::RESOURCE_PROXY_SERVICES;
    let service = find_existing(cache, Kind::Services, names::RESOURCE_PROXY_SERVICES).next();
    let name = service.map_or(default, |(name, _)| name);
    let port = service.and_then(|(_, service)| port(service, "resource-proxy", &[PORT])?["port"].as_u64());
    let port = port.unwrap_or(PORT);
    let names = inside(name, cache.argocd());
    // `argocd-agentctl` writes the short name of argocd-agent's Service; Red Hat ACM writes full names.
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

/// Returns the Nodes, sorted by name.
fn nodes(cache: &Cache) -> impl Iterator<Item = &Value> {
    cache.objects(Kind::Nodes).map(|(_, node)| &node.object)
}

/// Returns the port of this name, else of one of the usual numbers, else the first.
fn port<'v>(service: &'v Value, name: &str, usual: &[u64]) -> Option<&'v Value> {
    let ports = service["spec"]["ports"].as_array()?;
    let is_usual = |port: &&Value| port["port"].as_u64().is_some_and(|number| usual.contains(&number));
    let named = ports.iter().find(|port| port["name"] == name);
    named.or_else(|| ports.iter().find(is_usual)).or(ports.first())
}

/// Returns the hosts of Routes to a Service that pass TLS through, because TLS is between the agent and the principal.
fn hosts(cache: &Cache, service: &str) -> impl Iterator<Item = Box<str>> {
    let all = cache.objects(Kind::Routes).map(|(_, route)| &route.object);
    let leads_there = all.filter(move |route| {
        route["spec"]["to"]["name"] == service && route["spec"]["tls"]["termination"] == "passthrough"
    });
    leads_there.filter_map(|route| {
        // The admitted host, else the requested one.
        let mut hosts = [&route["status"]["ingress"][0]["host"], &route["spec"]["host"]].into_iter();
        hosts.find_map(|host| alternative_name(host.as_str()?))
    })
}

/// Returns the host names or IP addresses that a load balancer has assigned.
fn ingresses(service: &Value, field: &str) -> impl Iterator<Item = Box<str>> {
    let given = service["status"]["loadBalancer"]["ingress"]
        .as_array()
        .into_iter()
        .flatten();
    given.filter_map(move |ingress| alternative_name(ingress[field].as_str()?))
}

fn internal_addresses(node: &Value) -> impl Iterator<Item = Box<str>> {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses
        .filter(|address| address["type"] == "InternalIP")
        .filter_map(|address| alternative_name(address["address"].as_str()?))
}

#[cfg(test)]
mod tests;
