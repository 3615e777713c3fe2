//! Valid and invalid GitOpsClusters.

use ocm::gitops_cluster::{
    CertificateExpiry, ClusterState, Clusters, Condition, GitOpsClusterStatus, PrincipalAddress,
};
use serde_json::{Value, json};
use testbed::ObjectRef;

fn placement() -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "all", "namespace": "argocd"})
}

/// Returns specs of users of the other implementations, with all their fields and all of ours.
pub(super) fn peer_specs() -> [(&'static str, &'static str, Value); 7] {
    let argocd = json!({"cluster": "notused", "argoNamespace": "argocd"});
    let images = json!({
        "agent": "registry.example.com:5000/agent:v1", "argocd": "argocd@sha256:0", "redis": "redis", "supervisor": "cmp:1",
        "operator": "operator:0",
    });
    let progressive = json!({"type": "Progressive", "progressive": {
        "maxConcurrency": "10%", "maxFailures": 2, "minSuccessTime": "90s", "progressDeadline": "1h",
    }});
    let by_group = json!({"type": "ProgressivePerGroup", "progressivePerGroup": {
        "maxFailures": "20%", "minSuccessTime": "0", "progressDeadline": "None",
    }});
    let reference = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "all",
        "namespace": "argocd", "fieldPath": "", "resourceVersion": "1", "uid": "0",
    });
    let manifest = ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", "argocd", "argocd")
        .with(json!({"spec": {"server": {"enabled": false}, "sourceNamespaces": ["*"]}}));
    let addon = json!({
        "enabled": true,
        "overrideExistingConfigs": true,
        "gitOpsOperatorImage": "registry.example.com/operator@sha256:0",
        // Fields of Red Hat ACM 2.15.
        "gitOpsImage": "argocd", "gitOpsNamespace": "gitops", "gitOpsOperatorNamespace": "operators",
        "reconcileScope": "Single-Namespace", "redisImage": "redis", "uninstall": false,
        "argoCDAgent": {
            "enabled": true, "serverAddress": "", "serverPort": "", "mode": "managed", "propagateHubCA": true,
            "image": "agent", "uninstall": false,
        },
        "olmSubscription": {
            "enabled": true, "channel": "latest", "name": "gitops", "namespace": "operators", "source": "operators",
            "sourceNamespace": "market", "installPlanApproval": "Automatic",
        },
    });
    [
        (
            "v1alpha1",
            "pull",
            json!({"placementRef": placement(), "argoCDAgentAddon": {"mode": "managed"}}),
        ),
        (
            "v1alpha1",
            "pull-empty",
            json!({"placementRef": placement(), "argoCDAgentAddon": {}}),
        ),
        (
            "v1alpha1",
            "pull-all",
            json!({"placementRef": placement(), "argoCDAgentAddon": {
                "mode": "autonomous", "principalServerAddress": "hub.example.com", "principalServerPort": "443",
                "agentNamespace": "argocd", "operatorNamespace": "operators",
                "argoCDCRManifestWork": {"manifests": [manifest]},
            }}),
        ),
        (
            "v1alpha1",
            "pull-more",
            json!({"placementRef": reference, "argoCDAgentAddon": {}, "agent": {
                "images": images, "operator": {"enabled": true}, "revokedClusters": ["eu1", "eu2"], "rolloutStrategy": by_group,
            }}),
        ),
        (
            "v1beta1",
            "acm",
            json!({"placementRef": placement(), "argoServer": argocd}),
        ),
        (
            "v1beta1",
            "acm-blank",
            json!({"placementRef": placement(), "argoServer": argocd, "createBlankClusterSecrets": true,
                "createPolicyTemplate": true, "managedServiceAccountRef": "push"}),
        ),
        (
            "v1beta1",
            "acm-agent",
            json!({"placementRef": placement(), "argoServer": argocd, "gitopsAddon": addon,
                "agent": {"rolloutStrategy": progressive}}),
        ),
    ]
}

/// Returns a status with all fields.
pub(super) fn status() -> GitOpsClusterStatus {
    let then = || "2026-06-01T12:00:00Z".to_owned();
    GitOpsClusterStatus {
        argo_namespace: Some("argocd".to_owned()),
        certificates: vec![CertificateExpiry {
            name: "argocd-agent-ca".to_owned(),
            not_after: then(),
        }],
        cluster_states: vec![ClusterState {
            name: "eu1".to_owned(),
            state: "Pending".to_owned(),
            certificate_not_after: Some(then()),
            message: Some("it comes".to_owned()),
        }],
        cluster_states_cut: Some(1),
        clusters: Some(Clusters {
            connected: Some(1),
            degraded: Some(2),
            installed: Some(3),
            registered: Some(4),
            selected: Some(5),
        }),
        conditions: vec![Condition {
            last_transition_time: then(),
            message: String::new(),
            observed_generation: Some(1),
            reason: "Failed".to_owned(),
            status: "False".to_owned(),
            kind: "Ready".to_owned(),
        }],
        last_update_time: Some(then()),
        message: Some("wait".to_owned()),
        phase: Some("failed".to_owned()),
        server: Some(PrincipalAddress {
            address: "hub.example.com".to_owned(),
            port: "443".to_owned(),
        }),
    }
}

