//! The cached cluster Secrets of Argo CD, by cluster and by GitOpsCluster.

use super::Cache;
use crate::cluster_secret::ClusterSecret;
use runtime::store::{Index, Indexed};
use std::sync::Arc;

/// The indices of cluster Secrets.
#[derive(Debug, Default)]
pub struct SecretIndices {
    /// The names of the Secrets that concern a cluster.
    concerning: Index<Arc<str>, Arc<str>>,
    /// The names of the Secrets of each GitOpsCluster.
    owned: Index<Box<str>, Arc<str>>,
}

impl Indexed for ClusterSecret {
    type Key = Arc<str>;
    type Indices = SecretIndices;

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }

    fn index(indices: &mut SecretIndices, name: &Arc<str>, before: Option<&Self>, after: Option<&Self>) {
        if let Some(owner) = before.and_then(Self::owner) {
            indices.owned.remove(owner, name);
        }
        if let Some(owner) = after.and_then(Self::owner) {
            indices.owned.insert(owner.into(), Arc::clone(name));
        }
        for cluster in before.into_iter().flat_map(|before| before.concerns(name)) {
            indices.concerning.remove(cluster, name);
        }
        for cluster in after.into_iter().flat_map(|after| after.concerns(name)) {
            indices.concerning.insert(cluster.into(), Arc::clone(name));
        }
    }
}

impl Cache {
    /// Returns the managed clusters that any cluster Secret concerns.
    pub fn clusters_with_secrets(&self) -> impl Iterator<Item = &Arc<str>> {
        self.secrets.indices().concerning.properties()
    }

    /// Returns the cluster Secrets of Argo CD for a managed cluster, with their names.
    pub fn secrets_of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        let names = self.secrets.indices().concerning.get(cluster);
        names.filter_map(|name| Some((&**name, self.secrets.get(name)?)))
    }

    /// Returns the cluster Secrets of a GitOpsCluster, named as `NAMESPACE/NAME`.
    pub fn secrets_owned_by(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        let names = self.secrets.indices().owned.get(owner);
        names.filter_map(|name| self.secrets.get(name))
    }

    /// Returns a cluster Secret of Argo CD by its name.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<&ClusterSecret> {
        self.secrets.get(name)
    }
}
