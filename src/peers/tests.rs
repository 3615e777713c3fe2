use super::*;
use serde_json::json;

fn deployment(name: &str, image: &str, commands: &[&[&str]]) -> Value {
    let containers: Vec<_> = commands
        .iter()
        .map(|words| json!({"image": image, "command": words[..1], "args": words[1..]}))
        .collect();
    json!({"metadata": {"namespace": "ns", "name": name}, "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}})
}

/// The Deployment of Red Hat ACM.
fn acm() -> Value {
    let commands: [&[&str]; 4] = [
        &["/usr/local/bin/gitopssyncresc"],
        &["/usr/local/bin/multiclusterstatusaggregation", "--sync-interval=10"],
        &["/usr/local/bin/propagation"],
        &["/usr/local/bin/gitopscluster"],
    ];
    deployment(
        "multicluster-integrations",
        "registry.example.com/mirror/multicloud-integrations-rhel9@sha256:0",
        &commands,
    )
}

fn peer(deployment: &Value) -> Peer {
    Peer::from_deployment(deployment).expect("a peer")
}

#[test]
fn command_stops_argocd_pull_integration() {
    let image = "quay.io/open-cluster-management/argocd-pull-integration:latest";
    let basic = peer(&deployment(
        "renamed",
        image,
        &[&["/manager", "--mode=basic", "--leader-elect"]],
    ));
    assert_eq!(
        basic
            .remedy(&["pull", "cluster-secrets", "application-set-report"])
            .as_deref(),
        Some(
            "Deployment ns/renamed writes the objects of cluster-secrets, pull: run kubectl -n ns scale deployment renamed \
             --replicas=0"
        )
    );
    assert_eq!(basic.remedy(&["gitopscluster"]), None);
    let agents = peer(&deployment(
        "argocd-pull-integration-controller",
        "mirror/a",
        &[&["/manager", "--mode=controller"]],
    ));
    assert!(agents.remedy(&["argocd-agent"]).is_some() && agents.remedy(&["pull"]).is_none());
}

#[test]
fn setting_stops_the_pull_model_of_acm() {
    let mut peer = peer(&acm());
    let planned = ["pull", "application-set-report"];
    assert_eq!(
        peer.remedy(&planned).as_deref(),
        Some(
            "Deployment ns/multicluster-integrations writes the objects of application-set-report, pull: set \
             pullModel.basic.disabled: true in ConfigMap ns/multicluster-integrations-config, and run kubectl -n ns rollout \
             restart deployment multicluster-integrations"
        )
    );
    for other in [
        "",
        "pullModel: {basic: {disabled: false}}",
        "pullModel: [",
        "a\n---\nb",
        "pullModel: {basic: true}",
    ] {
        peer.apply_config(&json!({"data": {"config.yaml": other}}));
        assert!(peer.remedy(&planned).is_some(), "{other}");
    }
    peer.apply_config(&json!({"data": {"config.yaml": "pullModel:\n  basic:\n    disabled: true\n"}}));
    assert_eq!(peer.remedy(&planned), None);
    assert_eq!(
        peer.remedy(&["pull", "gitopscluster"]).as_deref(),
        Some(
            "Deployment ns/multicluster-integrations writes the objects of gitopscluster: stop its operator, and run kubectl -n ns \
             scale deployment multicluster-integrations --replicas=0"
        )
    );
}

#[test]
fn other_deployments_are_no_peers() {
    let mut stopped = acm();
    stopped["spec"]["replicas"] = json!(0);
    let manager: &[&[&str]] = &[&["/manager", "--mode=basic"]];
    let of_cluster = deployment("argocd-pull-integration", "a", &[&["/manager", "--mode=addon"]]);
    let named_alike = deployment("propagation", "example.com/propagation:1", &[&["/propagation"]]);
    let unknown = deployment("other", "example.com/other:1", manager);
    for other in [stopped, unknown, of_cluster, named_alike, json!({})] {
        assert_eq!(Peer::from_deployment(&other), None, "{other:#}");
    }
    let mut unset = acm();
    unset["spec"]["replicas"] = Value::Null;
    assert!(Peer::from_deployment(&unset).is_some(), "one replica is the default");
}
