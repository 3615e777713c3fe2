//! Translates an AppProject of the hub for a managed cluster.
//!
//! On the hub, its rules name managed clusters. The Argo CD of a cluster knows that cluster as the in-cluster server, to which the
//! delivered Applications deploy, and may know others, which the rules can name, too.

use super::patterns::{names_cluster, permits_cluster};
use ocm::glob;
use ocm::pull_model::IN_CLUSTER;
use serde_json::{Value, json};

/// The pattern for all clusters, including those that only the managed cluster's Argo CD knows.
const ALL: &str = "*";

/// A server for the hub in sync windows, which the managed cluster's Argo CD cannot know. Without it, a window may be for more
/// Applications, or for none, which Argo CD refuses.
const HUB: &str = "https://hub.invalid";

pub(super) fn translated_spec(project: &Value, cluster: &str) -> Value {
    let mut spec = project.get("spec").cloned().unwrap_or_else(|| json!({}));
    if let Some(Value::Array(destinations)) = spec.get_mut("destinations") {
        let translated = destinations.iter().filter_map(|item| destination(item, cluster));
        *destinations = translated.collect();
    }
    if let Some(Value::Array(accounts)) = spec.get_mut("destinationServiceAccounts") {
        accounts.retain(|account| {
            let server = field_text(account, "server");
            names_cluster(server, cluster) || !names_hub(server)
        });
        for account in accounts {
            translate(&mut account["server"], cluster);
        }
    }
    if let Some(Value::Array(windows)) = spec.get_mut("syncWindows") {
        let lists = windows
            .iter_mut()
            .filter_map(|window| window.get_mut("clusters")?.as_array_mut());
        for pattern in lists.flatten() {
            translate(pattern, cluster);
        }
    }
    spec
}

/// Returns a destination for the managed cluster. Returns `None` if it is the hub itself.
fn destination(item: &Value, cluster: &str) -> Option<Value> {
    let (name, server) = (field_text(item, "name"), field_text(item, "server"));
    let patterns = [name, server];
    let server = if permits_cluster(patterns, cluster) {
        let is_for_all = patterns.contains(&ALL);
        if is_for_all {
            ALL.to_owned()
        } else {
            IN_CLUSTER.to_owned()
        }
    } else if patterns.iter().any(|pattern| pattern.starts_with('!')) {
        format!("!{IN_CLUSTER}")
    } else if patterns.into_iter().any(names_hub) {
        return None;
    } else {
        return Some(item.clone());
    };
    let mut translated = item.as_object().cloned().unwrap_or_default();
    translated.remove("name");
    translated.insert("server".to_owned(), json!(server));
    Some(translated.into())
}

/// Replaces a pattern that names the managed cluster or the hub.
fn translate(pattern: &mut Value, cluster: &str) {
    let server = match pattern.as_str() {
        None | Some(ALL) => return,
        Some(text) if names_cluster(text, cluster) => IN_CLUSTER,
        Some(text) if names_hub(text) => HUB,
        Some(_) => return,
    };
    *pattern = json!(server);
}

/// Returns true if a pattern matches the name or the server by which Argo CD knows its own cluster.
fn names_hub(pattern: &str) -> bool {
    glob::matches(pattern, "in-cluster") || glob::matches(pattern, IN_CLUSTER)
}

fn field_text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(field: &str, list: &Value) -> Value {
        let project = json!({"spec": {"sourceRepos": ["*"], field: list}});
        let mut spec = translated_spec(&project, "eu1");
        assert_eq!(spec["sourceRepos"], json!(["*"]));
        spec[field].take()
    }

    #[test]
    fn destinations_permit_the_delivered_application() {
        let server = |server: &str, namespace: &str| json!({"server": server, "namespace": namespace});
        let here = |namespace: &str| server("https://kubernetes.default.svc", namespace);
        for (destination, desired) in [
            (json!({"name": "eu1", "namespace": "team-a-*"}), Some(here("team-a-*"))),
            (json!({"name": "eu*", "namespace": "!kube-*"}), Some(here("!kube-*"))),
            (server("https://eu1-control-plane:6443", "x"), Some(here("x"))),
            (json!({"name": "*", "namespace": "*"}), Some(server("*", "*"))),
            (server("*", "!kube-*"), Some(server("*", "!kube-*"))),
            // Denials of others permit this cluster, and those of this cluster deny it.
            (json!({"name": "!eu2", "namespace": "*"}), Some(here("*"))),
            (server("!https://kubernetes.default.svc", "*"), Some(here("*"))),
            (
                json!({"name": "!eu1", "namespace": "x"}),
                Some(server("!https://kubernetes.default.svc", "x")),
            ),
            // Another cluster that its Argo CD may know.
            (server("https://edge:6443", "x"), Some(server("https://edge:6443", "x"))),
            // The hub itself.
            (server("https://kubernetes.default.svc", "*"), None),
            (json!({"name": "in-cluster", "namespace": "*"}), None),
        ] {
            let desired: Vec<_> = desired.into_iter().collect();
            assert_eq!(
                translated("destinations", &json!([destination])),
                json!(desired),
                "{destination}"
            );
        }
    }

    #[test]
    fn service_accounts_and_sync_windows_name_the_managed_cluster() {
        let account = |server: &str| json!({"server": server, "namespace": "x", "defaultServiceAccount": "deployer"});
        let accounts = json!([
            account("https://eu1-control-plane"),
            account("https://eu2-control-plane"),
            account("https://kubernetes.default.svc"),
            account("*"),
        ]);
        let desired = json!([
            account("https://kubernetes.default.svc"),
            account("https://eu2-control-plane"),
            account("*")
        ]);
        assert_eq!(translated("destinationServiceAccounts", &accounts), desired);
        let window =
            |clusters: Value| json!({"kind": "deny", "schedule": "* * * * *", "duration": "1h", "clusters": clusters});
        let windows = json!([
            window(json!(["eu1", "eu2"])),
            window(json!(["eu2", "*"])),
            window(json!(["in-cluster", "https://kubernetes.*"])),
            {"namespaces": ["x"]},
        ]);
        let desired = json!([
            window(json!(["https://kubernetes.default.svc", "eu2"])),
            window(json!(["eu2", "*"])),
            window(json!(["https://hub.invalid", "https://hub.invalid"])),
            {"namespaces": ["x"]},
        ]);
        assert_eq!(translated("syncWindows", &windows), desired);
    }

    #[test]
    fn project_without_rules_stays_as_it_is() {
        assert_eq!(translated_spec(&json!({}), "eu1"), json!({}));
        let odd = json!({"destinations": [7, {}], "syncWindows": [null, {"clusters": "eu1"}], "destinationServiceAccounts": 1});
        assert_eq!(translated_spec(&json!({"spec": odd}), "eu1"), odd);
    }
}
