//! The permissions that are needed on the hub, from the shipped files.

use super::controller::ControllerPod;
use super::hub_state::HubState;
use crate::embedded::shipped;
use crate::install::Feature;
use crate::workload::items;
use controller::controllers::AGENTS;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A permission of a ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permission {
    /// The ServiceAccount in Argo CD's namespace.
    pub(crate) account: String,
    /// The file that grants it.
    pub(crate) file: &'static str,
    pub(crate) verb: String,
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The resource, with its subresource if any: `placementdecisions/status`.
    pub(crate) resource: String,
    /// The namespace; empty for all.
    pub(crate) namespace: String,
    /// The name of the only object; empty for all.
    pub(crate) name: String,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        Ok(())
    }
}

impl Permission {
    /// Creates the SubjectAccessReview for the permission; `argocd` is the namespace of the ServiceAccount.
    pub(crate) fn review(&self, argocd: &str) -> Value {
        let (resource, part) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{argocd}:{}", self.account),
                "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{argocd}"), "system:authenticated"],
                "resourceAttributes": {
                    "verb": self.verb,
                    "group": self.group,
                    "resource": resource,
                    "subresource": part,
                    "namespace": self.namespace,
                    "name": self.name,
                },
            },
        })
    }
}

/// Returns the permissions that the controller and Argo CD of this hub need.
pub(crate) fn required_permissions(hub_state: &HubState) -> Vec<Permission> {
    let mut permissions = Vec::new();
    if let Some(controller) = hub_state
        .application_controller()
        .filter(|_| hub_state.expects_plugin())
    {
        let account = controller["spec"]["template"]["spec"]["serviceAccountName"].as_str();
        let of_argo_cd = permissions_of(Feature::ARGOCD_RBAC, account.unwrap_or("default"), &hub_state.namespace);
        for permission in of_argo_cd {
            if permission.verb == "execute-as" {
                permissions.extend(executors(hub_state).into_iter().map(|(name, cluster)| Permission {
                    namespace: cluster.to_owned(),
                    name: name.to_owned(),
                    ..permission.clone()
                }));
            } else {
                permissions.push(permission);
            }
        }
    }
    if let Some(pod) = ControllerPod::from_state(hub_state) {
        for feature in features(&pod) {
            permissions.extend(permissions_of(feature, &pod.account, &hub_state.namespace));
        }
    }
    permissions
}

/// Returns the features whose permissions the enabled controllers need. The controller argocd-agent also reads GitOpsClusters.
fn features(pod: &ControllerPod) -> BTreeSet<Feature> {
    let is_enabled = |feature: &Feature| match (*feature, feature.controller()) {
        (Feature::CONTROLLER, _) => true,
        (Feature::GITOPS_CLUSTER, Some(name)) => pod.is_enabled(name) || pod.is_enabled(AGENTS),
        (_, name) => name.is_some_and(|name| pod.is_enabled(name)),
    };
    Feature::all().iter().copied().filter(is_enabled).collect()
}

/// The user that OCM asks for if a work names no executor, with its feature gate NilExecutorValidating.
const NO_EXECUTOR: &str = "system:serviceaccount::klusterlet-work-sa";

/// Returns the executors that Argo CD needs the permission to use, each with a managed cluster. An administrator may permit only some, on
/// some clusters. With impersonation, other accounts of Argo CD need it.
fn executors(hub_state: &HubState) -> BTreeMap<&str, &str> {
    if hub_state.config.text("application.sync.impersonation.enabled") == Some("true") {
        return BTreeMap::new();
    }
    let is_always_asked = gate(hub_state, "NilExecutorValidating") == Some(true);
    let works = hub_state.works.items().iter();
    let executors = works.filter(|work| work.application.is_some()).filter_map(|work| {
        let executor = work.executor.as_deref().or(is_always_asked.then_some(NO_EXECUTOR))?;
        Some((executor, &*work.cluster))
    });
    executors.collect()
}

/// Returns the feature gate of OCM's work manager as set in its operator; `None` if it is not set.
pub(super) fn gate(hub_state: &HubState, gate: &str) -> Option<bool> {
    let managers = hub_state.cluster_managers.items().iter();
    let gates = managers.flat_map(|manager| items(&manager["spec"]["workConfiguration"]["featureGates"]));
    let mut modes = gates.filter(|value| value["feature"] == gate).map(|gate| &gate["mode"]);
    modes.next().map(|mode| mode == "Enable")
}

/// Returns the permissions that a feature grants to an account, for an Argo CD in this namespace.
fn permissions_of(feature: Feature, account: &str, argocd: &str) -> Vec<Permission> {
    let mut permissions = Vec::new();
    let Some(file) = feature.permissions() else {
        return permissions;
    };
    for role in shipped(file) {
        let namespace = match role["kind"].as_str() {
            Some("ClusterRole") => "",
            Some("Role") => argocd,
            _ => continue,
        };
        for rule in items(&role["rules"]) {
            let texts = |key: &str| items(&rule[key]).iter().filter_map(Value::as_str);
            let mut names: Vec<&str> = texts("resourceNames").collect();
            if names.is_empty() {
                names.push("");
            }
            let resources =
                texts("apiGroups").flat_map(|group| texts("resources").map(move |resource| (group, resource)));
            for (group, resource) in resources {
                for (verb, name) in texts("verbs").flat_map(|verb| names.iter().map(move |name| (verb, *name))) {
                    let is_argocd = resource == "namespaces" && name == "argocd";
                    permissions.push(Permission {
                        account: account.to_owned(),
                        file,
                        verb: verb.to_owned(),
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        namespace: namespace.to_owned(),
                        name: if is_argocd { argocd } else { name }.to_owned(),
                    });
                }
            }
        }
    }
    permissions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The snapshot of missing permissions has the other rules.
    #[test]
    fn permissions_are_for_the_namespace_of_argo_cd() {
        let lines = |feature: Feature| -> Vec<String> {
            let line = |permission: &Permission| format!("{}|{}|{permission}", permission.namespace, permission.group);
            permissions_of(feature, "who", "gitops").iter().map(line).collect()
        };
        let controller = lines(Feature::CONTROLLER);
        for permission in ["|argoproj.io|patch applications", "gitops||watch configmaps argocd-cm"] {
            assert!(controller.iter().any(|line| line == permission), "{controller:#?}");
        }
        for feature in Feature::all() {
            let lines = lines(*feature);
            assert_eq!(lines.len() > 3, feature.permissions().is_some(), "{feature:?}");
            let lists_namespace = lines.iter().any(|permission| permission == "||list namespaces gitops");
            assert_eq!(lists_namespace, *feature == Feature::GITOPS_CLUSTER, "{lines:#?}");
        }
    }

    #[test]
    fn review_names_the_subresource() {
        let permission = Permission {
            account: "who".to_owned(),
            verb: "patch".to_owned(),
            resource: "placementdecisions/status".to_owned(),
            ..Permission::default()
        };
        let review = permission.review("gitops");
        assert_eq!(review["spec"]["user"], "system:serviceaccount:gitops:who");
        let asked = &review["spec"]["resourceAttributes"];
        assert_eq!(
            (&asked["resource"], &asked["subresource"]),
            (&json!("placementdecisions"), &json!("status"))
        );
    }
}
