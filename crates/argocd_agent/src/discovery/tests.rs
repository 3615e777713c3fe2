use super::*;
use hub_state::testing::stored;
use serde_json::json;

/// Returns the cache of a hub with these Services, Routes and Nodes.
fn hub(services: &[Value], routes: &[Value], nodes: &[Value]) -> Cache {
    let mut cache = Cache::new("argocd");
    for (kind, objects) in [(Kind::Services, services), (Kind::Routes, routes), (Kind::Nodes, nodes)] {
        for object in objects {
            cache.apply(stored(kind, object));
        }
    }
    cache
}

fn service(name: &str, kind: &str, ports: &Value, ingress: &Value) -> Value {
    json!({
        "metadata": {"namespace": "argocd", "name": name},
        "spec": {"type": kind, "ports": ports},
        "status": {"loadBalancer": {"ingress": ingress}},
    })
}

fn principal(kind: &str, ports: &Value, ingress: &Value) -> Value {
    service("argocd-agent-principal", kind, ports, ingress)
}

fn route(to: &str, termination: &str, host: &str) -> Value {
    json!({"metadata": {"namespace": "argocd", "name": "route"}, "spec": {"to": {"name": to}, "tls": {"termination": termination}, "host": host}})
}

fn node(name: &str, ready: &str, address: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}],
        },
    })
}

fn https() -> Value {
    json!([{"name": "grpc", "port": 8443, "nodePort": 30001}, {"name": "https", "port": 444, "nodePort": 30002}])
}

