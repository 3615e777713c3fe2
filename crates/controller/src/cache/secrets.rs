//! The cached cluster Secrets of Argo CD, by cluster and by GitOpsCluster.

use crate::cluster_secrets::ClusterSecret;
use crate::runtime::table::{Index, Table, Update};
use std::sync::Arc;

/// The cluster Secrets in the namespace of Argo CD, by name.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    all: Table<Arc<str>, ClusterSecret>,
    /// The names of the Secrets that concern a cluster.
    concerning: Index<Arc<str>, Arc<str>>,
    /// The names of the Secrets of each GitOpsCluster.
    owned: Index<Box<str>, Arc<str>>,
}

impl Secrets {
    /// Returns the Secrets that concern a cluster, with their names.
    pub(super) fn of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        let names = self.concerning.get(cluster);
        names.filter_map(|name| Some((&**name, self.all.get(name)?)))
    }

    /// Returns the clusters that any Secret concerns.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.concerning.properties()
    }

    /// Returns the Secrets of a GitOpsCluster.
    pub(super) fn owned(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        let names = self.owned.get(owner);
        names.filter_map(|name| self.all.get(name))
    }

    pub(super) fn get(&self, name: &str) -> Option<&ClusterSecret> {
        self.all.get(name)
    }

    /// Stores or removes a Secret. Returns the previous one, and true if anything changed.
    pub(super) fn put(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> (Option<ClusterSecret>, bool) {
        let before = self.all.put(name, secret);
        let secret = self.all.get(name);
        if before.as_ref() == secret {
            return (before, false);
        }
        if let Some(owner) = before.as_ref().and_then(ClusterSecret::owner) {
            self.owned.remove(owner, name);
        }
        if let Some(owner) = secret.and_then(ClusterSecret::owner) {
            self.owned.insert(owner.into(), Arc::clone(name));
        }
        for cluster in before.iter().flat_map(|before| before.concerns(name)) {
            self.concerning.remove(cluster, name);
        }
        for cluster in secret.into_iter().flat_map(|secret| secret.concerns(name)) {
            self.concerning.insert(cluster.into(), Arc::clone(name));
        }
        (before, true)
    }

    /// Divides an update into the changes of single Secrets.
    pub(super) fn changes(
        &self,
        update: Update<Arc<str>, ClusterSecret>,
    ) -> impl Iterator<Item = (Arc<str>, Option<ClusterSecret>)> + use<> {
        self.all.changes(update)
    }
}
