//! Resource names (plurals) of kinds, by which OCM's agent finds the configuration of an object. A manifest has only the kind.

use super::placed::Placed;
use manifest::kinds::{GroupKind, Scope};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The resource names (plurals) of kinds.
#[derive(Debug, Default)]
pub struct Plurals {
    names: HashMap<GroupKind, String>,
    /// The kinds whose CRD has a status.
    with_status: HashSet<GroupKind>,
}

impl Plurals {
    /// Collects plurals from `settings`, which take precedence, and from the CRDs among `objects`.
    pub fn new(objects: &[Placed], settings: &[(GroupKind, String)]) -> Self {
        let mut plurals = Self::default();
        for defined in objects.iter().filter_map(|placed| placed.object.defines.as_deref()) {
            // The API server refuses a CRD of a built-in kind.
            if let Some(plural) = &defined.plural
                && defined.kind.built_in().is_none()
            {
                plurals.names.insert(defined.kind.clone(), plural.to_string());
            }
            if defined.has_status {
                plurals.with_status.insert(defined.kind.clone());
            }
        }
        plurals.names.extend(settings.iter().cloned());
        plurals
    }

    /// Returns the plurals that a kind may have, the most likely first; one if it is known.
    pub(super) fn list_plurals(&self, kind: &GroupKind) -> Vec<Cow<'_, str>> {
        match self.names.get(kind) {
            Some(plural) => vec![plural.into()],
            None => kind.plurals(),
        }
    }

    /// Returns true if the CRD of a kind, among the objects, has a status.
    pub(super) fn has_status(&self, kind: &GroupKind) -> bool {
        self.with_status.contains(kind)
    }

    /// Returns a warning for each kind whose plural, or scope, is a guess.
    pub(super) fn guesses(&self, objects: &[Placed], cluster_scoped: &[GroupKind]) -> Vec<String> {
        let kinds = objects.iter().map(|placed| (&placed.object.key.kind, placed.scope));
        let kinds: HashMap<&GroupKind, Scope> = kinds.collect();
        let is_guess = |(kind, _): &(&GroupKind, Scope)| self.list_plurals(kind).len() > 1;
        let kinds: BTreeMap<&GroupKind, Scope> = kinds.into_iter().filter(is_guess).collect();
        let warning = |(kind, scope): (&GroupKind, Scope)| {
            let plural = kind.guessed_plural();
            let (assumed, otherwise) = if scope == Scope::Cluster || cluster_scoped.contains(kind) {
                ("", String::new())
            } else {
                (
                    "it is namespaced and ",
                    format!(", and cluster-scoped-kinds to {kind} if it is cluster-scoped"),
                )
            };
            format!(
                "{kind}: its CRD is not in the folder: assuming that {assumed}its resource name is {plural}: set resource-names to \
                 {kind}={plural}, or its other name{otherwise}"
            )
        };
        kinds.into_iter().map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed::tests::placed;

    #[test]
    fn folder_and_setting_win_over_the_table_of_public_kinds() {
        let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                   spec: {group: cert-manager.io, scope: Namespaced, names: {kind: Issuer, plural: folder}}}";
        let setting = |kind: &str, plural: &str| (kind.parse().expect("a kind"), plural.to_owned());
        let settings = [setting("Certificate.cert-manager.io", "setting")];
        let namespace = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                         spec: {group: '', scope: Namespaced, names: {kind: Namespace, plural: folder}}}";
        let plurals = Plurals::new(&placed(&[crd, namespace]), &settings);
        for (kind, expected) in [
            ("Certificate.cert-manager.io", &["setting"][..]),
            ("Issuer.cert-manager.io", &["folder"]),
            ("ClusterIssuer.cert-manager.io", &["clusterissuers"]),
            ("Redis.redis.redis.opstreelabs.in", &["redis"]),
            ("Ingress.networking.k8s.io", &["ingresses"]),
            ("Namespace", &["namespaces"]),
            ("Tank.example.com", &["tanks", "tank"]),
        ] {
            assert_eq!(plurals.list_plurals(&kind.parse().expect("a kind")), expected, "{kind}");
        }
    }

    #[test]
    fn each_guessed_kind_has_one_warning() {
        let objects = placed(&[
            "{apiVersion: example.com/v1, kind: Tank, metadata: {name: a, namespace: a}}",
            "{apiVersion: example.com/v2, kind: Tank, metadata: {name: b, namespace: a}}",
            "{apiVersion: example.com/v1, kind: Pump, metadata: {name: a, namespace: a}}",
            "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a, namespace: a}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}",
        ]);
        let kind = |text: &str| text.parse::<GroupKind>().expect("a kind");
        assert_eq!(
            Plurals::default().guesses(&objects, &[kind("Pump.example.com")]),
            [
                "Pump.example.com: its CRD is not in the folder: assuming that its resource name is pumps: set resource-names to \
                 Pump.example.com=pumps, or its other name",
                "Tank.example.com: its CRD is not in the folder: assuming that it is namespaced and its resource name is tanks: set \
                 resource-names to Tank.example.com=tanks, or its other name, and cluster-scoped-kinds to Tank.example.com if it is \
                 cluster-scoped",
            ]
        );
        let settings = [
            (kind("Pump.example.com"), "pumps".to_owned()),
            (kind("Tank.example.com"), "tank".to_owned()),
        ];
        assert_eq!(Plurals::new(&objects, &settings).guesses(&objects, &[]), [""; 0]);
    }
}
