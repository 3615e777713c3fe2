//! Tests of the model of GitOpsClusters.

use super::*;
use crate::model;
use crate::model::Kind;
use serde_json::json;

fn spec(spec: &Value) -> Spec {
    let mut whole = json!({"placementRef": {"name": "all"}});
    for (key, value) in spec.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    let text = json!({"metadata": {}, "spec": whole}).to_string();
    GitOpsCluster::from_json(&text).expect("a GitOpsCluster").spec
}

#[test]
fn registers_clusters_without_agents_or_when_requested() {
    let argocd = json!({"argoNamespace": "argocd"});
    let agent = |enabled: bool| json!({"enabled": enabled, "argoCDAgent": {"enabled": true}});
    for (registers, requested) in [
        (true, json!({"argoServer": argocd})),
        (true, json!({"argoServer": argocd, "createBlankClusterSecrets": false})),
        (true, json!({"argoServer": argocd, "gitopsAddon": {"enabled": true}})),
        (true, json!({"argoServer": argocd, "gitopsAddon": agent(false)})),
        (false, json!({"argoServer": argocd, "gitopsAddon": agent(true)})),
        (
            true,
            json!({"argoServer": argocd, "gitopsAddon": agent(true), "createBlankClusterSecrets": true}),
        ),
        (false, json!({"argoCDAgentAddon": {}})),
        (
            false,
            json!({"argoCDAgentAddon": {}, "createBlankClusterSecrets": false}),
        ),
        (true, json!({"argoCDAgentAddon": {}, "createBlankClusterSecrets": true})),
    ] {
        assert_eq!(spec(&requested).creates_blank_secrets, registers, "{requested}");
    }
}

#[test]
fn names_unsupported_fields_that_are_set() {
    let addon = |enabled: bool, agent: bool| {
        json!({
            "enabled": enabled, "overrideExistingConfigs": enabled, "gitOpsOperatorImage": "operator",
            "argoCDAgent": {"enabled": agent, "propagateHubCA": !agent, "image": "agent"}, "olmSubscription": {"enabled": enabled},
            "gitOpsImage": "argocd", "gitOpsNamespace": "gitops", "gitOpsOperatorNamespace": "operators",
            "reconcileScope": "Single-Namespace", "redisImage": "redis",
        })
    };
    let off = json!({
        "createPolicyTemplate": false, "managedServiceAccountRef": "", "gitopsAddon": addon(false, false),
        "createBlankClusterSecrets": true,
        "argoServer": {"cluster": "notused"},
    });
    assert_eq!(spec(&off).not_implemented, [""; 0]);
    let on = json!({
        "createPolicyTemplate": true, "managedServiceAccountRef": "push", "gitopsAddon": addon(true, true),
    });
    let all = [
        "createPolicyTemplate",
        "gitopsAddon.argoCDAgent.image",
        "gitopsAddon.argoCDAgent.propagateHubCA",
        "gitopsAddon.gitOpsImage",
        "gitopsAddon.gitOpsNamespace",
        "gitopsAddon.gitOpsOperatorImage",
        "gitopsAddon.gitOpsOperatorNamespace",
        "gitopsAddon.olmSubscription",
        "gitopsAddon.overrideExistingConfigs",
        "gitopsAddon.reconcileScope",
        "gitopsAddon.redisImage",
        "managedServiceAccountRef",
    ];
    assert_eq!(spec(&on).not_implemented, all);
    let without_agent = json!({"gitopsAddon": {"enabled": true}});
    assert_eq!(spec(&without_agent).not_implemented, ["gitopsAddon"]);
    let of_pull = json!({"argoCDAgentAddon": {"operatorNamespace": "operators", "agentNamespace": "gitops"}});
    assert_eq!(spec(&of_pull).not_implemented, ["argoCDAgentAddon.operatorNamespace"]);
}

