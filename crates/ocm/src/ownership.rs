//! Decides which works belong to an Application.

use crate::names::{ClusterName, WorkName};
use crate::source_plugin::work_names;
use crate::tracking::{INSTALLATION_ID, ObjectIdentity, Owner, TRACKING_ID, Tracking, TrackingMarks};
use crate::work::{GROUP, KIND, SET_KIND, Work};
use manifest::value::{Map, Value};
use serde::Deserialize;
use std::collections::{BTreeSet, HashSet};

/// Identifies the works of an Application by their metadata.
#[derive(Debug)]
pub struct Ownership {
    name: WorkName,
    /// The kind of its works.
    kind: &'static str,
    /// The namespaces on the hub in which works are identified by name.
    namespaces: Vec<String>,
    /// The namespaces and names of the works that would be generated.
    generated: HashSet<(String, String)>,
    /// True if a work without tracking marks is identified by its name in any namespace.
    in_any_namespace: bool,
    /// Argo CD's tracking method.
    tracking: Tracking,
    /// The works with other names whose tracking marks are trusted; `None` for all. The agent of a cluster may write marks on its works,
    /// but can neither rename works nor change Argo CD's list.
    listed: Option<HashSet<ListedWork>>,
}

/// A work that Argo CD lists as an Application's: its kind, namespace and name.
pub type ListedWork = (String, String, String);

/// An object in Argo CD's list of an Application, which only Argo CD writes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListedResource {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub status: String,
    pub hook: bool,
    pub requires_pruning: bool,
}

impl ListedResource {
    /// Returns its kind, namespace and name.
    pub fn key(&self) -> ListedWork {
        (self.kind.clone(), self.namespace.clone(), self.name.clone())
    }

    /// Returns true if a sync would write or prune it. Hooks are not compared.
    pub fn is_unsynced(&self) -> bool {
        self.status != "Synced" && !self.hook
    }

    /// Returns true if it is a work of the Application, whose works have these names. A work that Argo CD would prune may only have the
    /// tracking mark, which the agent of a cluster may write. After a failed comparison these are all works; then the names decide.
    pub fn is_work(&self, names: &[WorkName]) -> bool {
        let is_named = |works: &WorkName| is_named(works, &self.kind, &self.namespace, &self.name);
        self.group == GROUP && (!self.requires_pruning || self.status == "Unknown" && names.iter().any(is_named))
    }
}

/// Returns the names of an Application's works: that of the Application, and those that its sources set in this `spec`.
pub fn own_names(name: &WorkName, spec: &serde_json::Value) -> Vec<WorkName> {
    work_names(spec).chain([name.clone()]).collect()
}

/// Returns the works in the status of an Application with works of this name.
pub fn listed_works(name: &WorkName, application: &serde_json::Value) -> HashSet<ListedWork> {
    let names = own_names(name, &application["spec"]);
    let resources = application["status"]["resources"].as_array().into_iter().flatten();
    let resources = resources.filter_map(|resource| ListedResource::deserialize(resource).ok());
    let works = resources.filter(|resource| resource.is_work(&names));
    works.map(|work| work.key()).collect()
}

/// The label with the name of the Placement of a `PlacementDecision`.
pub const OF_PLACEMENT: &str = "cluster.open-cluster-management.io/placement";

/// The label that OCM sets on the works that it creates from a `ManifestWorkReplicaSet`: Argo CD does not manage them.
pub const OF_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";

/// The label with the name of the Placement, which OCM sets on the works of a `ManifestWorkReplicaSet`.
pub const OF_SETS_PLACEMENT: &str = "work.open-cluster-management.io/placementname";