/// Returns invalid values in the fields of the other implementations, with the errors.
pub(super) fn invalid_peer_fields() -> Vec<(Value, &'static str)> {
    let argocd = || json!({"argoNamespace": "argocd"});
    let agent = |agent: Value| json!({"placementRef": placement(), "argoCDAgentAddon": agent});
    let addon = |addon: Value| json!({"placementRef": placement(), "argoServer": argocd(), "gitopsAddon": addon});
    let at = |placement: Value| json!({"placementRef": placement, "argoServer": argocd()});
    let mode = "the mode must be managed or autonomous";
    let port = "a port must be a number from 1 to 65535";
    vec![
        (agent(json!({"mode": "manual"})), mode),
        (agent(json!({"mode": ""})), mode),
        (
            addon(json!({"enabled": true, "argoCDAgent": {"mode": "Managed"}})),
            mode,
        ),
        (agent(json!({"principalServerPort": "0"})), port),
        (agent(json!({"principalServerPort": "65536"})), port),
        (
            addon(json!({"enabled": true, "argoCDAgent": {"serverPort": "https"}})),
            port,
        ),
        (
            addon(json!({"argoCDAgent": {"enabled": true}})),
            "argoCDAgent.enabled needs gitopsAddon.enabled",
        ),
        (
            addon(json!({"olmSubscription": {"enabled": true}})),
            "olmSubscription.enabled needs gitopsAddon.enabled",
        ),
        (
            addon(json!({"olmSubscription": {"installPlanApproval": "Never"}})),
            r#"supported values: "Automatic", "Manual""#,
        ),
        (
            agent(json!({"argoCDCRManifestWork": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd"}},
            ]}})),
            "one of the manifests must be an ArgoCD of argoproj.io/v1beta1",
        ),
        (
            agent(json!({"argoCDCRManifestWork": {"manifests": []}})),
            "should have at least 1 items",
        ),
        (
            at(json!({"kind": "PlacementRule", "name": "all"})),
            "the kind must be Placement",
        ),
        (
            at(json!({"apiVersion": "apps.open-cluster-management.io/v1", "name": "all"})),
            "the apiVersion must be of cluster.open-cluster-management.io",
        ),
        (at(json!({"kind": "Placement"})), "a Placement needs a name"),
        (json!({"argoServer": argocd()}), "spec.placementRef: Required value"),
        (
            json!({"placementRef": placement()}),
            "either argoServer (as in v1beta1) or argoCDAgentAddon (as in v1alpha1) is required",
        ),
        (
            json!({"placementRef": placement(), "argoServer": argocd(), "argoCDAgentAddon": {}, "gitopsAddon": {}}),
            "only one of them may be given",
        ),
        (
            json!({"placementRef": placement(), "argoServer": {"cluster": "notused"}}),
            "spec.argoServer.argoNamespace: Required value",
        ),
    ]
}

/// Returns invalid values in our fields, with the errors.
pub(super) fn invalid_own_fields() -> Vec<(Value, &'static str)> {
    let argocd = || json!({"argoNamespace": "argocd"});
    let with = |more: Value| json!({"placementRef": placement(), "argoCDAgentAddon": {}, "agent": more});
    let rollout = |rollout: Value| with(json!({"rolloutStrategy": rollout}));
    let progressive = |of: Value| rollout(json!({"type": "Progressive", "progressive": of}));
    let no_agent = "agent needs an agent";
    vec![
        (
            json!({"placementRef": placement(), "argoServer": argocd(), "agent": {}}),
            no_agent,
        ),
        (
            json!({"placementRef": placement(), "argoServer": argocd(), "agent": {}, "gitopsAddon": {"enabled": true}}),
            no_agent,
        ),
        (
            json!({"placementRef": placement(), "argoServer": argocd(), "agent": {}, "gitopsAddon": {"argoCDAgent": {}}}),
            no_agent,
        ),
        (with(json!({"revokedClusters": ["eu1", "eu1"]})), "Duplicate value"),
        (with(json!({"revokedClusters": [""]})), "at least 1 chars long"),
        (
            with(json!({"revokedClusters": (0..1001).map(|n| n.to_string()).collect::<Vec<_>>()})),
            "must have at most 1000 items",
        ),
        (
            rollout(json!({"type": "Later"})),
            r#"supported values: "All", "Progressive", "ProgressivePerGroup""#,
        ),
        // Without the CEL rule, OCM would change all clusters at once.
        (
            rollout(json!({"progressive": {"maxConcurrency": 1}})),
            "progressive needs the type Progressive",
        ),
        (
            rollout(json!({"type": "Progressive", "progressivePerGroup": {}})),
            "progressivePerGroup needs the type ProgressivePerGroup",
        ),
        (
            progressive(json!({"maxConcurrency": "half"})),
            "maxConcurrency in body should match",
        ),
        (
            rollout(json!({"type": "Progressive"})),
            "the type Progressive needs progressive",
        ),
        // For OCM, this means all at once.
        (progressive(json!({})), "maxConcurrency: Required value"),
        (progressive(json!({"maxConcurrency": 0})), "greater than or equal to 1"),
        (
            progressive(json!({"maxConcurrency": "0%"})),
            "maxConcurrency in body should match",
        ),
        // For OCM, this is not a number.
        (
            progressive(json!({"maxConcurrency": "5"})),
            "maxConcurrency in body should match",
        ),
        (progressive(json!({"maxFailures": -1})), "greater than or equal to 0"),
        (
            progressive(json!({"maxFailures": "101%"})),
            "maxFailures in body should match",
        ),
        (
            progressive(json!({"minSuccessTime": "1d"})),
            "minSuccessTime in body should match",
        ),
        (
            progressive(json!({"progressDeadline": "never"})),
            "progressDeadline in body should match",
        ),
    ]
}
