//! The permissions that are needed on the hub, from the shipped files.

use super::controller::ControllerPod;
use super::hub_state::{HubState, items};
use super::shipped::{self, File, objects};
use serde_json::{Value, json};
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
        let account = &controller["spec"]["template"]["spec"]["serviceAccountName"];
        let with_executors = needs_execute_as(hub_state);
        let of_argo_cd = permissions_of_file(
            &shipped::ARGO_CD,
            account.as_str().unwrap_or("default"),
            &hub_state.namespace,
        );
        permissions.extend(
            of_argo_cd
                .into_iter()
                .filter(|permission| permission.verb != "execute-as" || with_executors),
        );
    }
    if let Some(pod) = ControllerPod::from_state(hub_state) {
        for file in files(&pod) {
            permissions.extend(permissions_of_file(file, &pod.account, &hub_state.namespace));
        }
    }
    permissions
}

/// Returns the files with the permissions that the enabled controllers need.
fn files(pod: &ControllerPod) -> Vec<&'static File> {
    let is_needed = |names: &[&str]| names.iter().any(|name| pod.is_enabled(name));
    let further = shipped::OF_CONTROLLERS.iter().filter(|(names, _)| is_needed(names));
    std::iter::once(&shipped::CONTROLLER)
        .chain(further.map(|(_, file)| file))
        .collect()
}

/// Returns true if the permission to use an executor is needed: OCM checks it for every work, or for works that name one.
fn needs_execute_as(hub_state: &HubState) -> bool {
    let works = hub_state
        .works
        .found()
        .is_some_and(|works| works.iter().any(|work| work.executor));
    works || gate(hub_state, "NilExecutorValidating") == Some(true)
}

/// Returns the feature gate of OCM's work manager as set in its operator; `None` if it is not set.
pub(super) fn gate(hub_state: &HubState, gate: &str) -> Option<bool> {
    let managers = hub_state.cluster_managers.found()?;
    let gates = managers
        .iter()
        .flat_map(|manager| items(&manager["spec"]["workConfiguration"]["featureGates"]));
    let mut modes = gates.filter(|value| value["feature"] == gate).map(|gate| &gate["mode"]);
    modes.next().map(|mode| mode == "Enable")
}

/// Returns the permissions that a file grants, for an Argo CD in this namespace.
fn permissions_of_file(file: &'static File, account: &str, argocd: &str) -> Vec<Permission> {
    let mut permissions = Vec::new();
    for role in objects(file.text) {
        let namespace = match role["kind"].as_str() {
            Some("ClusterRole") => "",
            Some("Role") => argocd,
            _ => continue,
        };
        for rule in items(&role["rules"]) {
            let texts = |key: &str| items(&rule[key]).iter().filter_map(Value::as_str).collect::<Vec<_>>();
            let names = match &*texts("resourceNames") {
                [] => vec![""],
                names => names.to_vec(),
            };
            for (group, resource) in each(&texts("apiGroups"), &texts("resources")) {
                for (verb, name) in each(&texts("verbs"), &names) {
                    let is_argocd = resource == "namespaces" && name == "argocd";
                    permissions.push(Permission {
                        account: account.to_owned(),
                        file: file.name,
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

/// Returns the Cartesian product.
fn each<'t>(ones: &[&'t str], others: &[&'t str]) -> Vec<(&'t str, &'t str)> {
    let pairs = ones
        .iter()
        .flat_map(|one| others.iter().map(move |other| (*one, *other)));
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The snapshot of missing permissions has the other rules.
    #[test]
    fn permissions_are_for_the_namespace_of_argo_cd() {
        let lines = |file: &'static File| -> Vec<String> {
            let line = |permission: &Permission| format!("{}|{}|{permission}", permission.namespace, permission.group);
            permissions_of_file(file, "who", "gitops").iter().map(line).collect()
        };
        let controller = lines(&shipped::CONTROLLER);
        for permission in ["|argoproj.io|patch applications", "gitops||watch configmaps argocd-cm"] {
            assert!(controller.iter().any(|line| line == permission), "{controller:#?}");
        }
        assert!(lines(&shipped::ARGO_CD).len() > 5);
        for (_, file) in &shipped::OF_CONTROLLERS {
            let lines = lines(file);
            assert!(lines.len() > 3, "{}", file.name);
            let lists_namespace = lines.iter().any(|permission| permission == "||list namespaces gitops");
            assert_eq!(lists_namespace, file.name.contains("gitopscluster"), "{lines:#?}");
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
