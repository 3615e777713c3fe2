//! The permissions that OCM's agent, or the executor, needs on the managed clusters for the objects of a folder.

use super::placed::Placed;
use super::plurals::Plurals;
use super::policy::Executor;
use manifest::value::Value;
use manifest::yaml;
use std::collections::{BTreeMap, BTreeSet};

/// The verbs that OCM's agent checks before it applies and deletes objects as an executor.
const OF_EXECUTORS: &[&str] = &["create", "delete", "get", "patch", "update"];

/// The verbs that the agent itself needs, also to watch objects.
const OF_AGENTS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

const RBAC: &str = "rbac.authorization.k8s.io";

/// The resources (plurals), by API group.
#[derive(Debug, Default)]
pub(super) struct Resources(BTreeMap<Box<str>, BTreeSet<String>>);

impl Resources {
    /// Adds the resources of objects. A kind whose plural is not known has each plural that it may have.
    pub(super) fn add(&mut self, objects: &[Placed], plurals: &Plurals) {
        for placed in objects {
            let kind = &placed.object.key.kind;
            let resources = self.0.entry(kind.group.clone()).or_default();
            resources.extend(plurals.list_plurals(kind).into_iter().map(String::from));
        }
    }

    /// Returns the YAML of a ClusterRole with permissions for the resources, and of its binding to the executor, if there is one. A label
    /// gives it to the agent.
    pub(super) fn cluster_role(&self, name: &str, executor: Option<&Executor>) -> String {
        let name = format!("argocd-ocm-cmp:{name}");
        let (label, verbs) = match executor {
            Some(_) => (String::new(), OF_EXECUTORS),
            None => (
                "  labels:\n    open-cluster-management.io/aggregate-to-work: \"true\"\n".to_owned(),
                OF_AGENTS,
            ),
        };
        let mut text = format!("apiVersion: {RBAC}/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\n{label}rules:\n");
        for (group, resources) in &self.0 {
            // To grant permissions that it does not have itself, an account needs two more verbs.
            let (roles, others): (Vec<_>, Vec<_>) = resources
                .iter()
                .map(String::as_str)
                .partition(|resource| &**group == RBAC && ["roles", "clusterroles"].contains(resource));
            text.push_str(&rule(group, &others, verbs));
            text.push_str(&rule(group, &roles, &[verbs, &["bind", "escalate"]].concat()));
            let binds = others.iter().any(|resource| resource.ends_with("rolebindings"));
            if &**group == RBAC && binds && roles.len() < 2 {
                let unbound: Vec<_> = ["clusterroles", "roles"]
                    .into_iter()
                    .filter(|role| !roles.contains(role))
                    .collect();
                text.push_str(&rule(group, &unbound, &["bind"]));
            }
        }
        if let Some(Executor {
            namespace,
            name: account,
        }) = executor
        {
            let (namespace, account) = (scalar(namespace), scalar(account));
            let binding = format!(
                "---\napiVersion: {RBAC}/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef:\n  apiGroup: {RBAC}\n  \
                 kind: ClusterRole\n  name: {name}\nsubjects:\n- kind: ServiceAccount\n  name: {account}\n  namespace: {namespace}\n"
            );
            text.push_str(&binding);
        }
        text
    }
}

/// Returns a name as YAML, in quotes if it would be another type.
fn scalar(name: &str) -> String {
    yaml::write(&Value::from_text(name)).trim_end().to_owned()
}

/// Returns a rule; nothing without resources.
fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> String {
    if resources.is_empty() {
        return String::new();
    }
    let (group, resources, verbs) = (scalar(group), resources.iter().copied().map(scalar), verbs.join(", "));
    let resources = resources.collect::<Vec<_>>().join(", ");
    format!("- apiGroups: [{group}]\n  resources: [{resources}]\n  verbs: [{verbs}]\n")
}
