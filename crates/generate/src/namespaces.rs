//! Assigns namespaces to objects. For namespaced objects without one, Argo CD uses the destination namespace and kubectl the
//! current one; OCM's agent uses neither, and the cluster rejects the object.

use super::object::Object;
use manifest::kinds::{GroupKind, Scope};
use std::collections::HashMap;
use std::sync::Arc;

/// Sets the namespace of every namespaced object, and removes it from cluster-scoped ones.
///
/// The scope of a kind is that of the built-in kind, else of a CRD among the objects, else of the setting. An unknown custom kind
/// counts as namespaced: the agent drops the namespace of a cluster-scoped object, but cannot add a missing one.
///
/// Returns the indexes of `objects` that need a namespace if `default` is `None`.
pub fn in_namespaces(objects: &mut [Object], cluster_scoped: &[GroupKind], default: Option<&str>) -> Vec<usize> {
    let defined: HashMap<GroupKind, Scope> = objects
        .iter()
        .filter_map(|object| object.defines.as_deref())
        .map(|defined| (defined.kind.clone(), defined.scope))
        .collect();
    let default: Option<Arc<str>> = default.map(Arc::from);
    let mut missing_namespace = Vec::new();
    for (at, object) in objects.iter_mut().enumerate() {
        let kind = &object.key.kind;
        let scope = object.scope.or_else(|| defined.get(kind).copied()).unwrap_or_else(|| {
            if cluster_scoped.contains(kind) {
                Scope::Cluster
            } else {
                Scope::Namespaced
            }
        });
        match (scope, &object.key.namespace) {
            (Scope::Cluster, _) => object.key.namespace = None,
            (Scope::Namespaced, Some(_)) => {}
            (Scope::Namespaced, None) => match &default {
                Some(default) => object.key.namespace = Some(Arc::clone(default)),
                None => missing_namespace.push(at),
            },
        }
    }
    missing_namespace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::object;

    fn placed(yaml: &[&str], cluster_scoped: &[GroupKind]) -> Vec<Option<String>> {
        let mut objects: Vec<Object> = yaml.iter().map(|yaml| object(yaml)).collect();
        assert!(in_namespaces(&mut objects, cluster_scoped, Some("shop")).is_empty());
        objects
            .into_iter()
            .map(|object| object.key.namespace.as_deref().map(String::from))
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
    fn cluster_scoped_objects_have_none() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tanks.example.com}, \
                   spec: {group: example.com, scope: Cluster, names: {kind: Tank, plural: tanks}}}";
        assert_eq!(
            placed(
                &[
                    crd,
                    "{apiVersion: example.com/v1, kind: Tank, metadata: {name: a}}",
                    "{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: stray}}",
                    "{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a}}",
                ],
                &["ClusterIssuer.cert-manager.io".parse().unwrap()]
            ),
            [None, None, None, None]
        );
    }

    #[test]
    fn kubernetes_own_kinds_are_what_they_are_whatever_the_folder_says() {
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
    fn without_a_default_the_homeless_are_told() {
        let mut objects = vec![
            object("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"),
            object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"),
        ];
        assert_eq!(in_namespaces(&mut objects, &[], None), [1]);
    }
}
