//! The order in which objects are applied, which is Argo CD's: by sync wave, then by kind, then by name, and nothing before
//! the namespace or the definition that it needs. OCM's agents before v1.3 apply in the order of the work.

use super::object::{Object, ObjectKey};
use crate::value::{Map, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Argo CD's order of kinds, which looks at the kind's name only; all others come after these.
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

/// The place of a kind in Argo CD's order.
#[must_use]
pub fn rank(kind: &str) -> u8 {
    let place = KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    u8::try_from(place).expect("there are few kinds")
}

/// The sync wave that an object's `metadata` names, as Argo CD has it: the annotation where it is a whole number, else
/// Helm's hook weight, else 0.
#[must_use]
pub fn wave(metadata: &Map<'_>) -> i64 {
    let Some(Value::Map(annotations)) = metadata.get("annotations") else {
        return 0;
    };
    let number = |name| match annotations.get(name) {
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    number("argocd.argoproj.io/sync-wave")
        .or_else(|| number("helm.sh/hook-weight"))
        .unwrap_or(0)
}

/// Pairs of objects with the same key, each in the order they were read: one of the two is too many.
#[must_use]
pub fn duplicates(objects: &[Object]) -> Vec<(&Object, &Object)> {
    let mut first: HashMap<&ObjectKey, &Object> = HashMap::with_capacity(objects.len());
    let mut pairs = Vec::new();
    for object in objects {
        match first.entry(&object.key) {
            Entry::Vacant(vacant) => {
                vacant.insert(object);
            }
            Entry::Occupied(earlier) => pairs.push((*earlier.get(), object)),
        }
    }
    pairs
}

/// Sorts objects for applying. Objects that differ in their keys come out in the same order whatever order they came in.
pub fn for_apply(objects: &mut Vec<Object>) {
    objects.sort_unstable_by(|one, other| {
        (one.wave, one.rank)
            .cmp(&(other.wave, other.rank))
            .then_with(|| one.key.name.cmp(&other.key.name))
            .then_with(|| one.key.namespace.cmp(&other.key.namespace))
            .then_with(|| one.key.kind.cmp(&other.key.kind))
    });
    creators_first(
        objects,
        |object| {
            let key = &object.key;
            (&*key.kind.kind == "Namespace" && key.kind.group.is_empty()).then(|| key.name.to_string())
        },
        |object| object.key.namespace.as_ref().map(ToString::to_string),
    );
    creators_first(
        objects,
        |object| object.defines.as_ref().map(|defined| defined.0.to_string()),
        |object| Some(object.key.kind.to_string()),
    );
}

/// Moves each object that creates something before the first one that uses it. They only stand the other way round when
/// waves or the names of kinds say so, so the work is done for those few.
fn creators_first(
    objects: &mut Vec<Object>,
    creates: impl Fn(&Object) -> Option<String>,
    uses: impl Fn(&Object) -> Option<String>,
) {
    let creators: HashMap<String, usize> = objects
        .iter()
        .enumerate()
        .filter_map(|(at, object)| Some((creates(object)?, at)))
        .collect();
    if creators.is_empty() {
        return;
    }
    let mut first_user: HashMap<usize, usize> = HashMap::new();
    for (at, object) in objects.iter().enumerate() {
        if let Some(&creator) = uses(object).and_then(|used| creators.get(&used))
            && at < creator
        {
            first_user.entry(creator).or_insert(at);
        }
    }
    if first_user.is_empty() {
        return;
    }
    // Every object keeps its place but those creators, which go right before their first user.
    let mut moved: Vec<(usize, usize)> = first_user.iter().map(|(&creator, &user)| (user, creator)).collect();
    moved.sort_unstable();
    let mut moved = moved.into_iter().peekable();
    let mut taken: Vec<Option<Object>> = objects.drain(..).map(Some).collect();
    for at in 0..taken.len() {
        while let Some((_, creator)) = moved.next_if(|&(user, _)| user == at) {
            objects.extend(taken[creator].take());
        }
        objects.extend(taken[at].take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::object::tests::object;

    fn sorted(yaml: &[&str]) -> Vec<String> {
        let mut objects: Vec<Object> = yaml.iter().map(|yaml| object(yaml)).collect();
        for_apply(&mut objects);
        objects.iter().map(|object| object.key.to_string()).collect()
    }

    #[test]
    fn kinds_come_in_argo_cds_order_and_others_last_by_name() {
        let given = [
            "{apiVersion: example.com/v1, kind: Zebra, metadata: {name: a}}",
            "{apiVersion: example.com/v1, kind: Ant, metadata: {name: b}}",
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}",
            "{apiVersion: v1, kind: Service, metadata: {name: web}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
        ];
        let wanted = [
            "Namespace shop",
            "ConfigMap a",
            "ConfigMap b",
            "Service web",
            "Deployment.apps web",
            "Zebra.example.com a",
            "Ant.example.com b",
        ];
        assert_eq!(sorted(&given), wanted);
        let mut reversed = given;
        reversed.reverse();
        assert_eq!(sorted(&reversed), wanted);
    }

    #[test]
    fn waves_come_before_kinds_but_namespaces_before_their_objects() {
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
    fn a_definition_comes_before_its_objects_even_when_their_kind_ranks_first() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                   spec: {group: example.com, scope: Namespaced, names: {kind: NetworkPolicy, plural: networkpolicies}}}";
        let custom = "{apiVersion: example.com/v1, kind: NetworkPolicy, metadata: {name: a}}";
        assert_eq!(
            sorted(&[custom, crd]),
            [
                "CustomResourceDefinition.apiextensions.k8s.io x",
                "NetworkPolicy.example.com a"
            ]
        );
    }

    #[test]
    fn the_version_does_not_tell_objects_apart() {
        let objects = [
            object("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"),
            object("{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web}}"),
            object("{apiVersion: other/v1, kind: Deployment, metadata: {name: web}}"),
        ];
        assert_eq!(duplicates(&objects).len(), 1);
    }
}