impl Ownership {
    /// Identifies the works called `name`, and their parts, on a hub: those in the namespaces of `clusters` and of `works`, which
    /// would be generated, and all with tracking marks of Argo CD.
    pub fn on_hub<'w, 'a: 'w>(
        name: &WorkName,
        clusters: &[ClusterName],
        works: impl IntoIterator<Item = &'w Work<'a>>,
    ) -> Self {
        let mut works = works.into_iter().peekable();
        let kind = works.peek().map_or(KIND, |work| work.kind());
        let key = |work: &Work<'_>| (work.namespace.clone(), work.name.clone());
        let generated: HashSet<_> = works.map(key).collect();
        let of_works = generated.iter().map(|(namespace, _)| namespace.clone());
        let namespaces: BTreeSet<String> = clusters.iter().map(ToString::to_string).chain(of_works).collect();
        Self {
            name: name.clone(),
            kind,
            namespaces: namespaces.into_iter().collect(),
            generated,
            in_any_namespace: false,
            tracking: Tracking::unknown(),
            listed: None,
        }
    }

    /// Identifies the works of an Application by Argo CD's tracking method and its list of them.
    pub fn of_listed(name: &WorkName, tracking: Tracking, listed: HashSet<ListedWork>) -> Self {
        Self {
            tracking,
            listed: Some(listed),
            ..Self::on_hub(name, &[], &[])
        }
    }

    /// Identifies works by name in any namespace, as needed for a file, which may contain works for any cluster.
    pub fn in_file(self) -> Self {
        Self {
            in_any_namespace: true,
            ..self
        }
    }

    /// Returns the namespaces in which works of this kind are identified by name.
    pub fn namespaces(&self, kind: &str) -> &[String] {
        if kind == self.kind { &self.namespaces } else { &[] }
    }

    /// Returns true if the work of this kind with this metadata belongs to the Application and is not being deleted.
    pub fn owns(&self, kind: &str, metadata: &Map<'_>) -> bool {
        metadata.get("deletionTimestamp").is_none() && self.has(kind, metadata)
    }

    /// Returns true if the work of this kind with this metadata belongs to the Application, even if it is being deleted.
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
        let marks = TrackingMarks {
            tracking_id: of("annotations", TRACKING_ID),
            installation_id: of("annotations", INSTALLATION_ID),
            label: of("labels", self.tracking.label()),
        };
        let identity = ObjectIdentity {
            group: GROUP,
            kind,
            namespace,
            name,
        };
        let is_own = |application: &str| application == self.name.application();
        match self.tracking.owner(&marks, &identity) {
            Owner::Application(application) | Owner::PossibleApplication(application) if is_own(application) => {
                // The marks do not distinguish the sources of an Application.
                is_named(&self.name, kind, namespace, name)
                    || !self.name.is_of_source() && self.is_listed(kind, namespace, name)
            }
            Owner::Application(_) | Owner::OtherArgoCd => false,
            Owner::PossibleApplication(_) | Owner::None => {
                let is_near = |text: &String| text == namespace;
                is_named(&self.name, kind, namespace, name)
                    && (self.in_any_namespace || self.namespaces(kind).iter().any(is_near))
            }
        }
    }

    fn is_listed(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let is_it = |work: &ListedWork| (&*work.0, &*work.1, &*work.2) == (kind, namespace, name);
        self.listed.as_ref().is_none_or(|listed| listed.iter().any(is_it))
    }
}

