//! The permissions of Argo CD and the agent on the managed cluster.
//!
//! Argo CD has the permissions of the built-in ClusterRole `admin` in all namespaces, and may create Namespaces. The agent has
//! those of `view`, for live objects in the hub's UI. The cluster's administrator can extend both with labeled ClusterRoles.

use super::super::labels;
use super::context::{REDIS, REPO_SERVER, TemplateContext};
use crate::argocd_agent::Mode;
use serde_json::{Value, json};

/// The ServiceAccount of the application-controller.
pub(super) const CONTROLLER: &str = "argocd-application-controller";

/// The ServiceAccount of the agent.
pub(super) const AGENT: &str = "argocd-agent-agent";

/// The label of ClusterRoles that are aggregated to Argo CD's permissions.
const MORE_FOR_ARGOCD: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd";

/// The label of ClusterRoles that are aggregated to the agent's permissions, and so apply to all users who may see live objects
/// in the hub's UI.
const MORE_FOR_THE_AGENT: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd-agent";

/// The prefix of the names of cluster-scoped objects: an Argo CD in another namespace has its own.
const PREFIX: &str = "argocd-agent-addon";

pub(super) const READ: [&str; 3] = ["get", "list", "watch"];
pub(super) const ALL: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Returns the ServiceAccounts and permissions of Argo CD's components. Only the application-controller has permissions.
pub(super) fn of_argocd(context: &TemplateContext<'_>) -> Vec<Value> {
    let mut rights = vec![account(context, CONTROLLER, true)];
    for tokenless in [REPO_SERVER, REDIS] {
        rights.push(account(context, tokenless, false));
    }
    rights.push(of_redis(context));
    rights.extend(role_and_binding(context, CONTROLLER, &own_of_argocd()));
    rights.extend(of_argocd_everywhere(context, CONTROLLER));
    rights
}

/// Returns the permission of Redis to run as the user of its image. OpenShift assigns a user to all Pods without it. Other
/// clusters do not have this ClusterRole, and then the binding has no effect.
fn of_redis(context: &TemplateContext<'_>) -> Value {
    let role = ("ClusterRole", "system:openshift:scc:nonroot-v2");
    role_binding(context, REDIS, "argocd-redis-user", role)
}

/// Returns the rules of the application-controller in its namespace.
pub(super) fn own_of_argocd() -> [Value; 3] {
    [
        rule("", &["secrets", "configmaps"], &READ),
        rule("", &["events"], &["create", "list"]),
        rule("argoproj.io", &["applications", "applicationsets", "appprojects"], &ALL),
    ]
}

/// Returns the ClusterRoles and bindings of the application-controller with that ServiceAccount.
pub(super) fn of_argocd_everywhere(context: &TemplateContext<'_>, account: &str) -> Vec<Value> {
    let mut cluster_wide = vec![
        rule("", &["namespaces"], &["create", "update", "patch", "delete"]),
        rule("", &["events"], &["create"]),
        // To discover kinds that are added while it runs.
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &READ),
    ];
    if context.mode == Mode::Managed {
        cluster_wide.push(rule("argoproj.io", &["applications"], &ALL));
    }
    let role = cluster_role("application-controller", &cluster_wide);
    let more = aggregated("application-controller-more", MORE_FOR_ARGOCD);
    let admin = format!("{PREFIX}:application-controller-admin");
    let mut rights: Vec<Value> = [&role, &more]
        .map(|role| binding(context, account, name(role), name(role)))
        .into();
    rights.push(binding(context, account, &admin, "admin"));
    rights.extend([role, more]);
    rights
}

/// Returns the permissions of the agent: those of argocd-agent's own manifests that the mode needs, and read access.
pub(super) fn of_the_agent(context: &TemplateContext<'_>) -> Vec<Value> {
    let mut cluster_wide = vec![rule("", &["namespaces"], &READ)];
    if context.mode == Mode::Managed {
        cluster_wide.push(rule("", &["namespaces"], &["create"]));
        cluster_wide.push(rule("argoproj.io", &["applications"], &ALL));
    }
    let role = cluster_role("agent", &cluster_wide);
    let own = [
        rule("", &["secrets", "configmaps"], &ALL),
        rule("", &["events"], &["create", "list"]),
        rule("argoproj.io", &["applications", "applicationsets", "appprojects"], &ALL),
    ];
    let mut rights = vec![account(context, AGENT, true)];
    rights.extend(role_and_binding(context, AGENT, &own));
    rights.push(binding(context, AGENT, name(&role), name(&role)));
    let [more, view, of_more] = of_the_agent_to_see(context, AGENT);
    rights.extend([more, view, role, of_more]);
    rights
}

/// Returns the ClusterRole and bindings that give the agent with that ServiceAccount read access, beyond its own needs.
pub(super) fn of_the_agent_to_see(context: &TemplateContext<'_>, account: &str) -> [Value; 3] {
    let more = aggregated("agent-more", MORE_FOR_THE_AGENT);
    let view = format!("{PREFIX}:agent-view");
    [
        binding(context, account, name(&more), name(&more)),
        binding(context, account, &view, "view"),
        more,
    ]
}

/// Returns the permission of OCM's agent to apply AppProjects: by default it has none for custom resources.
pub(super) fn of_ocm() -> Value {
    let mut role = cluster_role("work-agent-appprojects", &[rule("argoproj.io", &["appprojects"], &ALL)]);
    role["metadata"]["labels"]["open-cluster-management.io/aggregate-to-work"] = "true".into();
    role
}

pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

pub(super) fn account(context: &TemplateContext<'_>, name: &str, has_token: bool) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": context.metadata(name),
        "automountServiceAccountToken": has_token,
    })
}

/// Returns a Role in the namespace and its RoleBinding, both with the name of the ServiceAccount.
pub(super) fn role_and_binding(context: &TemplateContext<'_>, name: &str, rules: &[Value]) -> [Value; 2] {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": context.metadata(name),
        "rules": rules,
    });
    [role, role_binding(context, name, name, ("Role", name))]
}

/// Returns a RoleBinding of a ServiceAccount to a role, given as kind and name.
fn role_binding(context: &TemplateContext<'_>, account: &str, binding: &str, (kind, role): (&str, &str)) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": context.metadata(binding),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": context.namespace}],
    })
}

pub(super) fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("{PREFIX}:{name}"), "labels": labels()},
        "rules": rules,
    })
}

/// Returns a ClusterRole that aggregates all ClusterRoles with a label. Kubernetes writes its rules, and OCM's agent keeps them
/// (`ApplyClusterRole`).
pub(super) fn aggregated(name: &str, label: &str) -> Value {
    let mut role = cluster_role(name, &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    role
}

/// Returns a ClusterRoleBinding of a ServiceAccount.
pub(super) fn binding(context: &TemplateContext<'_>, account: &str, binding: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": binding, "labels": labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": context.namespace}],
    })
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
