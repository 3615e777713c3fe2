//! The watches and writes that the parts of the controller of argocd-agent share.

use super::mappers;
use crate as agent;
use assignment::{GitOpsClusterRef, mappers as gitops};
use hub_state::{Cache, Controller, Kind, Object, Watch, no_requeue};
use ocm::argocd_agent::{self as names, AddonPlacement};
use primitives::object_ref::ObjectRef;
use runtime::action::Write;
use serde_json::{Value, json};
use std::time::Duration;

/// The controller of argocd-agent without the kind that a part of it reconciles.
pub const CONTROLLER: Controller = Controller {
    name: "argocd-agent",
    about: "argocd-agent as an OCM add-on on each cluster that a GitOpsCluster's Placement selects, and its certificates",
    kind: Kind::Clusters,
    watches: &[
        Watch::new(Kind::GitOpsClusters, gitops::gitops_cluster),
        Watch::new(Kind::Placements, gitops::placement),
        Watch::new(Kind::Decisions, gitops::decision),
        Watch::new(Kind::Clusters, gitops::cluster),
        Watch::new(Kind::Secrets, gitops::secret),
        Watch::new(Kind::Namespace, gitops::namespace),
        Watch::new(Kind::Config, gitops::tracking),
        Watch::new(Kind::Certificates, mappers::shared_objects),
        Watch::new(Kind::TokenKey, gitops::agents),
        Watch::new(Kind::Bundle, gitops::agents),
        Watch::new(Kind::Blocklist, gitops::agents),
        Watch::new(Kind::IssuedCertificates, mappers::issued),
        Watch::new(Kind::Services, mappers::shared_objects),
        Watch::new(Kind::Routes, mappers::shared_objects),
        Watch::new(Kind::Nodes, mappers::nodes),
        Watch::new(Kind::Deployments, mappers::shared_objects),
        Watch::new(Kind::Templates, mappers::owners),
        Watch::new(Kind::ManagementAddOn, mappers::management),
        Watch::new(Kind::AddOnConfigs, mappers::owners),
        Watch::new(Kind::AddOns, mappers::objects_of_cluster),
        Watch::new(Kind::OwnPlacements, mappers::owners),
        Watch::new(Kind::OwnDecisions, mappers::decisions),
        Watch::new(Kind::AgentWorks, mappers::objects_of_cluster),
        Watch::new(Kind::Requests, mappers::requests),
    ],
    min_write_interval: Duration::from_millis(500),
    reconcile: |_, _, _| None,
    requeue_after: no_requeue,
};

/// Returns those objects of these names in Argo CD's namespace that exist, with their names.
pub(crate) fn find_existing<'c, const N: usize>(
    cache: &'c Cache,
    kind: Kind,
    names: [&'static str; N],
) -> impl Iterator<Item = (&'static str, &'c Value)> {
    names.into_iter().filter_map(move |name| {
        let existing = cache.object(kind, &ObjectRef::new(cache.argocd(), name))?;
        Some((name, &existing.object))
    })
}

pub(super) fn management(cache: &Cache) -> Option<&Object> {
    cache.object(Kind::ManagementAddOn, &ObjectRef::new("", names::ADDON))
}

/// Returns the AddOnTemplate that the ClusterManagementAddOn has for a Placement of a GitOpsCluster now.
pub(super) fn installed_template(gitops: GitOpsClusterRef<'_>, placement: AddonPlacement) -> Option<&str> {
    agent::template_at(gitops.object_ref, placement, &management(gitops.cache)?.object)
}

/// Returns the write that creates an object or patches it to the desired state, if needed. Keeps the fields that others set.
pub(crate) fn ensure(cache: &Cache, kind: Kind, desired: Value) -> Option<Write> {
    let text = |key: &str| desired["metadata"][key].as_str().unwrap_or_default();
    let object_ref = ObjectRef::new(text("namespace"), text("name"));
    let resource = kind.resource();
    match cache.object(kind, &object_ref) {
        None => Some(Write::create(resource, object_ref, desired)),
        Some(existing) if existing.deleting => None,
        Some(existing) => {
            let mut desired = desired;
            if let Some(fields) = desired.as_object_mut() {
                // Lists of built-in kinds omit these fields in their items.
                fields.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
            }
            let mut body = agent::difference(&desired, &existing.object)?;
            body["metadata"]["resourceVersion"] = json!(existing.version);
            Some(Write::patch(resource, object_ref, body))
        }
    }
}

/// Returns the write that deletes an object of ours.
pub(crate) fn ensure_absent(kind: Kind, object_ref: &ObjectRef, existing: &Object) -> Option<Write> {
    (existing.is_ours() && !existing.deleting).then(|| {
        let (uid, version) = (&existing.uid, &existing.version);
        Write::delete(kind.resource(), object_ref.clone(), (uid, version))
    })
}

/// Returns true if a GitOpsCluster may have agents, and is not in deletion: it requests them, served or not, or has requested them
/// before its settings became invalid. It gets none before a controller has set a finalizer.
pub(super) fn may_have_agents(gitops: GitOpsClusterRef<'_>) -> bool {
    !gitops.object.deleting && gitops.object.spec.may_have_agent() && gitops.has_any_finalizer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_state::cache::Change;
    use hub_state::cache::Update;

    /// Otherwise the API server answers each attempt with an error, or a change of another client is overwritten.
    #[test]
    fn patches_only_the_version_that_was_read_and_nothing_that_is_being_deleted() {
        let ensured = |metadata: &Value| {
            let mut cache = Cache::new("argocd");
            let mut object =
                json!({"metadata": {"name": "work", "namespace": "eu1", "resourceVersion": "7"}, "spec": {"a": 2}});
            testing::merge(&mut object, &json!({"metadata": metadata}));
            let object = Object::from_json(Kind::AgentWorks, &object.to_string()).expect("it can be read");
            cache.apply(Change::objects(
                Kind::AgentWorks,
                Update::Set(ObjectRef::new("eu1", "work"), object),
            ));
            let desired = json!({"metadata": {"name": "work", "namespace": "eu1"}, "spec": {"a": 1}});
            ensure(&cache, Kind::AgentWorks, desired)
        };
        let being_deleted = json!({"deletionTimestamp": "2026-06-01T12:00:00Z", "finalizers": ["example.com/wait"]});
        assert_eq!(ensured(&being_deleted), None);
        let write = ensured(&json!({})).expect("a patch");
        let body = write.body().expect("a patch");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
    }
}
