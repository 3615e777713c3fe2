//! Assigns each object its phase, wave and role in a sync, and its namespace on the cluster. For namespaced objects without a namespace,
//! Argo CD uses the destination namespace and kubectl the current one; OCM's agent uses neither, and the cluster rejects the object.

use super::annotations::Phase;
use super::hooks::{self, Role};
use super::object::{self, Object};
use super::order;
use manifest::kinds::{GroupKind, Scope};
use std::collections::HashMap;
use std::sync::Arc;

/// An object with its phase, wave and role in a sync, and with its namespace on the cluster.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The object, without a namespace if its kind is cluster-scoped.
    pub object: Box<Object>,
    /// The phase of a sync in which it is applied.
    pub phase: Phase,
    /// The wave in that phase.
    pub wave: i32,
    /// The role in that phase.
    pub role: Role,
    /// The scope of its kind.
    pub scope: Scope,
    /// True if its namespace is that of the Application, and not in the object itself.
    pub has_default_namespace: bool,
}

impl Placed {
    /// Returns a Namespace that is in no file.
    pub fn namespace(name: &str) -> Self {
        Self {
            object: Box::new(object::namespace(name)),
            phase: Phase::Sync,
            wave: 0,
            role: Role::Ordinary,
            scope: Scope::Cluster,
            has_default_namespace: false,
        }
    }

    /// Returns true if its kind needs a namespace, and neither the object nor the Application names one.
    pub fn lacks_namespace(&self) -> bool {
        self.scope == Scope::Namespaced && self.object.key.namespace.is_none()
    }
}

/// Assigns phases and namespaces to the objects of a folder: `cluster_scoped` are kinds besides the built-in ones and those whose CRD is in the folder,
/// `namespace` is the default.
pub fn placed(objects: Vec<Box<Object>>, cluster_scoped: &[GroupKind], namespace: Option<&str>) -> Vec<Placed> {
    let mut placed = in_namespaces(hooks::in_phases(objects), cluster_scoped, namespace);
    creators_first(&mut placed);
    placed
}

/// Sets the namespace of every namespaced object that has none to `default`, and removes it from cluster-scoped ones.
///
/// The scope of a kind is that of the built-in kind, else of a CRD among the objects, else of the setting, else of the custom kind
/// of a public operator. Any other custom kind counts as namespaced. If that is wrong, the cluster rejects the object.
fn in_namespaces(
    objects: Vec<(Box<Object>, Phase, Role)>,
    cluster_scoped: &[GroupKind],
    default: Option<&str>,
) -> Vec<Placed> {
    let defined: HashMap<GroupKind, Scope> = objects
        .iter()
        .filter_map(|(object, ..)| object.defines.as_deref())
        .map(|defined| (defined.kind.clone(), defined.scope))
        .collect();
    let scope_of = |object: &Object| {
        let kind = &object.key.kind;
        let known = object.scope.or_else(|| defined.get(kind).copied());
        known.unwrap_or_else(|| {
            if cluster_scoped.contains(kind) {
                return Scope::Cluster;
            }
            kind.known_custom_scope().unwrap_or(Scope::Namespaced)
        })
    };
    let default: Option<Arc<str>> = default.map(Arc::from);
    let placed = |(mut object, phase, role): (Box<Object>, _, _)| {
        let scope = scope_of(&object);
        let namespace = object.key.namespace.take();
        let has_default_namespace = scope == Scope::Namespaced && namespace.is_none() && default.is_some();
        object.key.namespace = match scope {
            Scope::Cluster => None,
            Scope::Namespaced => namespace.or_else(|| default.clone()),
        };
        Placed {
            wave: object.wave,
            object,
            phase,
            role,
            scope,
            has_default_namespace,
        }
    };
    objects.into_iter().map(placed).collect()
}

