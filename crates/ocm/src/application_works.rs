//! Selects the works that `status` shows for an Application.

use crate::names::WorkName;
use crate::ownership::{ListedWork, OF_REPLICA_SET, OF_SETS_PLACEMENT, Ownership};
use crate::tracking::Tracking;
use crate::work as works;
use manifest::value::Map;
use std::collections::{BTreeSet, HashSet};

/// An Application, identified by its name in Argo CD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The name in Argo CD, unique on the hub: `NAME`, or `NAMESPACE_NAME` outside Argo CD's own namespace.
    pub instance: String,
    /// The name of its works.
    pub works: WorkName,
    /// The namespace of Argo CD.
    pub argo_cd: String,
}

impl ApplicationName {
    /// Parses `NAME`, `NAMESPACE/NAME` or `NAMESPACE_NAME`; `argocd` is Argo CD's namespace.
    ///
    /// # Errors
    /// Returns one line if the text has another form.
    pub fn named(text: &str, argocd: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once(['/', '_']).unwrap_or((argocd, text));
        let instance = if namespace == argocd {
            name.to_owned()
        } else {
            format!("{namespace}_{name}")
        };
        // Otherwise it would be parsed as `NAMESPACE_NAME` later.
        let no_name = name.contains('_') || namespace.is_empty();
        match instance.parse().ok().filter(|_| !no_name) {
            Some(works) => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                instance,
                works,
                argo_cd: argocd.to_owned(),
            }),
            None => Err(format!(
                "{text:?} is not the name of an Application: give NAME, or NAMESPACE/NAME outside Argo CD's namespace"
            )),
        }
    }
}

/// Identifies the works of an Application by their metadata.
#[derive(Debug)]
pub struct ApplicationWorks {
    name: WorkName,
    ownership: Ownership,
    /// The ManifestWorkReplicaSets, as OCM's label names them on the works that it creates from them.
    sets: BTreeSet<String>,
}

impl ApplicationWorks {
    /// Selects the works of this Application in all namespaces; `tracking` is Argo CD's tracking method, `listed` are the works
    /// in the Application's resource list, and `sets` are the namespaces and names of its ManifestWorkReplicaSets.
    pub fn new(
        application: &ApplicationName,
        tracking: &Tracking,
        listed: &HashSet<ListedWork>,
        sets: &[(String, String)],
    ) -> Self {
        let label = |(namespace, name): &(String, String)| format!("{namespace}.{name}");
        Self {
            name: application.works.clone(),
            ownership: Ownership::of_listed(&application.works, tracking.clone(), listed.clone()).in_file(),
            sets: sets.iter().map(label).collect(),
        }
    }

    /// Returns true if the work of this kind with this metadata is shown.
    pub fn has(&self, kind: &str, metadata: &Map<'_>) -> bool {
        let label = |name| metadata.get("labels")?.as_map()?.get(name)?.as_str();
        match label(OF_REPLICA_SET) {
            // The user may lack access to the sets; their names identify the Application.
            Some(set) => {
                let (namespace, name) = set.split_once('.').unwrap_or_default();
                let is_named = || self.name.is_of_set(name, namespace, label(OF_SETS_PLACEMENT));
                kind == works::KIND && (self.sets.contains(set) || is_named())
            }
            None => self.ownership.has(kind, metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::yaml;

    #[test]
    fn parses_application_names_like_argo_cd() {
        let instance = |text: &str| ApplicationName::named(text, "argocd").map(|application| application.instance);
        for (text, expected) in [
            ("shop", "shop"),
            ("argocd/shop", "shop"),
            ("argocd_shop", "shop"),
            ("team/shop", "team_shop"),
            ("team_shop", "team_shop"),
        ] {
            assert_eq!(instance(text).as_deref(), Ok(expected));
        }
        for text in ["", "/shop", "team/", "a/b/c", "a_b_c", "argocd/a_b", "Shop", "../shop"] {
            let error = instance(text).expect_err(text);
            assert!(error.contains("is not the name of an Application"), "{error}");
        }
    }

    #[test]
    fn owns_works_of_its_replica_sets_and_works_being_deleted() {
        let application = ApplicationName::named("shop", "argocd").expect("a name");
        let set = application.works.set_part("", "fleet/eu", 60);
        let has = |sets: &[(String, String)], kind: &str, metadata: &str| {
            let document = yaml::documents(metadata).next().expect("a document").expect("YAML");
            ApplicationWorks::new(&application, &Tracking::unknown(), &HashSet::new(), sets)
                .has(kind, document.value.as_map().expect("a mapping"))
        };
        let of_set = |set: &str| format!("{{name: x, namespace: eu1, labels: {{{OF_REPLICA_SET}: {set}}}}}");
        let by_hand = [("fleet".to_owned(), "by-hand".to_owned())];
        assert!(has(&[], "ManifestWork", &of_set(&format!("fleet.{set}"))));
        assert!(has(&by_hand, "ManifestWork", &of_set("fleet.by-hand")));
        assert!(!has(&[], "ManifestWork", &of_set("fleet.by-hand")));
        assert!(!has(&[], "ManifestWork", &of_set("fleet.shop")));
        assert!(has(
            &[],
            "ManifestWork",
            "{name: shop, namespace: eu1, deletionTimestamp: x}"
        ));
        assert!(!has(&[], "ManifestWork", "{name: shops, namespace: eu1}"));
        assert!(has(
            &[],
            "ManifestWorkReplicaSet",
            &format!("{{name: {set}, namespace: fleet}}")
        ));
    }
}
