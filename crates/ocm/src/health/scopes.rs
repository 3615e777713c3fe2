//! Messages about kinds whose scope or resource name on the managed cluster differs from what the plugin has assumed.

/// Returns the message for an object that no entry of the plugin's work applies to: the agent maps its kind to another resource than
/// the plugin has assumed, so it evaluates no rule and does not apply the object in the configured way.
pub(super) fn wrong_resource_name(group: &str, kind: &str, resource: &str) -> String {
    match resource_name_setting(group, kind, resource) {
        Some(setting) => format!("its resource name on the cluster is {resource}: set resource-names to {setting}"),
        None => "its resource name on the cluster is not valid".to_owned(),
    }
}

/// Returns the value of `resource-names` for a kind as a managed cluster reports it; `None` if no API server has such names, because
/// people copy the value. The health check in Argo CD has no functions that could test this.
pub fn resource_name_setting(group: &str, kind: &str, resource: &str) -> Option<String> {
    is_plain(&[group, kind, resource]).then(|| format!("{kind}.{group}={resource}"))
}

fn is_plain(names: &[&str]) -> bool {
    let mut bytes = names.iter().flat_map(|name| name.bytes());
    bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
}

/// Adds the remedy to the agent's message about an object that it cannot apply, if the message shows that the plugin has assumed
/// another scope. The agent reports the object with the true scope.
pub fn with_remedy(message: String, group: &str, kind: &str) -> String {
    if !is_plain(&[group, kind]) {
        message
    } else if message.ends_with("the server could not find the requested resource") {
        format!("{message}: if the kind is cluster-scoped, set cluster-scoped-kinds to {kind}.{group}")
    } else if message.ends_with("the server does not allow this method on the requested resource") {
        format!("{message}: if the kind is namespaced, remove {kind}.{group} from cluster-scoped-kinds")
    } else {
        message
    }
}