/// Moves each Namespace and CRD that objects of earlier steps need before the first of them, as [`Role::Creator`].
///
/// Each has a separate ManifestWork, which exists only while an earlier object needs the Namespace or CRD. In the ManifestWork of the
/// earlier step, the Namespace or CRD would be lost when that object leaves Git: the agent would delete it, with all its contents, before
/// the ManifestWork of a later step has it.
fn creators_first(all: &mut [Placed]) {
    let mut namespaces: HashMap<Box<str>, (Phase, i32)> = HashMap::new();
    let mut kinds: HashMap<GroupKind, (Phase, i32)> = HashMap::new();
    for Placed {
        object, phase, wave, ..
    } in &*all
    {
        if order::is_namespace(object) {
            namespaces.insert(object.key.name.clone(), (*phase, *wave));
        } else if let Some(defined) = &object.defines {
            kinds.insert(defined.kind.clone(), (*phase, *wave));
        }
    }
    if namespaces.is_empty() && kinds.is_empty() {
        return;
    }
    for Placed {
        object, phase, wave, ..
    } in &*all
    {
        let when = (*phase, *wave);
        if let Some(first) = kinds.get_mut(&object.key.kind) {
            *first = when.min(*first);
        }
        let namespace = object.key.namespace.as_deref();
        if let Some(first) = namespace.and_then(|name| namespaces.get_mut(name)) {
            *first = when.min(*first);
        }
    }
    for placed in all {
        let object = &placed.object;
        let first = if order::is_namespace(object) {
            namespaces.get(&object.key.name)
        } else {
            object.defines.as_ref().and_then(|defined| kinds.get(&defined.kind))
        };
        if let Some(&(phase, wave)) = first.filter(|first| **first < (placed.phase, placed.wave)) {
            placed.phase = phase;
            placed.wave = wave - 1;
            placed.role = Role::Creator;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Parses objects from YAML and assigns phases and namespaces, without a default namespace, for the tests of later stages.
    pub(crate) fn placed(yaml: &[&str]) -> Vec<Placed> {
        let objects = yaml.iter().map(|yaml| Box::new(object::tests::object(yaml)));
        super::placed(objects.collect(), &[], None)
    }

    fn namespaces(yaml: &[&str], cluster_scoped: &[GroupKind]) -> Vec<Option<String>> {
        let objects = yaml.iter().map(|yaml| Box::new(object::tests::object(yaml))).collect();
        let placed = super::placed(objects, cluster_scoped, Some("shop"));
        assert!(!placed.iter().any(Placed::lacks_namespace));
        placed
            .into_iter()
            .map(|placed| placed.object.key.namespace.as_deref().map(String::from))
            .collect()
    }

    #[test]
    fn namespaced_objects_without_a_namespace_get_the_default() {
        assert_eq!(
            namespaces(
                &[
                    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
                    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: own}}",
                    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ''}}",
                    "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: a}}",
                ],
                &[]
            ),
            [
                Some("shop".to_owned()),
                Some("own".to_owned()),
                Some("shop".to_owned()),
                Some("shop".to_owned())
            ]
        );
    }

    #[test]
    fn cluster_scoped_objects_get_no_namespace() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tanks.example.com}, \
                   spec: {group: example.com, scope: Cluster, names: {kind: Tank, plural: tanks}}}";
        assert_eq!(
            namespaces(
                &[
                    crd,
                    "{apiVersion: example.com/v1, kind: Tank, metadata: {name: a}}",
                    "{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: stray}}",
                    "{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a, namespace: stray}}",
                    "{apiVersion: example.com/v1, kind: Pump, metadata: {name: a}}",
                ],
                &["Pump.example.com".parse().unwrap()]
            ),
            [None, None, None, None, None]
        );
    }

    #[test]
    fn crd_in_the_folder_cannot_change_built_in_scopes() {
        let lie = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                   spec: {group: rbac.authorization.k8s.io, scope: Namespaced, names: {kind: ClusterRole, plural: clusterroles}}}";
        let role =
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, namespace: shop}}";
        let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}";
        assert_eq!(
            namespaces(&[lie, role, config], &["ConfigMap".parse().unwrap()]),
            [None, None, Some("shop".to_owned())]
        );
    }

    #[test]
    fn without_a_default_lists_objects_that_need_a_namespace() {
        let placed = placed(&[
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        ]);
        let lacking: Vec<bool> = placed.iter().map(Placed::lacks_namespace).collect();
        assert_eq!(lacking, [false, true]);
    }
}
