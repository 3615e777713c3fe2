//! Builds the MulticlusterApplicationSetReport of an ApplicationSet: the health and sync status of its Applications on their
//! clusters, in one object. Other pull integrations with Argo CD write the same object, and the console of Red Hat ACM reads it.
//!
//! ```text
//! lines ─▶ summary, bound ─▶ Report ─▶ an object, or a patch of the existing one
//! ```
//!
//! There is one entry for each Application on each cluster. The other integrations keep one entry per cluster; the console shows
//! an Application for each entry, named by the first two parts of its `app`. The summary still counts clusters, as its field
//! names imply.
//!
//! etcd limits an object to 1.5 MiB, so `bound` drops what does not fit and records that in an annotation. Nothing is written if
//! nothing changed: a fingerprint compares the existing report without memory of earlier writes.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod bound;
pub mod reconcile;
mod summary;

use hub_state::report::{Entry, ExistingReport, HOSTING, Resource, Statuses, TRUNCATED, fingerprint};
use ocm::application_set_report::{GROUP, KIND, VERSION};
use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

/// Returns the name of an Application in a report: `NAMESPACE/NAME`, followed by the one ManifestWork that carries it, if any.
///
/// ManifestWorks that Argo CD applies are not named. Only cleanup tools read that part of the text: they delete the named work
/// after the ApplicationSet is deleted, although its Applications may have been kept.
pub fn app(namespace: &str, name: &str, work: Option<(&str, &str)>) -> String {
    match work {
        Some((cluster, work)) => format!("{namespace}/{name}/{cluster}/{work}"),
        None => format!("{namespace}/{name}"),
    }
}

/// An Application on a cluster.
#[derive(Clone, Debug, Default)]
pub struct Line<'a> {
    /// The entry of a complete report. The cluster is empty if the Application is on none yet.
    pub entry: Entry<'a>,
    /// The resources of the Application on the cluster, in one or more lists.
    pub resources: Vec<&'a [Resource]>,
}

#[derive(Debug)]
pub struct Report<'a> {
    set: &'a ObjectRef,
    uid: &'a str,
    /// The description of what the report leaves out, or `None` if it is complete.
    cut: Option<String>,
    statuses: Statuses<'a>,
}

impl<'a> Report<'a> {
    /// Builds the report of a set; the result does not depend on the order of the lines.
    pub fn new(set: &'a ObjectRef, uid: &'a str, lines: &'a [Line<'a>]) -> Self {
        let mut entries: Vec<_> = lines.iter().map(|line| &line.entry).collect();
        entries.sort_unstable_by_key(|entry| (&entry.cluster, &entry.app));
        let (statuses, cut) = bound::fit(&all_resources(lines), &entries);
        Self {
            set,
            uid,
            cut,
            statuses,
        }
    }

    /// Returns the object to create if there is no report.
    pub fn object(&self) -> Value {
        let mut metadata = json!({
            "name": &*self.set.name,
            "namespace": &*self.set.namespace,
            "labels": {HOSTING: hosting(self.set)},
            "ownerReferences": [self.owner()],
        });
        if let Some(cut) = &self.cut {
            metadata["annotations"] = json!({TRUNCATED: cut});
        }
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "metadata": metadata,
            "statuses": self.statuses,
        })
    }

    /// Returns the merge patch from the existing report to this one, or `None` if they are equal.
    pub fn patch(&self, existing: &ExistingReport) -> Option<Value> {
        let is_owned = existing.is_owned_by(self.uid);
        let fingerprint = fingerprint(Some(&hosting(self.set)), self.cut.as_deref(), &self.statuses);
        if is_owned && existing.fingerprint == Some(fingerprint) {
            return None;
        }
        let mut metadata = json!({
            "resourceVersion": existing.version,
            "labels": {HOSTING: hosting(self.set)},
            "annotations": {TRUNCATED: self.cut},
        });
        if !is_owned {
            let others = existing.owners.iter().filter(|owner| !self.is_same_set(owner));
            let owners: Vec<_> = others.cloned().chain([self.owner()]).collect();
            metadata["ownerReferences"] = owners.into();
        }
        // A merge patch keeps fields that it does not name.
        let mut statuses = json!({"resources": null, "clusterConditions": null});
        if let (Value::Object(all), Value::Object(fields)) = (&mut statuses, json!(self.statuses)) {
            all.extend(fields);
        }
        Some(json!({"metadata": metadata, "statuses": statuses}))
    }

    /// Returns the owner reference that makes Kubernetes delete the report with its ApplicationSet.
    fn owner(&self) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet",
            "name": &*self.set.name,
            "uid": self.uid,
        })
    }

    /// Returns true if an owner is an ApplicationSet of this name, possibly an earlier one with another UID.
    fn is_same_set(&self, owner: &Value) -> bool {
        owner["kind"] == "ApplicationSet" && owner["name"] == *self.set.name
    }
}

