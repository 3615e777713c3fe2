//! The order of application, as in Argo CD: by phase and sync wave, then by kind, then by name; Namespaces and CRDs precede the
//! objects that need them. OCM's agents before v1.3 apply in the order of the ManifestWork.

use super::annotations::Phase;
use super::hooks::Role;
use super::object::Object;
use super::placed::Placed;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The largest absolute sync wave. It leaves room for the phases, which the hub distinguishes by wave.
pub(crate) const WAVE_MAX: i32 = 999_999;

/// Argo CD's order of kinds, by the kind's name only; all others come after these.
const KINDS: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Returns the rank of a kind in Argo CD's order.
pub(crate) fn rank(kind: &str) -> u8 {
    let position = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    u8::try_from(position).expect("there are few kinds")
}

/// Returns pairs of objects with the same key: the first and each later one. A hook that is applied again for PostDelete is no duplicate.
pub(crate) fn duplicates(objects: &[Placed]) -> Vec<(&Object, &Object)> {
    let mut first: HashMap<_, &Object> = HashMap::new();
    let mut pairs = Vec::new();
    for Placed { object, phase, .. } in objects {
        let has_other_phases = object
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.hooks.len() > 1);
        match first.entry((&object.key, *phase == Phase::PostDelete && has_other_phases)) {
            Entry::Occupied(earlier) => pairs.push((*earlier.get(), &**object)),
            Entry::Vacant(entry) => {
                entry.insert(object);
            }
        }
    }
    pairs
}

/// Sorts objects into the order of application; objects of one ManifestWork are adjacent. The result does not depend on the input
/// order of objects with different keys.
pub(crate) fn for_apply(objects: &mut [Placed]) {
    objects.sort_by(|one, other| compare_works(one, other).then_with(|| compare_within_work(one, other)));
}

/// Returns true if two objects belong in the same ManifestWork unless it is too large: see [`partition`](super::partition).
pub(crate) fn share_work(one: &Placed, other: &Placed) -> bool {
    compare_works(one, other).is_eq()
}

/// Orders objects of different ManifestWorks.
fn compare_works(one: &Placed, other: &Placed) -> Ordering {
    // First the kinds that every cluster has, then each other kind, then each run and creator.
    let class = |placed: &Placed| (placed.phase, placed.wave, placed.role, !placed.object.always_served);
    class(one).cmp(&class(other)).then_with(|| {
        let (key, others) = (&one.object.key, &other.object.key);
        if is_alone(one.role) {
            (&key.name, &key.namespace, &key.kind).cmp(&(&others.name, &others.namespace, &others.kind))
        } else if one.object.always_served {
            Ordering::Equal
        } else {
            key.kind.cmp(&others.kind)
        }
    })
}

/// Returns true if an object of the role has a separate ManifestWork.
fn is_alone(role: Role) -> bool {
    matches!(role, Role::Run | Role::Creator)
}

/// Orders objects within a ManifestWork.
fn compare_within_work(one: &Placed, other: &Placed) -> Ordering {
    let (one, other) = (&one.object, &other.object);
    one.rank
        .cmp(&other.rank)
        .then_with(|| one.key.name.cmp(&other.key.name))
        .then_with(|| one.key.namespace.cmp(&other.key.namespace))
        .then_with(|| one.key.kind.cmp(&other.key.kind))
}

pub(crate) fn is_namespace(object: &Object) -> bool {
    object.key.kind.is("", "Namespace")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed::tests::placed;

    fn sorted(yaml: &[&str]) -> Vec<String> {
        let mut objects = placed(yaml);
        for_apply(&mut objects);
        objects.iter().map(|placed| placed.object.key.to_string()).collect()
    }

    #[test]
    fn sorts_kinds_like_argo_cd_and_unknown_kinds_last() {
        let given = [
            "{apiVersion: example.com/v1, kind: Zebra, metadata: {name: a}}",
            "{apiVersion: example.com/v1, kind: Ant, metadata: {name: b}}",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}",
            "{apiVersion: v1, kind: Service, metadata: {name: web}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
        ];
        let expected = [
            "Namespace shop",
            "ConfigMap a",
            "ConfigMap b",
            "Service web",
            "Deployment.apps web",
            "Ant.example.com b",
            "Zebra.example.com a",
        ];
        assert_eq!(sorted(&given), expected);
        let mut reversed = given;
        reversed.reverse();
        assert_eq!(sorted(&reversed), expected);
    }

    #[test]
    fn sorts_waves_before_kinds_and_namespaces_first() {
        let wave = |wave: i64| format!("annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}");
        let early = format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, {}}}}}",
            wave(-1)
        );
        let late = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: late, {}}}}}",
            wave(7)
        );
        let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
        let other = "{apiVersion: v1, kind: Secret, metadata: {name: other}}";
        assert_eq!(
            sorted(&[&late, namespace, &early, other]),
            ["Namespace shop", "Service shop/web", "Secret other", "ConfigMap late"]
        );
    }

    #[test]
    fn sorts_a_crd_before_its_objects() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                   spec: {group: example.com, scope: Namespaced, names: {kind: Tank, plural: tanks}}}";
        let early = "{apiVersion: example.com/v1, kind: Tank, \
                     metadata: {name: a, annotations: {argocd.argoproj.io/sync-wave: '-3'}}}";
        let mut objects = placed(&[early, crd]);
        for_apply(&mut objects);
        assert_eq!(
            objects[0].object.key.to_string(),
            "CustomResourceDefinition.apiextensions.k8s.io x"
        );
        assert_eq!((objects[0].wave, objects[1].wave), (-4, -3));
    }

    #[test]
    fn objects_differing_only_in_version_are_duplicates() {
        let objects = placed(&[
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}",
            "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web}}",
            "{apiVersion: other/v1, kind: Deployment, metadata: {name: web}}",
        ]);
        assert_eq!(duplicates(&objects).len(), 1);
    }
}
