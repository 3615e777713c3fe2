//! Argo CD's cluster Secrets, and which clusters they concern.

use crate::cluster_secret::ClusterSecret;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The cluster Secrets in Argo CD's namespace, by their names.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    all: HashMap<Arc<str>, ClusterSecret>,
    /// The names of those that concern a cluster.
    concerning: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The names of those of each GitOpsCluster.
    owned: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

impl Secrets {
    /// Those that concern a cluster, by their names.
    pub(super) fn of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        let names = self.concerning.get(cluster).into_iter().flatten();
        names.filter_map(|name| Some((&**name, self.all.get(name)?)))
    }

    /// The clusters that any of them concerns.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.concerning.keys()
    }

    /// Those of a GitOpsCluster.
    pub(super) fn owned(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        let names = self.owned.get(owner).into_iter().flatten();
        names.filter_map(|name| self.all.get(name))
    }

    /// Whose GitOpsCluster's one is.
    pub(super) fn owner(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.owner()
    }

    /// One is so, or is gone: the clusters that concerns.
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

    /// Those that are not among all.
    pub(super) fn missing(&self, all: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        super::missing(self.all.keys(), all)
    }
}
