//! Which works are an Application's.

use crate::generate::names::{ClusterName, WorkName};
use crate::tracking::{Claim, INSTALLATION_ID, Itself, Owner, TRACKING_ID, Tracking};
use crate::value::{Map, Value};
use crate::works::{GROUP, SET_KIND, Work};
use std::collections::{BTreeSet, HashSet};

/// Tells the works of an Application from others, by their metadata.
#[derive(Debug)]
pub struct Ownership {
    /// The name of its works.
    name: WorkName,
    /// The kind of its works.
    kind: &'static str,
    /// The namespaces on the hub in which its works are looked for by name.
    namespaces: Vec<String>,
    /// The namespaces and names of the works it would have.
    generated: HashSet<(String, String)>,
    /// Whether a work that is nobody's is its own by its name wherever it is.
    everywhere: bool,
    /// How Argo CD marks its works.
    tracking: Tracking,
}

/// What OCM writes on the works that it makes of a `ManifestWorkReplicaSet`: they are not Argo CD's.
pub const OF_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";

impl Ownership {
    /// The works called `name`, and the parts of it, on a hub: those in the namespaces of `clusters` and of the works that there
    /// would be, `works`, and all that Argo CD has marked.
    #[must_use]
    pub fn on_hub(name: &WorkName, clusters: &[ClusterName], works: &[Work<'_>]) -> Self {
        let place = |work: &Work<'_>| (work.namespace.clone(), work.name.clone());
        let generated: HashSet<_> = works.iter().map(place).collect();
        let of_works = generated.iter().map(|(namespace, _)| namespace.clone());
        let namespaces: BTreeSet<String> = clusters.iter().map(ToString::to_string).chain(of_works).collect();
        Self {
            name: name.clone(),
            kind: works.first().map_or("ManifestWork", Work::kind),
            namespaces: namespaces.into_iter().collect(),
            generated,
            everywhere: false,
            tracking: Tracking::unknown(),
        }
    }

    /// The same among the works of a file, which may be for any cluster.
    #[must_use]
    pub fn in_file(self) -> Self {
        Self {
            everywhere: true,
            ..self
        }
    }

    /// The same by what is known of Argo CD.
    #[must_use]
    pub fn tracked_by(self, tracking: Tracking) -> Self {
        Self { tracking, ..self }
    }

    /// The namespaces in which works of this kind are looked for by name.
    #[must_use]
    pub fn namespaces(&self, kind: &str) -> &[String] {
        if kind == self.kind { &self.namespaces } else { &[] }
    }

    /// Whether the work of this kind with this metadata is the Application's. One that is being deleted is not any more.
    #[must_use]
    pub fn owns(&self, kind: &str, metadata: &Map<'_>) -> bool {
        metadata.get("deletionTimestamp").is_none() && self.has(kind, metadata)
    }

    /// The same, and still when it is being deleted.
    #[must_use]
    pub fn has(&self, kind: &str, metadata: &Map<'_>) -> bool {
        let of = |field: &str, key: &str| metadata.get(field)?.as_map()?.get(key)?.as_str();
        if of("labels", OF_REPLICA_SET).is_some() {
            return false;
        }
        let text = |key| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        if self.generated.contains(&(namespace.to_owned(), name.to_owned())) {
            return true;
        }
        let claim = Claim {
            tracking_id: of("annotations", TRACKING_ID),
            installation_id: of("annotations", INSTALLATION_ID),
            label: of("labels", self.tracking.label()),
        };
        let itself = Itself {
            group: GROUP,
            kind,
            namespace,
            name,
        };
        // Argo CD calls an Application of another namespace than its own `NAMESPACE_NAME`, of which the name is made.
        let is_own = |application: &str| application.parse().as_ref() == Ok(&self.name);
        match self.tracking.owner(&claim, &itself) {
            Owner::Application(application) => is_own(application),
            Owner::OtherArgoCd => false,
            Owner::Perhaps(application) if is_own(application) => true,
            Owner::Perhaps(_) | Owner::Nobody => {
                let is_near = |it: &String| it == namespace;
                self.is_named(kind, name) && (self.everywhere || self.namespaces(kind).iter().any(is_near))
            }
        }
    }

    fn is_named(&self, kind: &str, name: &str) -> bool {
        if kind == SET_KIND {
            self.name.is_of_set(name)
        } else {
            self.name.is_of(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::INSTANCE;
    use crate::yaml;

    fn owns(ownership: &Ownership, kind: &str, metadata: &str) -> bool {
        let document = yaml::documents(metadata).next().expect("a document").expect("YAML");
        ownership.owns(kind, document.value.as_map().expect("a mapping"))
    }

    fn of(application: &str) -> Ownership {
        let name = application.parse().expect("a name");
        Ownership::on_hub(&name, &["eu1".parse().expect("a name")], &[])
    }

    fn tracked(namespace: &str, name: &str, id: &str) -> String {
        format!("{{name: {name}, namespace: {namespace}, annotations: {{{TRACKING_ID}: '{id}'}}}}")
    }

    #[test]
    fn near_its_targets_a_work_is_known_by_its_name() {
        let shop = of("shop");
        for (metadata, wanted) in [
            ("{name: shop, namespace: eu1}", true),
            ("{name: shop.part-wave5, namespace: eu1}", true),
            ("{name: shop2, namespace: eu1}", false),
            ("{name: shop.partial, namespace: eu1}", false),
            ("{name: shop, namespace: eu2}", false),
            ("{name: shop, namespace: eu1, deletionTimestamp: x}", false),
            (
                "{name: shop, namespace: eu1, labels: {work.open-cluster-management.io/manifestworkreplicaset: a.shop}}",
                false,
            ),
        ] {
            assert_eq!(owns(&shop, "ManifestWork", metadata), wanted, "{metadata}");
        }
        assert!(!owns(&shop, "ManifestWorkReplicaSet", "{name: shop, namespace: eu1}"));
        assert!(owns(
            &of("shop").in_file(),
            "ManifestWork",
            "{name: shop, namespace: eu2}"
        ));
    }

    #[test]
    fn elsewhere_it_is_known_by_argo_cds_mark() {
        let kind = "ManifestWork";
        let id = |application: &str, name: &str| {
            format!("{application}:work.open-cluster-management.io/ManifestWork:eu2/{name}")
        };
        let shop = of("shop");
        assert!(owns(&shop, kind, &tracked("eu2", "shop", &id("shop", "shop"))));
        assert!(!owns(&shop, kind, &tracked("eu2", "shop", &id("other", "shop"))));
        // A copy of a work, mark and all, is nobody's.
        assert!(!owns(&shop, kind, &tracked("eu2", "copy", &id("shop", "shop"))));
        assert!(!owns(&shop, kind, &tracked("eu3", "shop", &id("shop", "shop"))));
        let label = |instance: &str| format!("{{name: x, namespace: eu2, labels: {{{INSTANCE}: {instance}}}}}");
        assert!(owns(&shop, kind, &label("shop")));
        assert!(!owns(&shop, kind, &label("other")));
        // In a file as well, one of another Application is not taken for its own.
        let in_file = of("shop").in_file();
        assert!(!owns(&in_file, kind, &tracked("eu2", "shop", &id("other", "shop"))));
        // Of an Application outside Argo CD's namespace the work has another name than the mark.
        let team = of("team-a_shop");
        assert!(owns(
            &team,
            kind,
            &tracked("eu2", "anything", &id("team-a_shop", "anything"))
        ));
        assert!(!owns(&team, kind, &tracked("eu2", "anything", &id("shop", "anything"))));
    }

    #[test]
    fn what_is_known_of_argo_cd_decides() {
        let with = |key: &str, value: &'static str| {
            let tracking = Tracking::configured(|asked| (asked == key).then_some(value));
            of("shop").in_file().tracked_by(tracking)
        };
        let id = "shop:work.open-cluster-management.io/ManifestWork:eu1/shop";
        let of_west =
            format!("{{name: shop, namespace: eu1, annotations: {{{TRACKING_ID}: '{id}', {INSTALLATION_ID}: west}}}}");
        let kind = "ManifestWork";
        assert!(owns(&with("installationID", "west"), kind, &of_west));
        assert!(!owns(&with("installationID", "east"), kind, &of_west));
        assert!(!owns(&with("installationID", ""), kind, &of_west));
        assert!(owns(&of("shop").in_file(), kind, &of_west));

        let by_label = with("application.resourceTrackingMethod", "label");
        let label = |name: &str, instance: &str| {
            format!("{{name: {name}, namespace: eu1, labels: {{{INSTANCE}: {instance}}}}}")
        };
        assert!(owns(&by_label, kind, &label("x", "shop")));
        assert!(!owns(&by_label, kind, &label("shop", "other")));
        let by_annotation = with("application.resourceTrackingMethod", "annotation");
        assert!(!owns(&by_annotation, kind, &label("x", "shop")));
        assert!(owns(&by_annotation, kind, &label("shop", "other")));
    }
}
