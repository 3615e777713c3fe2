//! The parts of argocd-agent on the hub, and of the add-on that brings it to managed clusters.

use crate::agent::requests;
use crate::controller::seen::{Object, Place, TlsSecret};
use crate::controller::watches::Kept;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// What there is of them.
#[derive(Debug, Default)]
pub(super) struct Agents {
    objects: BTreeMap<(Kept, Place), Object>,
    certificates: HashMap<Arc<str>, TlsSecret>,
    /// The decisions that name each cluster, and the requests for certificates that its agent has made.
    naming: HashMap<Box<str>, BTreeSet<(Kept, Place)>>,
}

impl Agents {
    pub(super) fn get(&self, kind: Kept, place: &Place) -> Option<&Object> {
        self.objects.get(&(kind, place.clone()))
    }

    /// All of a kind.
    pub(super) fn all(&self, kind: Kept) -> impl Iterator<Item = (&Place, &Object)> {
        let first = (kind, Place::new("", ""));
        let all = self.objects.range(first..);
        all.take_while(move |((other, _), _)| *other == kind)
            .map(|((_, place), object)| (place, object))
    }

    /// The decisions that name a cluster, or the requests for certificates that its agent has made.
    pub(super) fn naming(&self, kind: Kept, cluster: &str) -> impl Iterator<Item = (&Place, &Object)> + use<'_> {
        let all = self.naming.get(cluster).into_iter().flatten();
        let of_kind = all.filter(move |(other, _)| *other == kind);
        of_kind.filter_map(|key| Some((&key.1, self.objects.get(key)?)))
    }

    pub(super) fn certificate(&self, name: &str) -> Option<&TlsSecret> {
        self.certificates.get(name)
    }

    /// An object is so, or is gone: how it was, and whether that is news.
    pub(super) fn put(&mut self, kind: Kept, place: &Place, object: Option<Object>) -> (Option<Object>, bool) {
        let key = (kind, place.clone());
        let before = match object {
            Some(object) => self.objects.insert(key, object),
            None => self.objects.remove(&key),
        };
        if self.get(kind, place) == before.as_ref() {
            return (before, false);
        }
        for cluster in before.iter().flat_map(|it| clusters_in(kind, it)) {
            super::remove(&mut self.naming, cluster, &(kind, place.clone()));
        }
        let after = self.objects.get(&(kind, place.clone()));
        for cluster in after.into_iter().flat_map(|it| clusters_in(kind, it)) {
            let naming = self.naming.entry(cluster.into()).or_default();
            naming.insert((kind, place.clone()));
        }
        (before, true)
    }

    /// A Secret with certificates is so, or is gone: whether that is news.
    pub(super) fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> bool {
        let before = match secret {
            Some(secret) => self.certificates.insert(Arc::clone(name), secret),
            None => self.certificates.remove(name),
        };
        self.certificates.get(name) != before.as_ref()
    }

    /// Those that are not among all.
    pub(super) fn missing(&self, kind: Kept, all: &HashSet<Place>) -> Vec<Place> {
        let known = self.all(kind).map(|(place, _)| place);
        known.filter(|place| !all.contains(*place)).cloned().collect()
    }

    /// The Secrets with certificates that are not among all.
    pub(super) fn missing_certificates(&self, all: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        super::missing(self.certificates.keys(), all)
    }
}

/// The clusters by which one may be looked for.
pub(super) fn clusters_in(kind: Kept, it: &Object) -> Vec<&str> {
    match kind {
        Kept::Decisions => it.decided().collect(),
        Kept::Requests => requests::cluster_of(&it.object).into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns an object with decisions for these clusters, as though the agent of the cluster had made it.
    fn object(kind: Kept, agent_of: &str, clusters: &[&str]) -> Object {
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
    fn what_names_a_cluster_is_found_by_it_as_long_as_it_does() {
        let mut agents = Agents::default();
        let mut put = |kind, name, object| {
            agents.put(kind, &Place::new("argocd", name), object);
            let naming = |kind, cluster| {
                agents
                    .naming(kind, cluster)
                    .map(|(at, _)| at.name.to_string())
                    .collect()
            };
            let found: [Vec<String>; 3] = [
                naming(Kept::Decisions, "one"),
                naming(Kept::Decisions, "two"),
                naming(Kept::Requests, "one"),
            ];
            found.map(|names| names.join(" "))
        };
        let decision = |clusters: &[&str]| Some(object(Kept::Decisions, "", clusters));
        assert_eq!(put(Kept::Decisions, "a", decision(&["one", "two"])), ["a", "a", ""]);
        assert_eq!(put(Kept::Decisions, "b", decision(&["two"])), ["a", "a b", ""]);
        let request = Some(object(Kept::Requests, "one", &[]));
        assert_eq!(put(Kept::Requests, "r", request), ["a", "a b", "r"]);
        assert_eq!(put(Kept::Decisions, "a", decision(&["two"])), ["", "a b", "r"]);
        assert_eq!(put(Kept::Decisions, "b", None), ["", "a", "r"]);
        assert_eq!(put(Kept::Requests, "r", None), ["", "a", ""]);
        assert_eq!(put(Kept::Decisions, "a", None), ["", "", ""]);
        assert!(agents.naming.is_empty());
    }
}
