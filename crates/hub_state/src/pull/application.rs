//! Reads an Application of the hub.

use super::forwarded::{Forwarded, OperationRequest, RefreshRequest, Requests, written_at};
use super::mirrored_status::MirroredStatus;
use super::text::{group, hash, time};
use crate::annotations::{REFRESH, SKIP_RECONCILE};
use crate::json::{Written, annotation, at, check_depth, entry, items, own, text_at};
use jiff::Timestamp;
use manifest::value::{Map, Value as Borrowed};
use ocm::argocd_agent::LAST_UPDATED;
use ocm::boolean::is_true;
use ocm::pull_model as names;
use ocm::tracking::{INSTALLATION_ID, INSTANCE, TRACKING_ID};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of hash digits that distinguish works of one name: 40 bits.
pub const HASH_DIGITS: usize = 10;

/// An Application of the pull model. The cache holds many of them: every field is needed, and none is stored twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    /// The hash of namespace, name and UID in the name of its work. A comparison with many names computes it once.
    pub name_hash: Box<str>,
    pub version: Box<str>,
    /// The managed cluster that the Application names; `None` if it names no cluster.
    pub cluster: Option<Box<str>>,
    pub project: Box<str>,
    pub finalizers: Vec<Box<str>>,
    pub deleting: bool,
    /// True if argocd-agent's principal has copied the Application from a cluster, whose agent may have written all of it.
    pub is_of_agent: bool,
    pub requests: Requests,
    /// The ApplicationSet that owns the Application, in the same namespace.
    pub set: Option<Box<str>>,
    /// The present values of the status fields that the controller writes.
    pub current: MirroredStatus,
    /// The time of the last write of the state of the last operation.
    pub operation_state_written: Option<Timestamp>,
    /// The time of the last write of its `spec`, or of other fields by a client that wrote the `spec`.
    pub spec_written: Option<Timestamp>,
    /// The namespace of the Application on the managed cluster, from its annotation.
    pub cluster_namespace: Option<Box<str>>,
    /// The destination for the Argo CD of the managed cluster, from its annotation.
    pub destination: Option<Destination>,
    /// The number of sources; 0 for an Application with the single `source` field.
    pub sources: usize,
    /// The labels, annotations and `spec` to copy, as JSON.
    pub base: Box<str>,
}

/// The cluster to which the managed cluster's Argo CD deploys, if not its own. Argo CD accepts only one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Name(Box<str>),
    /// The address of the cluster's API server.
    Server(Box<str>),
}

impl Application {
    /// Reads an Application; returns `None` if it is not of the pull model. Fails if its values are too deep to be copied.
    ///
    /// Needs its `metadata.managedFields` as well, which contain the times of requests.
    pub fn from_json(object: &Borrowed<'_>) -> Result<Option<Self>, String> {
        if !entry(object, "labels", names::PULL).is_some_and(is_true) {
            return Ok(None);
        }
        check_depth(object)?;
        let needed = |path| own(object, path).unwrap_or_default();
        let annotated = |name| annotation(object, name).map(Box::from);
        let named = annotated(names::DESTINATION_NAME).map(Destination::Name);
        let finalizers = items(object, "/metadata/finalizers").iter();
        let [namespace, name, uid] = ["/metadata/namespace", "/metadata/name", "/metadata/uid"].map(needed);
        Ok(Some(Self {
            name_hash: hash(&[&*namespace, &*name, &*uid], HASH_DIGITS).into(),
            namespace,
            name,
            uid,
            version: needed("/metadata/resourceVersion"),
            cluster: annotated(names::CLUSTER),
            project: needed("/spec/project"),
            finalizers: finalizers.filter_map(Borrowed::as_str).map(Into::into).collect(),
            deleting: text_at(object, "/metadata/deletionTimestamp").is_some(),
            is_of_agent: annotation(object, LAST_UPDATED).is_some(),
            requests: Requests {
                operation: OperationRequest::of_hub(object),
                refresh: RefreshRequest::of_hub(object),
            },
            set: owning_set(items(object, "/metadata/ownerReferences")).map(Into::into),
            current: at(object, "/status").map(MirroredStatus::from_json).unwrap_or_default(),
            operation_state_written: written_at(object, &["f:status", "f:operationState"]).and_then(time),
            spec_written: written_at(object, &["f:spec"]).and_then(time),
            cluster_namespace: annotated(names::CLUSTER_NAMESPACE),
            destination: named.or_else(|| annotated(names::DESTINATION_SERVER).map(Destination::Server)),
            sources: items(object, "/spec/sources").len(),
            base: base(object).into(),
        }))
    }

