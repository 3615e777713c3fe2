//! The cached objects of kinds without a model. Most belong to argocd-agent on the hub, or to the add-on that installs it on
//! managed clusters.

use super::store::{Index, Indexed, Store};
use super::{Cache, Cached};
use crate::model::{Kind, Object, Requester, TlsSecret};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use std::sync::Arc;

impl Indexed for Object {
    type Key = ObjectRef;
    /// The decisions that contain each cluster, or the CertificateSigningRequests of its agent.
    type Indices = Index<Box<str>, ObjectRef>;

    fn index(indices: &mut Self::Indices, object_ref: &ObjectRef, before: Option<&Self>, after: Option<&Self>) {
        for (object, is_added) in [(before, false), (after, true)] {
            for cluster in object.into_iter().flat_map(clusters_in) {
                indices.set(cluster.into(), object_ref.clone(), is_added);
            }
        }
    }
}

impl Cached for Object {
    fn parse(kind: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(kind, text).map(Some)
    }

    fn store(cache: &mut Cache, kind: Kind) -> &mut Store<Self> {
        cache.objects.entry(kind).or_default()
    }

    fn forget_computed(cache: &mut Cache, kind: Kind, object_ref: &ObjectRef, before: Option<&Self>) {
        match kind {
            // The image of the principal is part of the templates.
            Kind::Deployments if names::PRINCIPAL_DEPLOYMENTS.contains(&&*object_ref.name) => {
                cache.template_names.forget_all();
            }
            Kind::OwnDecisions => {
                let after = cache.objects.get(&kind).and_then(|objects| objects.get(object_ref));
                let clusters = before.into_iter().chain(after).flat_map(Self::decided_clusters);
                clusters.for_each(|cluster| cache.assignments.forget(cluster));
            }
            Kind::Placements => {
                cache.unsettle(object_ref.clone());
                cache.assignments.forget_all();
            }
            Kind::Namespace => cache.assignments.forget_all(),
            Kind::AddOns => cache.assignments.forget(&*object_ref.namespace),
            Kind::IssuedCertificates => {
                if let Some(cluster) = names::cluster_of_issued(&object_ref.name) {
                    cache.assignments.forget(cluster);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn clusters_in(object: &Object) -> impl Iterator<Item = &str> {
    let requester = object.request.as_ref().map(|request| &request.spec.requester);
    object.decided_clusters().chain(requester.and_then(Requester::cluster))
}

impl Indexed for TlsSecret {
    type Key = Arc<str>;
    type Indices = ();
}

impl Cached for TlsSecret {
    fn parse(_: Kind, name: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        let is_known = names::CERTIFICATES.contains(&&**name);
        is_known.then(|| Self::from_json(text)).transpose()
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.certificates
    }
}

impl Cache {
    pub fn object(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Object> {
        self.objects.get(&kind)?.get(object_ref)
    }

    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = (&ObjectRef, &Object)> {
        self.objects.get(&kind).into_iter().flat_map(Store::iter)
    }

    pub fn objects_in<'c>(
        &'c self,
        kind: Kind,
        namespace: &'c str,
    ) -> impl Iterator<Item = (&'c ObjectRef, &'c Object)> {
        let objects = self.objects.get(&kind).into_iter();
        objects.flat_map(move |objects| objects.in_namespace(&namespace.into()))
    }

    fn objects_by_cluster<'c>(
        &'c self,
        kind: Kind,
        cluster: &str,
    ) -> impl Iterator<Item = (&'c ObjectRef, &'c Object)> + use<'c> {
        let keys = self.objects.get(&kind).map(|objects| objects.indices().get(cluster));
        let keys = keys.into_iter().flatten();
        keys.filter_map(move |object_ref| Some((object_ref, self.object(kind, object_ref)?)))
    }

    /// Returns the GitOpsClusters with a decision, written by the controller, that contains a managed cluster.
    pub fn gitops_with_decision(&self, cluster: &str) -> impl Iterator<Item = ObjectRef> + use<'_> {
        let decisions = self.objects_by_cluster(Kind::OwnDecisions, cluster);
        decisions.filter_map(|(_, decision)| decision.owner())
    }

    /// Returns true if a decision that the controller wrote for a GitOpsCluster contains a managed cluster.
    pub fn has_written_decision(&self, gitops: &ObjectRef, cluster: &str) -> bool {
        self.gitops_with_decision(cluster).any(|owner| owner == *gitops)
    }

    pub fn requests_of(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> + use<'_> {
        let requests = self.objects_by_cluster(Kind::Requests, cluster);
        requests.map(|(object_ref, _)| object_ref)
    }

    pub fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.certificates.get(name)
    }

    /// Returns when the certificates of argocd-agent on the hub expire, by the names of their Secrets.
    pub fn certificates_until(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        let all = names::CERTIFICATES.into_iter();
        all.filter_map(|name| Some((name, self.certificate(name)?.certificates.first()?.not_after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Change;
    use crate::cache::Update;
    use serde_json::json;

    /// Returns an object with decisions for these clusters, as if the agent of the cluster had created it.
    fn object(kind: Kind, agent_of: &str, clusters: &[&str]) -> Object {
        let decisions: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster})).collect();
        let group = format!("system:open-cluster-management:{agent_of}");
        let object = json!({
            // The requester chooses the labels.
            "metadata": {"uid": "u", "resourceVersion": "1", "labels": {"open-cluster-management.io/cluster-name": "two"}},
            "spec": {"username": format!("{group}:agent"), "groups": [group]},
            "status": {"decisions": decisions},
        });
        Object::from_json(kind, &object.to_string()).expect("it is an object")
    }

    #[test]
    fn finds_objects_by_the_clusters_they_name() {
        let mut cache = Cache::new("argocd");
        let mut put = |kind, name, object| {
            cache.apply(Change::objects(
                kind,
                Update::from_option(ObjectRef::new("argocd", name), object),
            ));
            let by_cluster = |kind, cluster| {
                cache
                    .objects_by_cluster(kind, cluster)
                    .map(|(at, _)| at.name.to_string())
                    .collect()
            };
            let lists: [Vec<String>; 3] = [
                by_cluster(Kind::OwnDecisions, "one"),
                by_cluster(Kind::OwnDecisions, "two"),
                by_cluster(Kind::Requests, "one"),
            ];
            lists.map(|names| names.join(" "))
        };
        let decision = |clusters: &[&str]| Some(object(Kind::OwnDecisions, "", clusters));
        assert_eq!(put(Kind::OwnDecisions, "a", decision(&["one", "two"])), ["a", "a", ""]);
        assert_eq!(put(Kind::OwnDecisions, "b", decision(&["two"])), ["a", "a b", ""]);
        let request = Some(object(Kind::Requests, "one", &[]));
        assert_eq!(put(Kind::Requests, "r", request), ["a", "a b", "r"]);
        assert_eq!(put(Kind::OwnDecisions, "a", decision(&["two"])), ["", "a b", "r"]);
        assert_eq!(put(Kind::OwnDecisions, "b", None), ["", "a", "r"]);
        assert_eq!(put(Kind::Requests, "r", None), ["", "a", ""]);
        assert_eq!(put(Kind::OwnDecisions, "a", None), ["", "", ""]);
        assert!(
            cache
                .objects
                .values()
                .all(|objects| objects.indices().properties().next().is_none())
        );
    }
}
