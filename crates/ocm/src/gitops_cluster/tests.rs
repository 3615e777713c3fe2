//! Tests of reading invalid fields.

use super::*;
use serde_json::json;

/// Collects the paths to all values in a value.
fn paths(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    let of_list = value.as_array().into_iter().flatten().enumerate();
    for (name, value) in of_list.map(|(number, value)| (number.to_string(), value)) {
        paths(value, &format!("{at}/{name}"), all);
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        paths(value, &format!("{at}/{name}"), all);
    }
}

#[test]
fn malformed_field_reads_as_missing_and_affects_no_other() {
    let all_fields = json!({
        "placementRef": {"kind": "Placement", "name": "all"},
        "argoServer": {"argoNamespace": "argocd"},
        "createBlankClusterSecrets": true,
        "argoCDAgentAddon": {"mode": "managed", "argoCDCRManifestWork": {"manifests": [{"kind": "ArgoCD"}]}},
        "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true}, "olmSubscription": {"enabled": true}},
        "agent": {
            "images": {"agent": "agent:1"},
            "revokedClusters": ["eu1"],
            "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}},
        },
    });
    let mut all = Vec::new();
    paths(&all_fields, "", &mut all);
    assert!(all.len() > 20, "{all:?}");
    for path in all.iter().filter(|path| !path.is_empty()) {
        for other in [json!(null), json!(true), json!(7), json!("other"), json!([]), json!({})] {
            let mut spec = all_fields.clone();
            *spec.pointer_mut(path).expect("the path of a field") = other;
            let read: GitOpsClusterSpec = serde_json::from_value(spec.clone()).expect("invalid fields are ignored");
            if !path.starts_with("/placementRef") {
                let placement = read
                    .placement_ref
                    .as_ref()
                    .and_then(|placement| placement.name.as_deref());
                assert_eq!(placement, Some("all"), "{spec}");
            }
            if !path.starts_with("/agent") {
                let agent = read.agent.as_ref().expect("the spec requests an agent");
                assert_eq!(agent.revoked_clusters.as_deref(), Some(&["eu1".into()][..]), "{spec}");
            }
        }
    }
}

#[test]
fn rollout_defaults_to_all() {
    let read = |text: &Value| serde_json::from_value::<AgentRollout>(text.clone()).expect("a rollout");
    assert_eq!(json!(read(&json!({}))), json!({"type": "All"}));
    let some = json!({"type": "Progressive", "progressive": {"maxConcurrency": "10%", "maxFailures": 1}});
    assert_eq!(json!(read(&some)), some);
}