/// Returns each object that is on some cluster, once. Many Applications of a set share the same list, which is read only once.
fn all_resources<'a>(lines: &[Line<'a>]) -> BTreeSet<&'a Resource> {
    let mut known = HashSet::new();
    let lists = lines.iter().flat_map(|line| line.resources.iter().copied());
    let new = lists.filter(|list| known.insert((list.as_ptr(), list.len())));
    new.flatten().collect()
}

/// Returns the first 63 characters of the set's namespace and name, without trailing characters that are invalid at the end of a
/// label.
fn hosting(set: &ObjectRef) -> String {
    const LABEL_MAX: usize = 63;
    let label: String = format!("{}.{}", set.namespace, set.name)
        .chars()
        .take(LABEL_MAX)
        .collect();
    label.trim_end_matches(['.', '-', '_']).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::LazyLock;
    use testing::merge;

    static SET: LazyLock<ObjectRef> = LazyLock::new(|| ObjectRef::new("argocd", "shop"));

    fn resource(api_version: &str, kind: &str, name: &str) -> Resource {
        Resource {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            namespace: "shop".into(),
        }
    }

    /// The entries of three Applications on two clusters and of one that is on no cluster, in the order of a report.
    const ENTRIES: &str = r#"[
        {"app": "argocd/shop-eu3", "healthStatus": "Unknown", "syncStatus": "Unknown"},
        {"cluster": "eu1", "app": "argocd/admin-eu1", "healthStatus": "Progressing", "syncStatus": "Synced"},
        {
            "cluster": "eu1",
            "app": "argocd/shop-eu1",
            "healthStatus": "Unknown",
            "syncStatus": "Unknown",
            "conditions": [{"type": "ManifestWorkApplyError", "message": "forbidden"}]
        },
        {
            "cluster": "eu2",
            "app": "argocd/shop-eu2/eu2/shop-eu2-1a2b3",
            "healthStatus": "Healthy",
            "syncStatus": "Synced",
            "operationStateStartedAt": "2026-06-01T12:00:00Z",
            "operationStatePhase": "Succeeded",
            "syncRevision": "abc"
        }
    ]"#;

    fn lines(resources: &[Resource]) -> Vec<Line<'_>> {
        let entries: Vec<Entry<'_>> = serde_json::from_str(ENTRIES).expect("entries");
        let lists = [
            vec![],
            vec![&resources[..1]],
            vec![resources],
            vec![&resources[..1], &resources[1..]],
        ];
        let lines = entries.into_iter().zip(lists);
        lines
            .map(|(entry, resources)| Line { entry, resources })
            .rev()
            .collect()
    }

    fn resources() -> [Resource; 3] {
        [
            resource("apps/v1", "Deployment", "web"),
            resource("v1", "Service", "web"),
            resource("v1", "ConfigMap", "settings"),
        ]
    }

    /// Returns the object as the API server stores it.
    fn stored(mut object: Value) -> Value {
        merge(&mut object, &json!({"metadata": {"uid": "r", "resourceVersion": "7"}}));
        object
    }

    /// Returns the object as the API server stores it after a patch.
    fn patched(object: &Value, patch: &Value) -> Value {
        let mut object = object.clone();
        merge(&mut object, patch);
        if object["metadata"]["annotations"] == json!({}) {
            merge(&mut object, &json!({"metadata": {"annotations": null}}));
        }
        object
    }

    fn existing(object: &Value) -> ExistingReport {
        ExistingReport::from_json(&object.to_string()).expect("a report")
    }

    #[test]
    fn lists_one_condition_per_application_and_cluster_sorted() {
        let resources = resources();
        let lines = lines(&resources);
        let report = Report::new(&SET, "u", &lines);
        let desired = json!({
            "apiVersion": "apps.open-cluster-management.io/v1alpha1",
            "kind": "MulticlusterApplicationSetReport",
            "metadata": {
                "name": "shop",
                "namespace": "argocd",
                "labels": {"apps.open-cluster-management.io/hosting-applicationset": "argocd.shop"},
                "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop", "uid": "u"}],
            },
            "statuses": {
                "clusterConditions": serde_json::from_str::<Value>(ENTRIES).expect("entries"),
                "resources": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": "shop"},
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"},
                    {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"},
                ],
                "summary": {
                    "clusters": "2", "healthy": "1", "notHealthy": "1", "inProgress": "0", "synced": "1", "notSynced": "1",
                },
            },
        });
        assert_eq!(report.object(), desired);
    }

    #[test]
    fn truncates_the_label_to_a_valid_label_value() {
        let label = |namespace, name| hosting(&ObjectRef::new(namespace, name));
        assert_eq!(label("openshift-gitops", "shop"), "openshift-gitops.shop");
        let long = "x".repeat(80);
        assert_eq!(label("argocd", &long), format!("argocd.{}", "x".repeat(56)));
        let (name, before) = (format!("{}-.-y", "x".repeat(53)), "x".repeat(53));
        assert_eq!(label("argocd", &name), format!("argocd.{before}"));
    }

    #[test]
    fn patches_an_outdated_report_once() {
        let resources = resources();
        let all = lines(&resources);
        let reports = [
            Report::new(&SET, "u", &all),
            Report::new(&SET, "u", &all[..1]),
            Report::new(&SET, "u", &[]),
        ];
        for from in &reports {
            for to in &reports {
                let mut object = stored(from.object());
                let patch = to.patch(&existing(&object));
                assert_eq!(patch.is_none(), std::ptr::eq(from, to));
                if let Some(patch) = patch {
                    assert_eq!(patch["metadata"]["resourceVersion"], "7", "only that form of it");
                    assert_eq!(patch["metadata"]["ownerReferences"], Value::Null, "it has its owner");
                    object = patched(&object, &patch);
                }
                assert_eq!(object, stored(to.object()));
                assert_eq!(to.patch(&existing(&object)), None, "once is enough");
            }
        }
        let mut others: Vec<_> = all.iter().rev().cloned().collect();
        others.rotate_left(1);
        let requeue_after = Report::new(&SET, "u", &others);
        assert_eq!(
            requeue_after.patch(&existing(&stored(reports[0].object()))),
            None,
            "whatever the order"
        );
    }

    #[test]
    fn restores_its_label_and_annotation_and_leaves_those_of_others() {
        let resources = resources();
        let lines = lines(&resources);
        let report = Report::new(&SET, "u", &lines);
        let object = stored(report.object());
        let changed = |metadata: Value| {
            let mut object = object.clone();
            merge(&mut object, &json!({"metadata": metadata}));
            object
        };
        for metadata in [
            json!({"labels": {HOSTING: "x"}}),
            json!({"annotations": {TRUNCATED: "something"}}),
        ] {
            let other = changed(metadata);
            let patch = report.patch(&existing(&other)).expect("a change");
            assert_eq!(patched(&other, &patch), object);
        }
        let foreign = changed(json!({"annotations": {"other": "note"}, "labels": {"team": "a"}}));
        assert_eq!(report.patch(&existing(&foreign)), None);
    }

    #[test]
    fn adopts_reports_of_other_owners() {
        let resources = resources();
        let lines = lines(&resources);
        let report = Report::new(&SET, "u", &lines);
        let with = |owners: Value| {
            let mut object = stored(report.object());
            merge(&mut object, &json!({"metadata": {"ownerReferences": owners}}));
            object
        };
        let owner = report.object()["metadata"]["ownerReferences"][0].clone();
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": "c"});
        let before =
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shop", "uid": "t"});
        for (owners, desired) in [
            (Value::Null, json!([owner])),
            (json!([other]), json!([other, owner])),
            (json!([before, other]), json!([other, owner])),
        ] {
            let patch = report
                .patch(&existing(&with(owners)))
                .expect("the set does not own the report");
            assert_eq!(patch["metadata"]["ownerReferences"], desired);
        }
        assert_eq!(report.patch(&existing(&with(json!([other, owner])))), None);
    }

    #[test]
    fn repairs_malformed_reports() {
        let report = Report::new(&SET, "u", &[]);
        for statuses in [json!("none"), json!({"clusterConditions": "none"}), Value::Null] {
            let mut object = stored(report.object());
            object["statuses"] = statuses;
            let patch = report.patch(&existing(&object)).expect("it says something else");
            assert_eq!(patched(&object, &patch), stored(report.object()));
        }
        assert!(ExistingReport::from_json("{}").is_err());
    }
}
