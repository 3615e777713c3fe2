//! The cached cluster Secrets of Argo CD, by cluster and by GitOpsCluster.

use super::store::{Index, Indexed, Store};
use super::{Cache, Cached};
use crate::cluster_secret::ClusterSecret;
use crate::model::Kind;
use jiff::Timestamp;
use std::sync::Arc;

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

    fn index(indices: &mut SecretIndices, name: &Arc<str>, before: Option<&Self>, after: Option<&Self>) {
        let [old, new] = [before, after].map(|secret| secret?.owner().map(Into::into));
        indices.owned.replace(name, old, new);
        for (secret, is_added) in [(before, false), (after, true)] {
            for cluster in secret.into_iter().flat_map(|secret| secret.concerns(name)) {
                indices.concerning.set(cluster.into(), Arc::clone(name), is_added);
            }
        }
    }
}

impl Cached for ClusterSecret {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.secrets
    }

    fn forget_computed(cache: &mut Cache, _: Kind, name: &Arc<str>, before: Option<&Self>) {
        for secret in before.into_iter().chain(cache.secrets.get(name)) {
            for cluster in secret.concerns(name) {
                cache.assignments.forget(cluster);
            }
        }
    }
}

impl Cache {
    pub fn clusters_with_secrets(&self) -> impl Iterator<Item = &Arc<str>> {
        self.secrets.indices().concerning.properties()
    }

    pub fn secrets_of(&self, cluster: &str) -> impl Iterator<Item = (&str, &ClusterSecret)> {
        let names = self.secrets.indices().concerning.get(cluster);
        names.filter_map(|name| Some((&**name, self.secrets.get(name)?)))
    }

    /// Returns the cluster Secrets of a GitOpsCluster, named as `NAMESPACE/NAME`.
    pub fn secrets_owned_by(&self, owner: &str) -> impl Iterator<Item = &ClusterSecret> + use<'_> {
        let names = self.secrets.indices().owned.get(owner);
        names.filter_map(|name| self.secrets.get(name))
    }

    pub fn secret(&self, name: &str) -> Option<&ClusterSecret> {
        self.secrets.get(name)
    }
}