    /// Returns the finalizers that Argo CD removes on deletion.
    pub fn argocd_finalizers(&self) -> impl Iterator<Item = &str> {
        self.finalizers
            .iter()
            .map(|finalizer| &**finalizer)
            .filter(|finalizer| names::is_argo_cds(finalizer))
    }

    /// Returns the name of its AppProject. As in Argo CD, an empty name is the default project.
    pub fn project_name(&self) -> &str {
        match &*self.project {
            "" => names::DEFAULT_PROJECT,
            name => name,
        }
    }

    pub fn spec(&self) -> Value {
        let mut base: Value = serde_json::from_str(&self.base).expect("it was written as JSON");
        base["spec"].take()
    }

    /// Returns the one merge patch of this resource version for all changes: removing the requests that the work carries, and the
    /// status from [`super::mirrored_status::patch`]. Returns `None` if nothing changes.
    pub fn patch(&self, forwarded: Forwarded, status: Option<Value>) -> Option<Value> {
        if forwarded == Forwarded::default() && status.is_none() {
            return None;
        }
        let mut patch = status.unwrap_or_else(|| json!({}));
        patch["metadata"] = json!({"resourceVersion": self.version});
        if forwarded.operation {
            patch["operation"] = Value::Null;
        }
        if forwarded.refresh {
            patch["metadata"]["annotations"] = json!({
                REFRESH: null, names::REFRESH_TIMESTAMP: null, names::HYDRATE: null, names::HYDRATE_TIMESTAMP: null,
            });
        }
        Some(patch)
    }

    /// Returns the merge patch of this resource version that removes Argo CD's finalizers after the deployed objects are deleted,
    /// because no other component on the hub removes them. Returns `None` if it has none.
    pub fn release(&self) -> Option<Value> {
        self.argocd_finalizers().next()?;
        let finalizers = self.finalizers.iter().map(|finalizer| &**finalizer);
        let others: Vec<_> = finalizers.filter(|finalizer| !names::is_argo_cds(finalizer)).collect();
        Some(json!({"metadata": {"resourceVersion": self.version, "finalizers": others}}))
    }
}

/// Returns the name of the ApplicationSet among the owners of an object. Versions and case do not matter, as in
/// argocd-pull-integration.
pub(crate) fn owning_set<'v>(owners: &'v [Borrowed<'_>]) -> Option<&'v str> {
    let is_set = |owner: &&Borrowed<'_>| {
        let group = group(text_at(owner, "/apiVersion").unwrap_or_default());
        let kind = text_at(owner, "/kind").unwrap_or_default();
        group.eq_ignore_ascii_case(names::GROUP) && kind.eq_ignore_ascii_case(names::SET_KIND)
    };
    text_at(owners.iter().find(is_set)?, "/name")
}

/// The fields that are copied in either dialect.
#[derive(Serialize)]
struct Base<'v, 't> {
    annotations: BTreeMap<&'v str, Written<'v, 't>>,
    labels: BTreeMap<&'v str, Written<'v, 't>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Written<'v, 't>>,
}

fn base(object: &Borrowed<'_>) -> String {
    let parent = annotation(object, TRACKING_ID).and_then(|id| id.split_once(':').map(|(parent, _)| parent));
    // The hub's Argo CD wrote the label if it tracks by both label and annotation. Otherwise any writer may have.
    let is_mark = |name: &str, value: Option<&str>| name == INSTANCE && parent.is_some() && value == parent;
    let is_label_copied = |name: &str, value: Option<&str>| {
        name != names::PULL && name != names::ARGO_CD_INSTANCE && !is_mark(name, value)
    };
    let base = Base {
        annotations: entries(object, "annotations", |name, _| is_copied(name)),
        labels: entries(object, "labels", is_label_copied),
        spec: at(object, "/spec").map(Written::whole),
    };
    serde_json::to_string(&base).expect("JSON is written as JSON")
}

fn entries<'v, 't>(
    object: &'v Borrowed<'t>,
    map: &str,
    is_copied: impl Fn(&str, Option<&str>) -> bool,
) -> BTreeMap<&'v str, Written<'v, 't>> {
    let map = at(object, "/metadata").and_then(|metadata| metadata.as_map()?.get(map)?.as_map());
    let entries = map.into_iter().flat_map(Map::iter);
    let copied = entries.filter(|(name, value)| is_copied(name, value.as_str()));
    copied.map(|(name, value)| (name, Written::whole(value))).collect()
}