/// Returns true if a work has a name of the Application whose works have this name.
fn is_named(works: &WorkName, kind: &str, namespace: &str, name: &str) -> bool {
    if kind == SET_KIND {
        works.is_of_set(name, namespace, None)
    } else {
        works.is_of(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::INSTANCE;
    use manifest::yaml;

    fn owns(ownership: &Ownership, kind: &str, metadata: &str) -> bool {
        let document = yaml::documents(metadata).next().expect("a document").expect("YAML");
        ownership.owns(kind, document.value.as_map().expect("a mapping"))
    }

    /// Argo CD would prune all works after a failed comparison. A foreign work may have the tracking mark only.
    #[test]
    fn failed_comparison_leaves_works_with_names_of_the_application() {
        let resource = |name: &str, status: &str| {
            serde_json::json!({
                "group": GROUP, "kind": "ManifestWork", "namespace": "eu1", "name": name, "status": status, "requiresPruning": true,
            })
        };
        let plugin = serde_json::json!({"parameters": [{"name": "name", "string": "custom"}]});
        let application = |status: &str| {
            let resources = ["shop", "custom", "custom.part-wave5", "other"].map(|name| resource(name, status));
            serde_json::json!({"spec": {"source": {"plugin": plugin}}, "status": {"resources": resources}})
        };
        let names = |status: &str| {
            let works = listed_works(&"shop".parse().expect("a name"), &application(status));
            works.into_iter().map(|work| work.2).collect::<BTreeSet<_>>()
        };
        assert_eq!(
            names("Unknown").into_iter().collect::<Vec<_>>(),
            ["custom", "custom.part-wave5", "shop"]
        );
        assert!(names("OutOfSync").is_empty(), "removed from Git");
    }

    fn ownership_of(application: &str) -> Ownership {
        let name = application.parse().expect("a name");
        Ownership::on_hub(&name, &["eu1".parse().expect("a name")], &[])
    }

    fn tracked(namespace: &str, name: &str, id: &str) -> String {
        format!("{{name: {name}, namespace: {namespace}, annotations: {{{TRACKING_ID}: '{id}'}}}}")
    }

    #[test]
    fn owns_works_by_name_on_target_clusters() {
        let shop = ownership_of("shop");
        for (metadata, expected) in [
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
            assert_eq!(owns(&shop, "ManifestWork", metadata), expected, "{metadata}");
        }
        assert!(!owns(&shop, "ManifestWorkReplicaSet", "{name: shop, namespace: eu1}"));
        assert!(owns(
            &ownership_of("shop").in_file(),
            "ManifestWork",
            "{name: shop, namespace: eu2}"
        ));
    }

    #[test]
    fn owns_works_by_tracking_mark_on_other_clusters() {
        let kind = "ManifestWork";
        let id = |application: &str, name: &str| {
            format!("{application}:work.open-cluster-management.io/ManifestWork:eu2/{name}")
        };
        let shop = ownership_of("shop");
        assert!(owns(&shop, kind, &tracked("eu2", "shop", &id("shop", "shop"))));
        assert!(!owns(&shop, kind, &tracked("eu2", "shop", &id("other", "shop"))));
        let label = |instance: &str| format!("{{name: x, namespace: eu2, labels: {{{INSTANCE}: {instance}}}}}");
        assert!(owns(&shop, kind, &label("shop")));
        assert!(!owns(&shop, kind, &label("other")));
        // Works of other Applications in a file do not belong to this Application.
        let in_file = ownership_of("shop").in_file();
        assert!(!owns(&in_file, kind, &tracked("eu2", "shop", &id("other", "shop"))));
        // For an Application outside Argo CD's namespace, the names in work and mark differ.
        let team = ownership_of("team-a_shop");
        assert!(owns(
            &team,
            kind,
            &tracked("eu2", "anything", &id("team-a_shop", "anything"))
        ));
        assert!(!owns(&team, kind, &tracked("eu2", "anything", &id("shop", "anything"))));
    }

    #[test]
    fn owns_works_named_with_and_without_a_policy() {
        let shop = ownership_of("shop");
        let renamed: WorkName = "shop".parse().expect("a name");
        let renamed = renamed.under_policy();
        let policy = Ownership::on_hub(&renamed, &["eu1".parse().expect("a name")], &[]);
        for name in [
            renamed.to_string(),
            renamed.part("wave5"),
            "shop".to_owned(),
            "shop.part-wave5".to_owned(),
        ] {
            let metadata = format!("{{name: {name}, namespace: eu1}}");
            assert!(owns(&shop, "ManifestWork", &metadata), "{name}");
            assert!(owns(&policy, "ManifestWork", &metadata), "{name}");
            assert!(!owns(&ownership_of("shop2"), "ManifestWork", &metadata), "{name}");
            assert!(
                !owns(&ownership_of(&renamed.to_string()), "ManifestWork", &metadata),
                "{name}"
            );
        }
    }

    /// The agent of a cluster may write marks on its works.
    #[test]
    fn mark_on_another_name_counts_only_if_argo_cd_lists_the_work() {
        let kind = "ManifestWork";
        let id = |name: &str| format!("shop:work.open-cluster-management.io/ManifestWork:eu2/{name}");
        let label = format!("{{name: forged, namespace: eu2, labels: {{{INSTANCE}: shop}}}}");
        let listed = HashSet::from([(kind.to_owned(), "eu2".to_owned(), "renamed".to_owned())]);
        let mut shop = ownership_of("shop").in_file();
        shop.listed = Some(listed);
        for (name, expected) in [
            ("shop", true),
            ("shop.part-wave5", true),
            ("renamed", true),
            ("forged", false),
            ("shop-1a2b3", false),
        ] {
            assert_eq!(owns(&shop, kind, &tracked("eu2", name, &id(name))), expected, "{name}");
        }
        assert!(!owns(&shop, kind, &label));
        assert!(!owns(
            &shop,
            kind,
            &tracked(
                "eu3",
                "renamed",
                "shop:work.open-cluster-management.io/ManifestWork:eu3/renamed"
            )
        ));
        // `diff` shows the actions of Argo CD, which trusts the marks.
        assert!(owns(
            &ownership_of("shop"),
            kind,
            &tracked("eu2", "forged", &id("forged"))
        ));
    }

    /// The tests of `tracking` have the other settings.
    #[test]
    fn tracking_configuration_decides_ownership() {
        let with = |key: &str, value: &'static str| {
            let mut shop = ownership_of("shop").in_file();
            shop.tracking = Tracking::configured(|name| (name == key).then_some(value));
            shop
        };
        let id = "shop:work.open-cluster-management.io/ManifestWork:eu1/shop";
        let of_west =
            format!("{{name: shop, namespace: eu1, annotations: {{{TRACKING_ID}: '{id}', {INSTALLATION_ID}: west}}}}");
        assert!(owns(&with("installationID", "west"), "ManifestWork", &of_west));
        assert!(!owns(&with("installationID", "east"), "ManifestWork", &of_west));
        assert!(owns(&ownership_of("shop").in_file(), "ManifestWork", &of_west));
        let by_label = with("application.instanceLabelKey", "example.com/instance");
        let other = "{name: shop, namespace: eu1, labels: {example.com/instance: other}}";
        assert!(owns(&by_label, "ManifestWork", other), "the default is the annotation");
    }
}