#[test]
fn supports_an_operator_only_in_the_agents_namespace() {
    let requested = |namespace: &str, is_chosen: bool| {
        spec(&json!({
            "argoCDAgentAddon": {"operatorNamespace": namespace, "agentNamespace": "gitops"},
            "agent": {"operator": {"enabled": is_chosen}},
        }))
    };
    for (namespace, is_chosen, is_done) in [
        ("gitops", true, true),
        ("operators", true, false),
        ("gitops", false, false),
        ("", true, true),
    ] {
        let spec = requested(namespace, is_chosen);
        assert_eq!(spec.not_implemented.is_empty(), is_done, "{namespace} {is_chosen}");
        assert_eq!(spec.agent.map(|desired| desired.operator), Some(is_chosen));
    }
}

#[test]
fn both_dialects_request_an_agent() {
    let nothing = DesiredAgent::default();
    assert_eq!((nothing.mode, &*nothing.namespace), (Mode::Managed, "argocd"));
    assert!(nothing.follows_principal && !nothing.operator && nothing.images == Images::default());
    let desired = |requested: &Value| spec(requested).agent;
    assert_eq!(desired(&json!({"argoCDAgentAddon": {}})), Some(nothing.clone()));
    let acm = |enabled: bool, agent: &Value| json!({"gitopsAddon": {"enabled": enabled, "argoCDAgent": agent}});
    let empty = json!({"enabled": true, "mode": "", "serverAddress": "", "serverPort": ""});
    assert_eq!(desired(&acm(true, &empty)), Some(nothing.clone()));
    assert_eq!(desired(&acm(false, &empty)), None);
    assert_eq!(desired(&acm(true, &json!({"enabled": false}))), None);
    assert_eq!(desired(&json!({"argoServer": {"argoNamespace": "argocd"}})), None);

    let manifest = json!({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "argocd"}});
    let rollout = json!({"type": "Progressive", "progressive": {
        "maxConcurrency": "10%", "maxFailures": 2, "minSuccessTime": "90s", "progressDeadline": "1h",
    }});
    let ours = json!({
        "images": {"agent": "agent:1", "argocd": "argocd:3", "redis": "redis:8", "operator": "operator:0", "supervisor": "ocm-cmp:1"},
        "operator": {"enabled": true},
        "rolloutStrategy": rollout,
        "revokedClusters": ["eu2", "eu1"],
    });
    let of_pull = json!({"agent": ours, "argoCDAgentAddon": {
        "mode": "autonomous", "principalServerAddress": "hub.example.com", "principalServerPort": "443",
        "agentNamespace": "gitops", "argoCDCRManifestWork": {"manifests": [manifest]},
    }});
    let all = DesiredAgent {
        follows_principal: true,
        mode: Mode::Autonomous,
        address: Some("hub.example.com".into()),
        port: Some("443".into()),
        namespace: "gitops".into(),
        images: Images {
            agent: Some("agent:1".into()),
            argocd: Some("argocd:3".into()),
            redis: Some("redis:8".into()),
            operator: Some("operator:0".into()),
            ours: Some("ocm-cmp:1".into()),
        },
        rollout: Some(rollout),
        revoked: ["eu1".into(), "eu2".into()].into(),
        operator: true,
        argocd_manifests: Some(vec![manifest]),
    };
    assert_eq!(desired(&of_pull), Some(all.clone()));
    let mut of_acm = acm(
        true,
        &json!({"enabled": true, "mode": "autonomous", "serverAddress": "hub.example.com", "serverPort": "00443"}),
    );
    of_acm["agent"] = ours;
    let all = DesiredAgent {
        namespace: "argocd".into(),
        argocd_manifests: None,
        ..all
    };
    assert_eq!(desired(&of_acm), Some(all));
}

