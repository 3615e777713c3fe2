//! The values that an administrator adapts to the size of the hub and its network: they stay as they are on the hub.

use super::ShippedObject;
use super::argo_cd::containers_mut;
use serde_json::Value;

/// Gives our object the values of the live one that an administrator adapts, and returns the names of those that differ.
pub fn keep_tuned(object: &mut ShippedObject, live: &Value) -> Vec<String> {
    let mut kept = Vec::new();
    for container in containers_mut(&mut object.value) {
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        let pod = &live["spec"]["template"]["spec"];
        let lists = [&pod["containers"], &pod["initContainers"]];
        let mut live = lists.into_iter().filter_map(Value::as_array).flatten();
        let Some(live) = live.find(|live| live["name"] == *name) else {
            continue;
        };
        let ours = container.get_mut("resources");
        if ours.is_some_and(|ours| keep_leaves(ours, &live["resources"])) {
            kept.push(format!("resources of container {name}"));
        }
    }
    let (pointer, name) = match object.kind() {
        "PriorityLevelConfiguration" => ("/spec/limited/nominalConcurrencyShares", "nominalConcurrencyShares"),
        "Service" => ("/spec/type", "type"),
        _ => return kept,
    };
    if let (Some(ours), Some(live)) = (object.value.pointer_mut(pointer), live.pointer(pointer))
        && keep_leaves(ours, live)
    {
        kept.push(name.to_owned());
    }
    kept
}

/// Replaces those of our values that the live object has with another value, and returns true if there are any.
fn keep_leaves(ours: &mut Value, live: &Value) -> bool {
    match ours {
        Value::Object(fields) => {
            let mut is_kept = false;
            for (key, ours) in fields {
                is_kept |= keep_leaves(ours, &live[key]);
            }
            is_kept
        }
        _ if live.is_null() || ours == live => false,
        ours => {
            *ours = live.clone();
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::tests::shipped_object;
    use serde_json::json;

    #[test]
    fn resources_on_the_hub_stay() {
        let shipped = shipped_object("Deployment", "argocd-ocm-cmp-controller");
        let mut object = shipped.clone();
        assert_eq!(keep_tuned(&mut object, &shipped.value), [""; 0]);
        let mut live = shipped.value.clone();
        live["spec"]["template"]["spec"]["containers"] = json!([
            {"name": "istio-proxy", "resources": {"limits": {"memory": "1Gi"}}},
            {"name": "controller", "resources": {"limits": {"cpu": "2", "memory": "4Gi"}}},
        ]);
        assert_eq!(keep_tuned(&mut object, &live), ["resources of container controller"]);
        let resources = &object.value["spec"]["template"]["spec"]["containers"][0]["resources"];
        let expected = json!({"limits": {"memory": "4Gi"}, "requests": {"cpu": "10m", "memory": "64Mi"}});
        assert_eq!(*resources, expected, "without fields that only the other has");
        object.value["spec"]["template"]["spec"]["containers"][0]["resources"] =
            shipped.value["spec"]["template"]["spec"]["containers"][0]["resources"].clone();
        assert_eq!(object, shipped, "nothing else is kept");
    }

    #[test]
    fn containers_of_others_get_no_resources_from_us() {
        let shipped = shipped_object("Deployment", "argocd-server");
        let mut live = shipped.value.clone();
        live["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
        let mut object = shipped.clone();
        assert_eq!(keep_tuned(&mut object, &live), [""; 0]);
        assert_eq!(object, shipped);
    }

    #[test]
    fn shares_and_the_type_of_a_service_on_the_hub_stay() {
        for (kind, name, field, value) in [
            (
                "PriorityLevelConfiguration",
                "argocd-ocm-cmp-controller",
                "nominalConcurrencyShares",
                json!(60),
            ),
            ("Service", "argocd-agent-principal", "type", json!("NodePort")),
        ] {
            let mut object = shipped_object(kind, name);
            let live = match kind {
                "Service" => json!({"spec": {"type": value}}),
                _ => json!({"spec": {"limited": {"nominalConcurrencyShares": value}}}),
            };
            assert_eq!(keep_tuned(&mut object, &live), [field]);
            assert!(
                object.json().contains(&format!("\"{field}\":{value}")),
                "{}",
                object.json()
            );
        }
        // The API server sets the type of a Service without one.
        let mut object = shipped_object("Service", "argocd-agent-redis-proxy");
        assert_eq!(
            keep_tuned(&mut object, &json!({"spec": {"type": "ClusterIP"}})),
            [""; 0]
        );
    }
}
