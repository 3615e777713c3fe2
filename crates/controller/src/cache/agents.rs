//! The cached objects of argocd-agent on the hub, and of the add-on that installs it on managed clusters.

use crate::argocd_agent::requests::Requester;
use crate::model::AgentResource;
use crate::model::{Object, TlsSecret};
use crate::runtime::table::{Index, Table, Update};
use ocm::object_ref::ObjectRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The cached objects of argocd-agent and of its add-on.
#[derive(Debug, Default)]
pub(super) struct Agents {
    objects: BTreeMap<AgentResource, Table<ObjectRef, Object>>,
    certificates: Table<Arc<str>, TlsSecret>,
    /// The decisions that contain each cluster, and the CertificateSigningRequests of its agent.
    by_cluster: Index<Box<str>, (AgentResource, ObjectRef)>,
}

impl Agents {
    pub(super) fn get(&self, kind: AgentResource, object_ref: &ObjectRef) -> Option<&Object> {
        self.objects.get(&kind)?.get(object_ref)
    }

    /// Returns all objects of a kind.
    pub(super) fn all(&self, kind: AgentResource) -> impl Iterator<Item = (&ObjectRef, &Object)> {
        self.objects.get(&kind).into_iter().flat_map(Table::iter)
    }

    /// Returns the decisions that contain a cluster, or the CertificateSigningRequests of its agent.
    pub(super) fn by_cluster(
        &self,
        kind: AgentResource,
        cluster: &str,
    ) -> impl Iterator<Item = (&ObjectRef, &Object)> + use<'_> {
        let all = self.by_cluster.get(cluster);
        let of_kind = all.filter(move |(other, _)| *other == kind);
        of_kind.filter_map(move |(_, object_ref)| Some((object_ref, self.get(kind, object_ref)?)))
    }

    pub(super) fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.certificates.get(name)
    }

    /// Stores or removes an object. Returns the previous object, and true if anything changed.
    pub(super) fn put(
        &mut self,
        kind: AgentResource,
        object_ref: &ObjectRef,
        object: Option<Object>,
    ) -> (Option<Object>, bool) {
        let table = self.objects.entry(kind).or_default();
        let before = table.put(object_ref, object);
        let after = table.get(object_ref);
        let is_same = match (&before, after) {
            (Some(before), Some(after)) => before.is_same(after),
            (before, after) => before.is_none() && after.is_none(),
        };
        if is_same {
            return (before, false);
        }
        for cluster in before.iter().flat_map(|it| clusters_in(kind, it)) {
            self.by_cluster.remove(cluster, &(kind, object_ref.clone()));
        }
        for cluster in after.into_iter().flat_map(|it| clusters_in(kind, it)) {
            self.by_cluster.insert(cluster.into(), (kind, object_ref.clone()));
        }
        (before, true)
    }

    /// Stores or removes a Secret with certificates. Returns true if anything changed.
    pub(super) fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> bool {
        let before = self.certificates.put(name, secret);
        self.certificates.get(name) != before.as_ref()
    }

    /// Divides an update of a kind into the changes of single objects.
    pub(super) fn changes(
        &mut self,
        kind: AgentResource,
        update: Update<ObjectRef, Object>,
    ) -> impl Iterator<Item = (ObjectRef, Option<Object>)> + use<> {
        self.objects.entry(kind).or_default().changes(update)
    }

    /// Divides an update into the changes of single Secrets with certificates.
    pub(super) fn certificate_changes(
        &self,
        update: Update<Arc<str>, TlsSecret>,
    ) -> impl Iterator<Item = (Arc<str>, Option<TlsSecret>)> + use<> {
        self.certificates.changes(update)
    }
}

/// Returns the clusters by which an object is indexed.
pub(super) fn clusters_in(kind: AgentResource, it: &Object) -> Vec<&str> {
    match kind {
        AgentResource::OwnDecisions => it.decided_clusters().collect(),
        AgentResource::Requests => {
            let requester = it.request().map(|request| &request.spec.requester);
            requester.and_then(Requester::cluster).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns an object with decisions for these clusters, as if the agent of the cluster had created it.
    fn object(kind: AgentResource, agent_of: &str, clusters: &[&str]) -> Object {
        let decisions: Vec<_> = clusters.iter().map(|it| json!({"clusterName": it})).collect();
        let group = format!("system:open-cluster-management:{agent_of}");
        let object = json!({
            // The requester chooses the labels.
            "metadata": {"uid": "u", "resourceVersion": "1", "labels": {"open-cluster-management.io/cluster-name": "two"}},
            "spec": {"username": format!("{group}:agent"), "groups": [group]},
            "status": {"decisions": decisions},
        });
        Object::read(kind, &object.to_string()).expect("it is an object")
    }

    #[test]
    fn finds_objects_by_the_clusters_they_name() {
        let mut agents = Agents::default();
        let mut put = |kind, name, object| {
            agents.put(kind, &ObjectRef::new("argocd", name), object);
            let by_cluster = |kind, cluster| {
                agents
                    .by_cluster(kind, cluster)
                    .map(|(at, _)| at.name.to_string())
                    .collect()
            };
            let found: [Vec<String>; 3] = [
                by_cluster(AgentResource::OwnDecisions, "one"),
                by_cluster(AgentResource::OwnDecisions, "two"),
                by_cluster(AgentResource::Requests, "one"),
            ];
            found.map(|names| names.join(" "))
        };
        let decision = |clusters: &[&str]| Some(object(AgentResource::OwnDecisions, "", clusters));
        assert_eq!(
            put(AgentResource::OwnDecisions, "a", decision(&["one", "two"])),
            ["a", "a", ""]
        );
        assert_eq!(
            put(AgentResource::OwnDecisions, "b", decision(&["two"])),
            ["a", "a b", ""]
        );
        let request = Some(object(AgentResource::Requests, "one", &[]));
        assert_eq!(put(AgentResource::Requests, "r", request), ["a", "a b", "r"]);
        assert_eq!(
            put(AgentResource::OwnDecisions, "a", decision(&["two"])),
            ["", "a b", "r"]
        );
        assert_eq!(put(AgentResource::OwnDecisions, "b", None), ["", "a", "r"]);
        assert_eq!(put(AgentResource::Requests, "r", None), ["", "a", ""]);
        assert_eq!(put(AgentResource::OwnDecisions, "a", None), ["", "", ""]);
        assert!(agents.by_cluster.is_empty());
    }
}