#[test]
fn invalid_agent_fields_are_unclear_not_disabled() {
    for (field, requested) in [
        (
            "argoCDAgentAddon.mode",
            json!({"argoCDAgentAddon": {"mode": "automonous"}}),
        ),
        (
            "argoCDAgentAddon.principalServerPort",
            json!({"argoCDAgentAddon": {"principalServerPort": "65536"}}),
        ),
        (
            "gitopsAddon.argoCDAgent.mode",
            json!({"gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "mode": "Managed"}}}),
        ),
        (
            "gitopsAddon.argoCDAgent.serverPort",
            json!({"gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "serverPort": "https"}}}),
        ),
        (
            "gitopsAddon.argoCDAgent.uninstall",
            json!({"gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true, "uninstall": true}}}),
        ),
        (
            "gitopsAddon.uninstall",
            json!({"gitopsAddon": {"enabled": true, "uninstall": true, "argoCDAgent": {"enabled": true}}}),
        ),
    ] {
        let spec = spec(&requested);
        assert_eq!(
            (spec.agent, spec.is_agent_invalid, spec.creates_blank_secrets),
            (None, true, false),
            "{requested}"
        );
        assert_eq!(spec.not_implemented, [field]);
    }
    assert!(!spec(&json!({"argoCDAgentAddon": {}})).is_agent_invalid);
    assert!(!spec(&json!({"gitopsAddon": {"enabled": false, "argoCDAgent": {"mode": "x"}}})).is_agent_invalid);
}

#[test]
fn fields_decide_the_dialect() {
    assert!(spec(&json!({"argoCDAgentAddon": {}})).is_pull_integration);
    let acm = spec(&json!({"argoServer": {"argoNamespace": "gitops"}}));
    assert_eq!(
        (acm.is_pull_integration, acm.argocd.as_deref()),
        (false, Some("gitops"))
    );
    assert_eq!(spec(&json!({"argoServer": {"argoNamespace": ""}})).argocd, None);
}

#[test]
fn only_the_label_opens_a_namespace() {
    let is_open = |namespace: Value| {
        let namespace = model::Object::from_json(Kind::Namespace, &namespace.to_string());
        namespace.expect("a Namespace").object
    };
    for (value, open) in [("true", true), ("false", false), ("", false)] {
        let namespace = json!({"metadata": {"labels": {OPEN: value}}});
        assert_eq!(is_open(namespace), json!(open), "{value}");
    }
    assert_eq!(is_open(json!({"metadata": {}})), json!(false));
}

#[test]
fn foreign_namespaces_may_set_only_harmless_agent_fields() {
    let read = |namespace: &str| {
        let manifest = json!({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "argocd"}});
        let text = json!({"metadata": {"namespace": namespace}, "spec": {
            "placementRef": {"name": "all"},
            "argoServer": {"argoNamespace": "argocd"},
            "gitopsAddon": {"enabled": true, "argoCDAgent": {
                "enabled": true, "mode": "autonomous", "serverAddress": "attacker.example.com", "serverPort": "8443",
                "argoCDCRManifestWork": {"manifests": [manifest]},
            }},
            "agent": {"images": {"agent": "attacker:1"}, "operator": {"enabled": true}, "revokedClusters": ["eu1"]},
        }});
        GitOpsCluster::from_json(&text.to_string())
            .expect("a GitOpsCluster")
            .spec
    };
    let spec = read("argocd");
    assert_eq!(spec.refused, [""; 0]);
    assert!(
        spec.agent
            .is_some_and(|agent| agent.address.is_some() && agent.operator)
    );
    let foreign = read("team");
    assert_eq!(
        foreign.refused[..4],
        [
            "the principal's server address",
            "the principal's server port",
            "agent.images",
            "agent.operator"
        ]
    );
    let expected = DesiredAgent {
        mode: Mode::Autonomous,
        revoked: ["eu1".into()].into(),
        ..DesiredAgent::default()
    };
    assert_eq!(foreign.agent, Some(expected));
}

#[test]
fn push_is_unsupported_where_acm_would_push() {
    let argocd = json!({"argoNamespace": "argocd"});
    let not_implemented = |requested: &Value| spec(requested).not_implemented;
    assert_eq!(not_implemented(&json!({"argoServer": argocd})), [PUSH]);
    let addon = json!({"argoServer": argocd, "gitopsAddon": {"enabled": true}});
    assert_eq!(not_implemented(&addon), ["gitopsAddon"]);
    for blank in [
        json!({"argoServer": argocd, "createBlankClusterSecrets": true}),
        json!({"argoServer": argocd, "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true}}}),
        json!({"argoCDAgentAddon": {}}),
    ] {
        assert_eq!(not_implemented(&blank), [""; 0], "{blank}");
    }
}