/// Returns true if the managed cluster needs an annotation. Not copied are annotations for the hub, those of the hub's own Argo
/// CD, its notifications and `kubectl`, and requests, which are forwarded separately.
pub fn is_copied(annotation: &str) -> bool {
    let stays = [
        names::CLUSTER,
        names::CLUSTER_NAMESPACE,
        names::DESTINATION_NAME,
        names::DESTINATION_SERVER,
        names::HYDRATE,
        names::HYDRATE_TIMESTAMP,
        names::LAST_APPLIED,
        names::NOTIFIED,
        names::REFRESH_TIMESTAMP,
        INSTALLATION_ID,
        REFRESH,
        SKIP_RECONCILE,
        TRACKING_ID,
    ];
    !stays.contains(&annotation) && !annotation.starts_with(names::OWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, borrowed};
    use crate::testing::pull::{UID, annotate, application, object};

    #[test]
    fn label_selects_applications_for_the_pull_model() {
        for yes in ["true", "1", "t", "T", "True", "TRUE"] {
            let application = application(|object| object["metadata"]["labels"][names::PULL] = json!(yes));
            assert_eq!(&*application.name, "shop");
        }
        for no in [json!("yes"), json!("false"), json!(""), Value::Null] {
            let object = object(|object| object["metadata"]["labels"][names::PULL] = no.clone());
            assert!(Application::from_json(&borrowed(&object)).unwrap().is_none(), "{no}");
        }
        assert!(Application::from_json(&json::parse("{}").unwrap()).unwrap().is_none());
    }

    #[test]
    fn reads_metadata_and_destination_of_an_application() {
        let shop = application(|_| ());
        assert_eq!((&*shop.namespace, &*shop.uid, &*shop.version), ("argocd", UID, "7"));
        assert_eq!((shop.cluster.as_deref(), &*shop.project), (Some("eu1"), "default"));
        assert!(!shop.deleting && shop.set.is_none() && shop.sources == 0);
        let nowhere = application(|object| annotate(object, names::CLUSTER, ""));
        assert_eq!(nowhere.cluster, None);
        let going = application(|object| object["metadata"]["deletionTimestamp"] = json!("2026-06-01T12:00:00Z"));
        assert!(going.deleting);
    }

    #[test]
    fn recognizes_only_argo_cds_finalizers() {
        let shop = application(|object| {
            object["metadata"]["finalizers"] = json!([
                "resources-finalizer.argocd.argoproj.io",
                "resources-finalizer.argocd.argoproj.io/foreground",
                "resources-finalizer.argocd.argoproj.io/background",
                "post-delete-finalizer.argocd.argoproj.io",
                "post-delete-finalizer.argocd.argoproj.io/cleanup",
                "example.com/mine",
                "foregroundDeletion",
                "resources-finalizer.argocd.argoproj.io/other",
            ]);
        });
        assert_eq!(shop.argocd_finalizers().count(), 5);
        let others = [
            "example.com/mine",
            "foregroundDeletion",
            "resources-finalizer.argocd.argoproj.io/other",
        ];
        let patch = json!({"metadata": {"resourceVersion": "7", "finalizers": others}});
        assert_eq!(shop.release(), Some(patch));
        let without = application(|object| object["metadata"]["finalizers"] = json!(["example.com/mine"]));
        assert_eq!(without.release(), None);
    }

    #[test]
    fn combines_all_changes_in_one_patch_or_none() {
        let shop = application(|_| ());
        assert_eq!(shop.patch(Forwarded::default(), None), None);
        let both = Forwarded {
            operation: true,
            refresh: true,
        };
        let status = json!({"health": {"status": "Healthy"}});
        let patch = json!({
            "metadata": {"resourceVersion": "7", "annotations": {
                "argocd.argoproj.io/refresh": null, "argocd.argoproj.io/refresh-timestamp": null,
                "argocd.argoproj.io/hydrate": null, "argocd.argoproj.io/hydrate-timestamp": null,
            }},
            "operation": null,
            "status": status,
        });
        assert_eq!(shop.patch(both, Some(json!({"status": status}))), Some(patch));
        let status = json!({"metadata": {"resourceVersion": "7"}, "status": status});
        assert_eq!(
            shop.patch(Forwarded::default(), Some(json!({"status": status["status"]}))),
            Some(status)
        );
    }

    #[test]
    fn finds_the_owning_set_ignoring_case() {
        let set = |owners: Value| application(|object| object["metadata"]["ownerReferences"] = owners).set;
        let owner = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "name": "fleet", "uid": "x"});
        for (api, kind) in [
            ("argoproj.io/v1alpha1", "ApplicationSet"),
            ("ArgoProj.io/v1", "applicationset"),
        ] {
            let owners = json!([owner("v1", "ConfigMap"), owner(api, kind)]);
            assert_eq!(set(owners).as_deref(), Some("fleet"));
        }
        for (api, kind) in [
            ("argoproj.io/v1alpha1", "Application"),
            ("example.com/v1", "ApplicationSet"),
        ] {
            assert_eq!(set(json!([owner(api, kind)])), None);
        }
    }
}
