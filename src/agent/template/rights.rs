//! What Argo CD and the agent may do on the managed cluster.
//!
//! Argo CD may do what the built-in ClusterRole `admin` may in all namespaces, and make Namespaces. The agent may see what `view` may,
//! for live objects in the hub's UI. Whoever runs the cluster gives either more with ClusterRoles that have a label.

use super::super::labels;
use super::Place;
use crate::agent::Mode;
use serde_json::{Value, json};

/// The ServiceAccount of the application-controller.
pub(super) const CONTROLLER: &str = "argocd-application-controller";

/// The ServiceAccount of the agent.
pub(super) const AGENT: &str = "argocd-agent-agent";

/// The label of ClusterRoles that Argo CD gets too.
const MORE_FOR_ARGOCD: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd";

/// The label of ClusterRoles that the agent gets too, and so whoever may see live objects in the hub's UI.
const MORE_FOR_THE_AGENT: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd-agent";

/// What the names of cluster-wide objects begin with: an Argo CD of another namespace has its own.
const PREFIX: &str = "argocd-agent-addon";

pub(super) const READ: [&str; 3] = ["get", "list", "watch"];
pub(super) const ALL: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The rights of Argo CD's parts. Only the application-controller has any.
pub(super) fn of_argocd(place: &Place<'_>) -> Vec<Value> {
    let mut rights = vec![account(place, CONTROLLER, true)];
    for tokenless in ["argocd-repo-server", "argocd-redis"] {
        rights.push(account(place, tokenless, false));
    }
    rights.extend(role_and_binding(place, CONTROLLER, &own_of_argocd()));
    rights.extend(of_argocd_everywhere(place, CONTROLLER));
    rights
}

/// What the application-controller may do in its namespace.
pub(super) fn own_of_argocd() -> [Value; 3] {
    [
        rule("", &["secrets", "configmaps"], &READ),
        rule("", &["events"], &["create", "list"]),
        rule("argoproj.io", &["applications", "applicationsets", "appprojects"], &ALL),
    ]
}

/// What the application-controller of that ServiceAccount may do in all namespaces.
pub(super) fn of_argocd_everywhere(place: &Place<'_>, account: &str) -> Vec<Value> {
    let mut cluster_wide = vec![
        rule("", &["namespaces"], &["create", "update", "patch", "delete"]),
        rule("", &["events"], &["create"]),
        // So it learns of kinds that are added while it runs.
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &READ),
    ];
    if place.mode == Mode::Managed {
        cluster_wide.push(rule("argoproj.io", &["applications"], &ALL));
    }
    let role = cluster_role("application-controller", &cluster_wide);
    let more = aggregated("application-controller-more", MORE_FOR_ARGOCD);
    let admin = format!("{PREFIX}:application-controller-admin");
    let mut rights: Vec<Value> = [&role, &more]
        .map(|role| binding(place, account, name(role), name(role)))
        .into();
    rights.push(binding(place, account, &admin, "admin"));
    rights.extend([role, more]);
    rights
}

/// The rights of the agent: what argocd-agent's own manifests give it, where the mode needs it, and to see.
pub(super) fn of_the_agent(place: &Place<'_>) -> Vec<Value> {
    let mut cluster_wide = vec![rule("", &["namespaces"], &READ)];
    if place.mode == Mode::Managed {
        cluster_wide.push(rule("", &["namespaces"], &["create"]));
        cluster_wide.push(rule("argoproj.io", &["applications"], &ALL));
    }
    let role = cluster_role("agent", &cluster_wide);
    let own = [
        rule("", &["secrets", "configmaps"], &ALL),
        rule("", &["events"], &["create", "list"]),
        rule("argoproj.io", &["applications", "applicationsets", "appprojects"], &ALL),
    ];
    let mut rights = vec![account(place, AGENT, true)];
    rights.extend(role_and_binding(place, AGENT, &own));
    rights.push(binding(place, AGENT, name(&role), name(&role)));
    let [more, view, of_more] = of_the_agent_to_see(place, AGENT);
    rights.extend([more, view, role, of_more]);
    rights
}

/// What the agent of that ServiceAccount may see, besides what it needs itself.
pub(super) fn of_the_agent_to_see(place: &Place<'_>, account: &str) -> [Value; 3] {
    let more = aggregated("agent-more", MORE_FOR_THE_AGENT);
    let view = format!("{PREFIX}:agent-view");
    [
        binding(place, account, name(&more), name(&more)),
        binding(place, account, &view, "view"),
        more,
    ]
}

/// The right of OCM's agent to bring AppProjects: it has none by itself for kinds that Kubernetes does not know.
pub(super) fn of_ocm() -> Value {
    let mut role = cluster_role("work-agent-appprojects", &[rule("argoproj.io", &["appprojects"], &ALL)]);
    role["metadata"]["labels"]["open-cluster-management.io/aggregate-to-work"] = "true".into();
    role
}

pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

pub(super) fn account(place: &Place<'_>, name: &str, has_token: bool) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": place.metadata(name),
        "automountServiceAccountToken": has_token,
    })
}

/// A Role in the namespace, and who has it, both called as the ServiceAccount is.
pub(super) fn role_and_binding(place: &Place<'_>, name: &str, rules: &[Value]) -> [Value; 2] {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": place.metadata(name),
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": place.metadata(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": place.namespace}],
    });
    [role, binding]
}

pub(super) fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("{PREFIX}:{name}"), "labels": labels()},
        "rules": rules,
    })
}

/// A ClusterRole of all that has a label. Kubernetes writes its rules, and OCM's agent leaves them to it (`ApplyClusterRole`).
pub(super) fn aggregated(name: &str, label: &str) -> Value {
    let mut role = cluster_role(name, &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    role
}

/// Who has a ClusterRole everywhere.
pub(super) fn binding(place: &Place<'_>, account: &str, binding: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": binding, "labels": labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": place.namespace}],
    })
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
