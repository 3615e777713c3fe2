//! The cluster Secrets of Argo CD, and the clusters that they concern.

use crate::cluster_secrets::ClusterSecret;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The cluster Secrets in the namespace of Argo CD, by name.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    all: HashMap<Arc<str>, ClusterSecret>,
    /// The names of the Secrets that concern a cluster.
    concerning: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The names of the Secrets of each GitOpsCluster.
    owned: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl Secrets {
    /// Returns the Secrets that concern a cluster, with their names.
    pub(super) fn of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        let names = self.concerning.get(cluster).into_iter().flatten();
        names.filter_map(|name| Some((&**name, self.all.get(name)?)))
    }

    /// Returns the clusters that any Secret concerns.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.concerning.keys()
    }

    /// Returns the Secrets of a GitOpsCluster.
    pub(super) fn owned(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        let names = self.owned.get(owner).into_iter().flatten();
        names.filter_map(|name| self.all.get(name))
    }

    /// Returns the GitOpsCluster that owns a Secret.
    pub(super) fn owner(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.owner()
    }

    /// Stores or removes a Secret, and returns the clusters that it concerns.
    pub(super) fn put(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> BTreeSet<Arc<str>> {
        let before = self.all.remove(name);
        if before == secret {
            self.all.extend(before.map(|before| (Arc::clone(name), before)));
            return BTreeSet::new();
        }
        if let Some(owner) = before.as_ref().and_then(ClusterSecret::owner) {
            super::remove(&mut self.owned, owner, name);
        }
        if let Some(owner) = secret.as_ref().and_then(ClusterSecret::owner) {
            self.owned.entry(owner.into()).or_default().insert(Arc::clone(name));
        }
        let mut concerned = BTreeSet::new();
        for cluster in before.iter().flat_map(|before| before.concerns(name)) {
            super::remove(&mut self.concerning, cluster, name);
            concerned.insert(cluster.into());
        }
        if let Some(secret) = secret {
            for cluster in secret.concerns(name) {
                let cluster: Arc<str> = cluster.into();
                let names = self.concerning.entry(Arc::clone(&cluster)).or_default();
                names.insert(Arc::clone(name));
                concerned.insert(cluster);
            }
            self.all.insert(Arc::clone(name), secret);
        }
        concerned
    }

    /// Returns the cached Secrets that are not in the complete list.
    pub(super) fn missing(&self, all: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        super::missing(self.all.keys(), all)
    }
}
