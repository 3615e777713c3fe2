use super::*;
use serde_json::json;
use std::slice::from_ref;

fn refs(all: &[Value]) -> Vec<&Value> {
    all.iter().collect()
}

fn discover(services: &[Value], routes: &[Value], nodes: &[Value]) -> Result<Server, String> {
    super::discover(&refs(services), &refs(routes), &refs(nodes))
}

fn resource_proxy(services: &[Value], namespace: &str) -> (String, BTreeSet<String>) {
    super::resource_proxy(&refs(services), namespace)
}

fn principal_names(
    services: &[Value],
    routes: &[Value],
    nodes: &[Value],
    namespace: &str,
    address: Option<&str>,
) -> BTreeSet<String> {
    super::principal_names(&refs(services), &refs(routes), &refs(nodes), namespace, address)
}

fn service(name: &str, kind: &str, ports: &Value, ingress: &Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"type": kind, "ports": ports},
        "status": {"loadBalancer": {"ingress": ingress}},
    })
}

fn principal(kind: &str, ports: &Value, ingress: &Value) -> Value {
    service("argocd-agent-principal", kind, ports, ingress)
}

fn route(to: &str, termination: &str, host: &str) -> Value {
    json!({"spec": {"to": {"name": to}, "tls": {"termination": termination}, "host": host}})
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

#[track_caller]
fn found(services: &[Value], routes: &[Value], nodes: &[Value], expected: (&str, &str)) {
    let server = discover(services, routes, nodes).expect("it is exposed");
    assert_eq!((&*server.address, &*server.port), expected);
}

#[test]
fn prefers_a_route_to_a_load_balancer_and_a_name_to_an_ip() {
    let both = json!([{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]);
    let balanced = principal("LoadBalancer", &https(), &both);
    let passthrough = route("argocd-agent-principal", "passthrough", "hub.example.com");
    found(
        from_ref(&balanced),
        from_ref(&passthrough),
        &[],
        ("hub.example.com", "443"),
    );
    for useless in [
        route("argocd-agent-principal", "edge", "hub.example.com"),
        route("argocd-server", "passthrough", "hub.example.com"),
        route("argocd-agent-principal", "passthrough", ""),
    ] {
        found(from_ref(&balanced), &[useless], &[], ("lb.example.com", "444"));
    }
    let mut admitted = passthrough;
    admitted["status"] = json!({"ingress": [{"host": "admitted.example.com"}]});
    found(&[balanced], &[admitted], &[], ("admitted.example.com", "443"));
    let address = principal("LoadBalancer", &https(), &json!([{"ip": "192.0.2.1"}]));
    found(&[address], &[], &[], ("192.0.2.1", "444"));
}

#[test]
fn selects_the_agent_port_of_the_service() {
    let ingress = json!([{"ip": "192.0.2.1"}]);
    for (ports, expected) in [
        (json!([{"port": 9000}, {"port": 8443}]), "8443"),
        (json!([{"port": 9000}, {"port": 443}]), "443"),
        (json!([{"port": 9000}, {"port": 9001}]), "9000"),
        (json!([]), "443"),
    ] {
        let service = principal("LoadBalancer", &ports, &ingress);
        found(&[service], &[], &[], ("192.0.2.1", expected));
    }
}

#[test]
fn resolves_a_node_port_to_a_ready_node() {
    let nodes = [
        node("c", "True", "192.0.2.3"),
        node("b", "True", "192.0.2.2"),
        node("a", "False", "192.0.2.1"),
    ];
    let service = principal("NodePort", &https(), &json!([]));
    found(&[service], &[], &nodes, ("192.0.2.2", "30002"));
}

#[test]
fn prefers_the_upstream_service_to_red_hats() {
    let hat = service(
        "openshift-gitops-agent-principal",
        "LoadBalancer",
        &https(),
        &json!([{"hostname": "hat"}]),
    );
    found(from_ref(&hat), &[], &[], ("hat", "444"));
    let own = principal("LoadBalancer", &https(), &json!([{"hostname": "own"}]));
    found(&[hat, own], &[], &[], ("own", "444"));
}

#[test]
fn discovery_error_names_the_remediation() {
    let said = |services: &[Value], nodes: &[Value]| discover(services, &[], nodes).expect_err("it is not exposed");
    let all = [
        said(&[], &[]),
        said(&[principal("ClusterIP", &https(), &json!([]))], &[]),
        said(&[principal("LoadBalancer", &https(), &Value::Null)], &[]),
        said(
            &[principal("NodePort", &https(), &Value::Null)],
            &[node("a", "False", "192.0.2.1")],
        ),
        said(
            &[principal("NodePort", &json!([{"port": 443}]), &Value::Null)],
            &[node("a", "True", "192.0.2.1")],
        ),
        said(
            &[json!({"metadata": {"name": "argocd-agent-principal"}, "spec": "broken"})],
            &[],
        ),
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
    let names = |services: &[Value], routes: &[Value], address| {
        let nodes = [node("a", "False", "192.0.2.1"), node("b", "True", "192.0.2.2")];
        let names = principal_names(services, routes, &nodes, "argocd", address);
        names.into_iter().collect::<Vec<_>>().join(" ")
    };
    let balanced = principal(
        "LoadBalancer",
        &https(),
        &json!([{"hostname": "lb"}, {"ip": "192.0.2.9"}]),
    );
    let routes = [route("argocd-agent-principal", "passthrough", "hub.example.com")];
    let ports = principal("NodePort", &https(), &json!([]));
    let all = [
        names(&[], &routes, None),
        names(&[balanced], &routes, Some("principal.example.com")),
        names(&[ports], &[], Some("")),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
        127.0.0.1 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local localhost
        127.0.0.1 192.0.2.9 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local hub.example.com lb localhost principal.example.com
        127.0.0.1 192.0.2.1 192.0.2.2 ::1 argocd-agent-principal argocd-agent-principal.argocd argocd-agent-principal.argocd.svc argocd-agent-principal.argocd.svc.cluster.local localhost
        ");
}

#[test]
fn resource_proxy_has_an_address_inside_the_hub() {
    let server = |services: &[Value]| resource_proxy(services, "argocd").0;
    assert_eq!(server(&[]), "https://argocd-agent-resource-proxy:9090");
    let ports = json!([{"port": 1}, {"name": "resource-proxy", "port": 9191}]);
    assert_eq!(
        server(&[service(
            "argocd-agent-resource-proxy",
            "ClusterIP",
            &ports,
            &Value::Null
        )]),
        "https://argocd-agent-resource-proxy:9191"
    );
    let hat = service(names::RESOURCE_PROXY_SERVICES[1], "ClusterIP", &json!([]), &Value::Null);
    let (server, names) = resource_proxy(&[hat], "gitops");
    assert_eq!(
        server,
        "https://openshift-gitops-agent-principal-resource-proxy.gitops.svc:9090"
    );
    assert!(names.contains("openshift-gitops-agent-principal-resource-proxy.gitops.svc"));
}

#[test]
fn configured_server_overrides_the_discovered_one() {
    let discovered = || {
        Ok(Server {
            address: "found".into(),
            port: "8443".into(),
        })
    };
    for (address, port, expected) in [
        (Some("said"), Some("1"), ("said", "1")),
        (Some("said"), None, ("said", "443")),
        (None, Some("1"), ("found", "1")),
        (Some(""), Some(""), ("found", "8443")),
    ] {
        let desired = DesiredAgent {
            address: address.map(Into::into),
            port: port.map(Into::into),
            ..DesiredAgent::default()
        };
        let server = configured_server(&desired, discovered).expect("one or the other");
        assert_eq!((&*server.address, &*server.port), expected);
    }
    let missing = || Err("missing".to_owned());
    assert_eq!(configured_server(&DesiredAgent::default(), missing), missing());
}
