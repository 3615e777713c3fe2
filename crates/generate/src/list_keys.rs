//! Finds entries of a list that server-side apply takes for the same one, and so refuses on the cluster.

use manifest::json;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use std::collections::HashSet;

/// The lists of containers in the spec of a Pod.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The lists of a container, with the fields that identify an entry.
const OF_A_CONTAINER: [(&str, &[&str]); 4] = [
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
];

/// The lists of the spec of a Pod, with the fields that identify an entry.
const OF_A_POD: [(&str, &[&str]); 4] = [
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("containers", &["name"]),
];

/// Returns the first list of an object that has an entry twice, and the entry: `spec.containers[web].env has PORT`.
pub(super) fn repeated(kind: &GroupKind, fields: &Map<'_>) -> Option<String> {
    let path = match (&*kind.group, &*kind.kind) {
        ("", "Service") => {
            return repeated_in(fields.at(&["spec"])?.as_map()?, "ports", &["port", "protocol"], "spec");
        }
        ("", "Pod") => &["spec"][..],
        ("apps" | "batch", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job")
        | ("", "ReplicationController") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    };
    let (path, spec) = (path.join("."), fields.at(path)?.as_map()?);
    let of_the_pod = OF_A_POD
        .iter()
        .find_map(|(list, keys)| repeated_in(spec, list, keys, &path));
    of_the_pod.or_else(|| {
        CONTAINERS.iter().find_map(|list| {
            spec.maps(list).find_map(|container| {
                let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
                let path = format!("{path}.{list}[{name}]");
                OF_A_CONTAINER
                    .iter()
                    .find_map(|(list, keys)| repeated_in(container, list, keys, &path))
            })
        })
    })
}

fn repeated_in(fields: &Map<'_>, list: &str, keys: &[&str], path: &str) -> Option<String> {
    // Most lists have one entry.
    if fields.items(list).len() < 2 {
        return None;
    }
    let mut known = HashSet::new();
    for entry in fields.maps(list) {
        let key: Vec<String> = keys.iter().filter_map(|key| key_of(entry, key)).collect();
        // An entry without a key is refused as such.
        if key.len() < keys.len() {
            continue;
        }
        if let Some(key) = known.replace(key) {
            return Some(format!("{path}.{list} has {}", key.join("/")));
        }
    }
    None
}

/// Returns a field that identifies an entry, with the default of the API server.
fn key_of(entry: &Map<'_>, key: &str) -> Option<String> {
    match entry.get(key) {
        Some(Value::String(text)) => Some(text.to_string()),
        Some(Value::Int(number)) => Some(number.to_string()),
        Some(Value::Float(number)) => {
            let mut text = String::new();
            json::write_float(*number, &mut text);
            Some(text)
        }
        None if key == "protocol" => Some("TCP".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::fields;

    fn repeated_of(kind: &str, text: &str) -> Option<String> {
        repeated(&kind.parse().expect("a kind"), &fields(text))
    }

    #[test]
    fn finds_the_first_entry_that_is_twice_in_a_list() {
        let pod = |spec: &str| repeated_of("Pod", &format!("spec: {spec}"));
        for (spec, expected) in [
            (
                "{containers: [{name: web}, {name: web}]}",
                Some("spec.containers has web"),
            ),
            (
                "{containers: [{name: web, env: [{name: A}, {name: B}, {name: A}]}]}",
                Some("spec.containers[web].env has A"),
            ),
            (
                "{initContainers: [{name: web, volumeMounts: [{mountPath: /a}, {mountPath: /a}]}]}",
                Some("spec.initContainers[web].volumeMounts has /a"),
            ),
            (
                "{containers: [{name: web, ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]}]}",
                Some("spec.containers[web].ports has 80/TCP"),
            ),
            ("{volumes: [{name: a}, {name: a}]}", Some("spec.volumes has a")),
            (
                "{containers: [{name: web, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}",
                None,
            ),
            (
                "{containers: [{name: web, env: [{value: a}, {value: a}]}, {name: b}, text, null]}",
                None,
            ),
            ("{containers: {a: b}}", None),
            ("text", None),
        ] {
            assert_eq!(pod(spec).as_deref(), expected, "{spec}");
        }
        let twice = "{containers: [{name: web, env: [{name: A}, {name: A}]}]}";
        for (kind, text, path) in [
            (
                "Deployment.apps",
                format!("spec: {{template: {{spec: {twice}}}}}"),
                "spec.template.spec",
            ),
            (
                "CronJob.batch",
                format!("spec: {{jobTemplate: {{spec: {{template: {{spec: {twice}}}}}}}}}"),
                "spec.jobTemplate.spec.template.spec",
            ),
        ] {
            let expected = format!("{path}.containers[web].env has A");
            assert_eq!(repeated_of(kind, &text), Some(expected), "{kind}");
        }
        let service = r#"{"spec": {"ports": [{"port": 80}, {"port": 443}, {"port": 80.0, "protocol": "TCP"}]}}"#;
        assert_eq!(
            repeated_of("Service", service).as_deref(),
            Some("spec.ports has 80/TCP")
        );
        assert_eq!(repeated_of("Service.serving.knative.dev", service), None);
    }
}
