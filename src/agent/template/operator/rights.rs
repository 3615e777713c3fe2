//! What argocd-operator may do, and what Argo CD and the agent may that it makes.
//!
//! Whoever makes roles may give only what he has. So the operator has what it gives the agent, and what it would give an
//! application-controller, which is everything, is given here: the same as to an Argo CD of our own.

use super::super::rights::{
    ALL, READ, account, aggregated, binding, cluster_role, name, of_argocd_everywhere, of_the_agent_to_see,
    own_of_argocd, role_and_binding, rule,
};
use super::{NAME, Place};
use crate::agent::Mode;
use serde_json::Value;

/// The ClusterRole that the operator binds the application-controller to in its namespace.
pub(super) const CONTROLLER_ROLE: &str = "argocd-agent-addon:application-controller-own";

/// The label of ClusterRoles that the operator gets too, for what else an ArgoCD asks for.
const MORE_FOR_THE_OPERATOR: &str = "argocd-ocm-cmp.github.io/aggregate-to-argocd-operator";

/// What it may with what it makes and does not delete all at once.
const MAKE: [&str; 6] = ["get", "list", "watch", "create", "update", "delete"];

/// All rights, with an ArgoCD of that name.
pub(super) fn all(place: &Place<'_>, argocd: &str) -> Vec<Value> {
    let mut rights = vec![account(place, NAME, true)];
    rights.extend(role_and_binding(place, NAME, &here()));
    let role = cluster_role("operator", &everywhere(place.mode));
    let more = aggregated("operator-more", MORE_FOR_THE_OPERATOR);
    rights.extend([&role, &more].map(|role| binding(place, NAME, name(role), name(role))));
    rights.extend([role, more]);
    rights.push(cluster_role("application-controller-own", &own_of_argocd()));
    let controller = format!("{argocd}-argocd-application-controller");
    rights.extend(of_argocd_everywhere(place, &controller));
    rights.extend(of_the_agent_to_see(place, &super::agent(argocd)));
    rights
}

/// In its namespace.
fn here() -> Vec<Value> {
    vec![
        rule("", &["configmaps", "secrets", "serviceaccounts", "services"], &ALL),
        rule("", &["events"], &["create", "list", "patch"]),
        // For a Redis of high availability, whose role it makes whether there is one or not.
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
        // It watches what it would make of an ArgoCDExport, and does not start where it may not.
        rule("argoproj.io", &["argocdexports", "namespacemanagements"], &READ),
        rule("batch", &["cronjobs", "jobs"], &READ),
        rule("", &["persistentvolumeclaims"], &READ),
        // What it watches wherever these kinds are.
        rule(
            "monitoring.coreos.com",
            &["prometheuses", "prometheusrules", "servicemonitors"],
            &ALL,
        ),
        rule("route.openshift.io", &["routes", "routes/custom-host"], &ALL),
    ]
}

/// In all namespaces, and with what has none.
fn everywhere(mode: Mode) -> Vec<Value> {
    let mut rules = vec![
        rule("", &["namespaces"], &READ),
        rule(
            "rbac.authorization.k8s.io",
            &["clusterroles", "clusterrolebindings"],
            &MAKE,
        ),
        // By which it finds out what else there is on the cluster.
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
