//! Reads the objects of a hub as JSON: the Deployments of Argo CD, and the settings of their containers.

use primitives::object_ref::ObjectRef;
use serde_json::Value;

/// Returns the items of a list; other values have none.
pub(crate) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the item of a list with this name, such as a container or a variable.
pub(crate) fn item<'v>(list: &'v Value, name: &str) -> Option<&'v Value> {
    items(list).iter().find(|item| item["name"] == name)
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the namespace and the name of an object.
pub(crate) fn object_ref(object: &Value) -> ObjectRef {
    let namespace = object["metadata"]["namespace"].as_str();
    ObjectRef::new(namespace.unwrap_or_default(), name(object))
}

pub(crate) fn named<'v>(all: &'v [Value], wanted: &str) -> Option<&'v Value> {
    all.iter().find(|object| name(object) == wanted)
}

/// Returns the containers of a Deployment or StatefulSet.
pub(crate) fn containers(workload: &Value) -> &[Value] {
    items(&workload["spec"]["template"]["spec"]["containers"])
}

/// Returns true if a Pod of a Deployment is ready.
pub(crate) fn is_ready(deployment: &Value) -> bool {
    deployment["status"]["readyReplicas"].as_u64() > Some(0)
}

/// Returns the command of a container and its arguments.
pub(crate) fn arguments(container: &Value) -> impl Iterator<Item = &str> {
    let lists = [&container["command"], &container["args"]];
    lists.into_iter().flat_map(items).filter_map(Value::as_str)
}

/// Returns a setting as the program in a container reads it: from a flag, or else from an environment variable, whose value may be in a
/// ConfigMap.
pub(crate) fn setting<'v>(
    container: &'v Value,
    config_map: Option<&'v Value>,
    flag: &str,
    variable: &str,
) -> Option<&'v str> {
    let mut words = arguments(container).skip_while(|word| {
        let rest = word.strip_prefix(flag);
        rest.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('='))
    });
    if let Some(word) = words.next() {
        // A flag without a value is true.
        let next = || words.next().filter(|next| !next.starts_with("--"));
        return word
            .split_once('=')
            .map(|(_, value)| value)
            .or_else(next)
            .or(Some("true"));
    }
    let in_config_map = |key: &str| config_map?["data"][key].as_str();
    let Some(of_container) = item(&container["env"], variable) else {
        let mut sources = items(&container["envFrom"]).iter();
        return sources
            .any(|source| source["configMapRef"].is_object())
            .then(|| in_config_map(variable))?;
    };
    let reference = &of_container["valueFrom"]["configMapKeyRef"]["key"];
    of_container["value"]
        .as_str()
        .or_else(|| in_config_map(reference.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flag_overrides_the_environment_and_that_the_config_map() {
        let config_map = json!({"data": {"MODE": "of all", "key": "of one"}});
        let read = |container: &Value| setting(container, Some(&config_map), "--mode", "MODE").map(str::to_owned);
        let from = json!([{"configMapRef": {"name": "settings"}}]);
        let key = json!([{"name": "MODE", "valueFrom": {"configMapKeyRef": {"key": "key"}}}]);
        let value = json!([{"name": "MODE", "value": "of env"}]);
        for (container, expected) in [
            (json!({}), None),
            (json!({"envFrom": from}), Some("of all")),
            (json!({"envFrom": from, "env": key}), Some("of one")),
            (json!({"envFrom": from, "env": value}), Some("of env")),
            (json!({"env": value, "args": ["--mode=a=b"]}), Some("a=b")),
            (json!({"env": value, "command": ["x", "--mode", "flag"]}), Some("flag")),
            (json!({"env": value, "args": ["--mode", ""]}), Some("")),
            (json!({"env": value, "args": ["--mode", "--other"]}), Some("true")),
            (json!({"env": value, "args": ["--modes=x"]}), Some("of env")),
        ] {
            assert_eq!(read(&container).as_deref(), expected, "{container}");
        }
        assert_eq!(setting(&json!({"envFrom": from}), None, "--mode", "MODE"), None);
    }
}