#[test]
fn finds_the_address_of_the_principal() {
    let balanced = |ports: &Value, ingress| principal("LoadBalancer", ports, &ingress);
    let both = || balanced(&https(), json!([{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]));
    let by_ip = |ports: Value| balanced(&ports, json!([{"ip": "192.0.2.1"}]));
    let to_principal = |termination, host| route("argocd-agent-principal", termination, host);
    let mut admitted = to_principal("passthrough", "hub.example.com");
    admitted["status"] = json!({"ingress": [{"host": "admitted.example.com"}]});
    let nodes = [("c", "True", 3), ("b", "True", 2), ("a", "False", 1)]
        .map(|(name, ready, number)| node(name, ready, &format!("192.0.2.{number}")));
    let address = |services: &[Value], routes: &[Value]| {
        let Server { address, port } = discover(&hub(services, routes, &nodes)).expect("an address");
        format!("{address}:{port}")
    };
    // A Route that passes TLS through wins over a load balancer, and a host name over an IP address.
    for (route, expected) in [
        (to_principal("passthrough", "hub.example.com"), "hub.example.com:443"),
        (admitted, "admitted.example.com:443"),
        (to_principal("edge", "hub.example.com"), "lb.example.com:444"),
        (route("argocd-server", "passthrough", "hub"), "lb.example.com:444"),
        (to_principal("passthrough", ""), "lb.example.com:444"),
    ] {
        assert_eq!(address(&[both()], &[route]), expected);
    }
    for (service, expected) in [
        (by_ip(https()), "192.0.2.1:444"),
        // The port of agents: https, else 8443 or 443, else the first.
        (by_ip(json!([{"port": 9000}, {"port": 8443}])), "192.0.2.1:8443"),
        (by_ip(json!([{"port": 9000}, {"port": 443}])), "192.0.2.1:443"),
        (by_ip(json!([{"port": 9000}, {"port": 9001}])), "192.0.2.1:9000"),
        (by_ip(json!([])), "192.0.2.1:443"),
        (balanced(&https(), json!([{"ip": "2001:DB8::1"}])), "[2001:db8::1]:444"),
        // The first ready Node by name.
        (principal("NodePort", &https(), &json!([])), "192.0.2.2:30002"),
    ] {
        assert_eq!(address(&[service], &[]), expected);
    }
    // argocd-agent's own Service wins over Red Hat's.
    let named = |name| service(name, "LoadBalancer", &https(), &json!([{"hostname": name}]));
    let services = names::PRINCIPAL_SERVICES.map(named);
    assert_eq!(address(&services[1..], &[]), "openshift-gitops-agent-principal:444");
    assert_eq!(address(&services, &[]), "argocd-agent-principal:444");
}

#[test]
fn discovery_error_names_the_remediation() {
    let said =
        |services: &[Value], nodes: &[Value]| discover(&hub(services, &[], nodes)).expect_err("it is not exposed");
    let exposed = |kind, ports, nodes: &[Value]| said(&[principal(kind, &ports, &Value::Null)], nodes);
    let [unready, ready] = ["False", "True"].map(|ready| [node("a", ready, "192.0.2.1")]);
    let mut broken = principal("ClusterIP", &https(), &Value::Null);
    broken["spec"] = json!("broken");
    let all = [
        said(&[], &[]),
        exposed("ClusterIP", https(), &[]),
        exposed("LoadBalancer", https(), &[]),
        exposed("NodePort", https(), &unready),
        exposed("NodePort", json!([{"port": 443}]), &ready),
        said(&[broken], &[]),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
        Service argocd-agent-principal is missing in Argo CD's namespace: install argocd-agent's principal, or set the principal's address and port in the GitOpsCluster
        Service argocd-agent-principal is reachable only inside the hub: set its type to LoadBalancer or NodePort, give it a Route with TLS termination passthrough, or set the principal's address and port in the GitOpsCluster
        the load balancer of Service argocd-agent-principal has no address yet: wait until it has one, or set the principal's address and port in the GitOpsCluster
        Service argocd-agent-principal is of type NodePort, but no ready Node has an InternalIP: check the Nodes, or set the principal's address and port in the GitOpsCluster
        Service argocd-agent-principal has no node port yet: wait until it has one, or set the principal's address and port in the GitOpsCluster
        Service argocd-agent-principal is reachable only inside the hub: set its type to LoadBalancer or NodePort, give it a Route with TLS termination passthrough, or set the principal's address and port in the GitOpsCluster
        ");
}

#[test]
fn principal_certificate_covers_every_name_of_the_principal() {
    let names = |services: &[Value], routes: &[Value]| {
        let nodes = [node("a", "False", "192.0.2.1"), node("b", "True", "192.0.2.2")];
        let both = principal_names(&hub(services, routes, &nodes));
        both.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let balanced = principal(
        "LoadBalancer",
        &https(),
        &json!([{"hostname": "lb"}, {"ip": "192.0.2.9"}]),
    );
    let routes = [route("argocd-agent-principal", "passthrough", "hub.example.com")];
    let ports = principal("NodePort", &https(), &json!([]));
    let all = [names(&[], &routes), names(&[balanced], &routes), names(&[ports], &[])];
    insta::assert_snapshot!(all.join("\n"), @r"
        127.0.0.1 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local localhost
        127.0.0.1 192.0.2.9 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local hub.example.com lb localhost
        127.0.0.1 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local localhost 192.0.2.1 192.0.2.2
        ");
}

#[test]
fn resource_proxy_has_an_address_inside_the_hub() {
    let server = |services: &[Value]| resource_proxy(&hub(services, &[], &[]));
    assert_eq!(server(&[]).0, "https://argocd-agent-resource-proxy:9090");
    let ports = json!([{"port": 1}, {"name": "resource-proxy", "port": 9191}]);
    let services = names::RESOURCE_PROXY_SERVICES.map(|name| service(name, "ClusterIP", &ports, &Value::Null));
    assert_eq!(server(&services).0, "https://argocd-agent-resource-proxy:9191");
    for (number, name) in [(1, "argocd-agent-principal"), (2, "openshift-gitops-agent-principal")] {
        let (server, names) = server(&services[number..]);
        let host = format!("{name}-resource-proxy.argocd.svc");
        assert_eq!(server, format!("https://{host}:9191"));
        assert!(names.contains(&*host));
    }
}

#[test]
fn refuses_a_configured_server_that_no_certificate_can_contain() {
    for address in ["hub:443", "https://hub", "hub ", "[hub]:443", "[::1", "fe80::1%eth0"] {
        let desired = DesiredAgent {
            address: Some(address.into()),
            ..DesiredAgent::default()
        };
        let why = server(&hub(&[], &[], &[]), &desired).expect_err(address);
        assert_eq!(
            why,
            format!(
                "{address:?} is neither a host name nor an IP address: correct the principal's address in the GitOpsCluster"
            )
        );
    }
}

#[test]
fn configured_server_overrides_the_discovered_one() {
    let found = principal(
        "LoadBalancer",
        &json!([{"port": 8443}]),
        &json!([{"hostname": "found"}]),
    );
    let cache = hub(&[found], &[], &[]);
    for (address, port, expected) in [
        (Some("said"), Some("1"), ("said", "1")),
        (Some("said"), None, ("said", "443")),
        (None, Some("1"), ("found", "1")),
        (Some("2001:DB8::0001"), None, ("[2001:db8::1]", "443")),
        (Some("[2001:db8::1]"), None, ("[2001:db8::1]", "443")),
        (Some("::ffff:192.0.2.1"), None, ("192.0.2.1", "443")),
        (Some(""), Some(""), ("found", "8443")),
    ] {
        let desired = DesiredAgent {
            address: address.map(Into::into),
            port: port.map(Into::into),
            ..DesiredAgent::default()
        };
        let server = server(&cache, &desired).expect("one or the other");
        assert_eq!((&*server.address, &*server.port), expected);
    }
}
