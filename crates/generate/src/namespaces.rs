//! Assigns namespaces to objects. For namespaced objects without one, Argo CD uses the destination namespace and kubectl the
//! current one; OCM's agent uses neither, and the cluster rejects the object.

use super::annotations::Phase;
use super::hooks::Role;
use super::object::Object;
use super::placed::Placed;
use manifest::kinds::{GroupKind, Scope};
use std::collections::HashMap;
use std::sync::Arc;

/// Sets the namespace of every namespaced object that has none to `default`, and removes it from cluster-scoped ones.
///
/// The scope of a kind is that of the built-in kind, else of a CRD among the objects, else of the setting, else of the custom kind
/// of a public operator. Any other custom kind counts as namespaced. If that is wrong, the cluster rejects the object.
pub(crate) fn in_namespaces(
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
            kind.known_custom().map_or(Scope::Namespaced, |known| known.scope)
        })
    };
    let default: Option<Arc<str>> = default.map(Arc::from);
    let placed = |(mut object, phase, role): (Box<Object>, _, _)| {
        let scope = scope_of(&object);
        let namespace = object.key.namespace.take();
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
        }
    };
    objects.into_iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::object;
    use crate::placed;

    fn placed(yaml: &[&str], cluster_scoped: &[GroupKind]) -> Vec<Option<String>> {
        let objects = yaml.iter().map(|yaml| Box::new(object(yaml))).collect();
        let placed = placed::placed(objects, cluster_scoped, Some("shop"));
        assert!(!placed.iter().any(Placed::lacks_namespace));
        placed
            .into_iter()
            .map(|placed| placed.object.key.namespace.as_deref().map(String::from))
            .collect()
    }

    #[test]
    fn namespaced_objects_without_a_namespace_get_the_default() {
        assert_eq!(
            placed(
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
            placed(
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
            placed(&[lie, role, config], &["ConfigMap".parse().unwrap()]),
            [None, None, Some("shop".to_owned())]
        );
    }

    #[test]
    fn without_a_default_lists_objects_that_need_a_namespace() {
        let placed = placed::tests::placed(&[
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        ]);
        let lacking: Vec<bool> = placed.iter().map(Placed::lacks_namespace).collect();
        assert_eq!(lacking, [false, true]);
    }
}
