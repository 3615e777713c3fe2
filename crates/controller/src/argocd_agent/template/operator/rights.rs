//! The permissions of argocd-operator, and of the Argo CD and the agent that it creates.
//!
//! Kubernetes lets a ServiceAccount grant only permissions that it has. So the operator has all permissions that it grants to the
//! agent. It would also grant the application-controller every permission, so the template grants these instead: the same ones as
//! for an Argo CD without an operator.

use super::super::rights::{
    ALL, READ, account, aggregated, binding, cluster_role, name, of_argocd_everywhere, of_the_agent_to_see,
    own_of_argocd, role_and_binding, rule,
};
use crate::argocd_agent::Mode;
use crate::argocd_agent::template::context::TemplateContext;
use serde_json::Value;

/// The name of the operator and its ServiceAccount.
pub(super) const NAME: &str = "argocd-operator";

/// The ClusterRole that the operator binds the application-controller to in its namespace.
pub(super) const CONTROLLER_ROLE: &str = "argocd-agent-addon:application-controller-own";

/// The label of ClusterRoles that are aggregated to the operator's permissions, for optional features of an ArgoCD resource.
const MORE_FOR_THE_OPERATOR: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd-operator";

/// The verbs for cluster-scoped objects that the operator creates, and deletes one by one.
const MAKE: [&str; 6] = ["get", "list", "watch", "create", "update", "delete"];

/// Returns the name of the agent that the operator creates from the ArgoCD resource of that name, and of its ServiceAccount.
pub(super) fn agent(argocd: &str) -> String {
    format!("{argocd}-agent-agent")
}

/// Returns all permissions, with an ArgoCD resource of that name.
pub(super) fn all(context: &TemplateContext<'_>, argocd: &str) -> Vec<Value> {
    let mut rights = vec![account(context, NAME, true)];
    rights.extend(role_and_binding(context, NAME, &here()));
    let role = cluster_role("operator", &everywhere(context.mode));
    let more = aggregated("operator-more", MORE_FOR_THE_OPERATOR);
    rights.extend([&role, &more].map(|role| binding(context, NAME, name(role), name(role))));
    rights.extend([role, more]);
    rights.push(cluster_role("application-controller-own", &own_of_argocd()));
    let controller = format!("{argocd}-argocd-application-controller");
    rights.extend(of_argocd_everywhere(context, &controller));
    rights.extend(of_the_agent_to_see(context, &agent(argocd)));
    rights
}

/// Returns the rules in the operator's namespace.
fn here() -> Vec<Value> {
    vec![
        rule("", &["configmaps", "secrets", "serviceaccounts", "services"], &ALL),
        rule("", &["events"], &["create", "list", "patch"]),
        // For a highly available Redis, whose Role the operator always creates.
        rule("", &["endpoints"], &["get"]),
        rule("", &["pods"], &READ),
        rule("apps", &["deployments", "statefulsets"], &ALL),
        rule("autoscaling", &["horizontalpodautoscalers"], &ALL),
        rule("networking.k8s.io", &["ingresses", "networkpolicies"], &ALL),
        rule("rbac.authorization.k8s.io", &["roles", "rolebindings"], &ALL),
        rule("argoproj.io", &["applications", "applicationsets", "appprojects"], &ALL),
        rule(
            "argoproj.io",
            &["argocds"],
            &["get", "list", "watch", "update", "patch"],
        ),
        rule(
            "argoproj.io",
            &[
                "argocds/finalizers",
                "argocds/status",
                "notificationsconfigurations/finalizers",
            ],
            &["get", "update", "patch"],
        ),
        rule("argoproj.io", &["notificationsconfigurations"], &ALL),
        // The operator watches the objects that it would create for an ArgoCDExport, and does not start without these
        // permissions.
        rule("argoproj.io", &["argocdexports", "namespacemanagements"], &READ),
        rule("batch", &["cronjobs", "jobs"], &READ),
        rule("", &["persistentvolumeclaims"], &READ),
        // The operator watches these kinds if they exist.
        rule(
            "monitoring.coreos.com",
            &["prometheuses", "prometheusrules", "servicemonitors"],
            &ALL,
        ),
        rule("route.openshift.io", &["routes", "routes/custom-host"], &ALL),
    ]
}

/// Returns the rules for all namespaces and for cluster-scoped objects.
fn everywhere(mode: Mode) -> Vec<Value> {
    let mut rules = vec![
        rule("", &["namespaces"], &READ),
        rule(
            "rbac.authorization.k8s.io",
            &["clusterroles", "clusterrolebindings"],
            &MAKE,
        ),
        // To discover the APIs of the cluster.
        rule("apiregistration.k8s.io", &["apiservices"], &["get", "list"]),
        rule("certificates.k8s.io", &["clustertrustbundles"], &READ),
        rule("config.openshift.io", &["clusterversions"], &READ),
    ];
    if mode == Mode::Managed {
        // For the agent.
        rules.push(rule("", &["namespaces"], &["create"]));
        rules.push(rule("argoproj.io", &["applications"], &ALL));
    }
    rules
}
