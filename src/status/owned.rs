//! Which works are shown of an Application.

use crate::diff::{ListedWork, OF_REPLICA_SET, Ownership};
use crate::generate::names::WorkName;
use crate::tracking::Tracking;
use crate::value::{Map, Value};
use crate::works;
use std::collections::{BTreeSet, HashSet};

/// An Application, by what Argo CD calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The namespace it is in.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// What Argo CD calls it among all of the hub: `NAME`, or `NAMESPACE_NAME` outside Argo CD's own namespace.
    pub instance: String,
    /// What its works are called.
    pub works: WorkName,
    /// The namespace of Argo CD.
    pub argo_cd: String,
}

impl Application {
    /// Reads `NAME`, `NAMESPACE/NAME` or `NAMESPACE_NAME`; `own` is Argo CD's namespace.
    ///
    /// # Errors
    /// With one plain line, when it is no such name.
    pub fn named(text: &str, own: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once(['/', '_']).unwrap_or((own, text));
        let instance = if namespace == own {
            name.to_owned()
        } else {
            format!("{namespace}_{name}")
        };
        // Before it is read as `NAMESPACE_NAME` again.
        let no_name = name.contains('_') || namespace.is_empty();
        match instance.parse().ok().filter(|_| !no_name) {
            Some(works) => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                instance,
                works,
                argo_cd: own.to_owned(),
            }),
            None => Err(format!(
                "{text:?} is not the name of an Application: give NAME, or NAMESPACE/NAME outside Argo CD's namespace"
            )),
        }
    }
}

/// Tells the works of an Application from others, by their metadata.
#[derive(Debug)]
pub struct Owned {
    name: WorkName,
    ownership: Ownership,
    /// Its ManifestWorkReplicaSets, as OCM calls them on the works that it makes of them.
    sets: BTreeSet<String>,
}

impl Owned {
    /// Those of this Application, wherever they are; `tracking` is how Argo CD marks them, `listed` is what Argo CD has as its works,
    /// and `sets` are the namespaces and names of its ManifestWorkReplicaSets.
    #[must_use]
    pub fn by(
        application: &Application,
        tracking: &Tracking,
        listed: &HashSet<ListedWork>,
        sets: &[(String, String)],
    ) -> Self {
        let label = |(namespace, name): &(String, String)| format!("{namespace}.{name}");
        Self {
            name: application.works.clone(),
            ownership: Ownership::on_hub(&application.works, &[], &[])
                .in_file()
                .tracked_by(tracking.clone())
                .believing(listed.clone()),
            sets: sets.iter().map(label).collect(),
        }
    }

    /// Whether the work of this kind with this metadata is shown.
    #[must_use]
    pub fn has(&self, kind: &str, metadata: &Map<'_>) -> bool {
        let labels = metadata.get("labels").and_then(Value::as_map);
        match labels.and_then(|labels| labels.get(OF_REPLICA_SET)?.as_str()) {
            // The sets may be where the user must not look, and their names say whose they are.
            Some(set) => {
                let (namespace, name) = set.split_once('.').unwrap_or_default();
                kind == works::KIND && (self.sets.contains(set) || self.name.is_of_set(name, namespace))
            }
            None => self.ownership.has(kind, metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn an_application_is_called_as_argo_cd_calls_it() {
        let instance = |text: &str| Application::named(text, "argocd").map(|application| application.instance);
        for (text, wanted) in [
            ("shop", "shop"),
            ("argocd/shop", "shop"),
            ("argocd_shop", "shop"),
            ("team/shop", "team_shop"),
            ("team_shop", "team_shop"),
        ] {
            assert_eq!(instance(text).as_deref(), Ok(wanted));
        }
        for text in ["", "/shop", "team/", "a/b/c", "a_b_c", "argocd/a_b", "Shop", "../shop"] {
            let error = instance(text).expect_err(text);
            assert!(error.contains("is not the name of an Application"), "{error}");
        }
    }

    #[test]
    fn works_of_its_sets_are_its_own_and_so_are_those_that_go() {
        let application = Application::named("shop", "argocd").expect("a name");
        let set = application.works.set_part("", "fleet", 60);
        let has = |sets: &[(String, String)], kind: &str, metadata: &str| {
            let document = yaml::documents(metadata).next().expect("a document").expect("YAML");
            Owned::by(&application, &Tracking::unknown(), &HashSet::new(), sets)
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
