//! The permissions that OCM's agent, or the executor, needs on the managed clusters for the objects of a folder.

use super::placed::Placed;
use super::plurals::Plurals;
use super::policy::Executor;
use manifest::kinds::Scope;
use manifest::value::Value;
use manifest::yaml;
use std::collections::{BTreeMap, BTreeSet};

/// The verbs that OCM's agent checks before it applies and deletes objects as an executor.
const OF_EXECUTORS: &[&str] = &["create", "delete", "get", "patch", "update"];

/// The verbs that the agent itself needs, also to watch objects.
const OF_AGENTS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

const RBAC: &str = "rbac.authorization.k8s.io";

/// The resources (plurals), by API group.
type ResourcesByGroup = BTreeMap<Box<str>, BTreeSet<String>>;

/// The resources of objects by namespace; `None` for cluster-scoped objects.
#[derive(Debug, Default)]
pub(super) struct Resources(BTreeMap<Option<String>, ResourcesByGroup>);

impl Resources {
    /// Adds the resources of objects. A kind whose plural is not known has each plural that it may have.
    pub(super) fn add(&mut self, objects: &[Placed], plurals: &Plurals) {
        for placed in objects {
            let key = &placed.object.key;
            let namespace = key.namespace.as_deref().filter(|_| placed.scope == Scope::Namespaced);
            let groups = self.0.entry(namespace.map(str::to_owned)).or_default();
            let resources = groups.entry(key.kind.group.clone()).or_default();
            resources.extend(plurals.list_plurals(&key.kind).into_iter().map(String::from));
        }
    }

    /// Returns the YAML of the roles with permissions for the resources. The agent gets a ClusterRole by a label. An executor gets a Role
    /// in each namespace, and a ClusterRole for cluster-scoped objects, with their bindings: everyone who may create a Pod in its
    /// namespace has its permissions.
    pub(super) fn roles(&self, name: &str, executor: Option<&Executor>) -> String {
        let name = format!("argocd-ocm-cmp:{name}");
        let Some(executor) = executor else {
            let mut all = ResourcesByGroup::new();
            for (group, resources) in self.0.values().flatten() {
                all.entry(group.clone()).or_default().extend(resources.iter().cloned());
            }
            let label = "  labels:\n    open-cluster-management.io/aggregate-to-work: \"true\"\n";
            return role("ClusterRole", &format!("  name: {name}\n{label}"), &all, OF_AGENTS);
        };
        let roles = self.0.iter().map(|(namespace, resources)| {
            let (kind, metadata) = match namespace {
                Some(namespace) => ("Role", format!("  name: {name}\n  namespace: {}\n", scalar(namespace))),
                None => ("ClusterRole", format!("  name: {name}\n")),
            };
            let role = role(kind, &metadata, resources, OF_EXECUTORS);
            let (namespace, account) = (scalar(&executor.namespace), scalar(&executor.name));
            format!(
                "{role}---\napiVersion: {RBAC}/v1\nkind: {kind}Binding\nmetadata:\n{metadata}roleRef:\n  apiGroup: {RBAC}\n  kind: {kind}\n  \
                 name: {name}\nsubjects:\n- kind: ServiceAccount\n  name: {account}\n  namespace: {namespace}\n"
            )
        });
        roles.collect::<Vec<_>>().join("---\n")
    }
}

/// Returns the YAML of a role of this kind.
fn role(kind: &str, metadata: &str, resources: &ResourcesByGroup, verbs: &[&str]) -> String {
    let mut text = format!("apiVersion: {RBAC}/v1\nkind: {kind}\nmetadata:\n{metadata}rules:\n");
    for (group, resources) in resources {
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
    text
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
