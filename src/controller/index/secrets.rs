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

    /// One is so, or is gone: the clusters that concerns.
    pub(super) fn put(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> BTreeSet<Arc<str>> {
        let before = self.all.remove(name);
        if before == secret {
            self.all.extend(before.map(|before| (Arc::clone(name), before)));
            return BTreeSet::new();
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

    /// These are all: the clusters that concerns.
    pub(super) fn only(&mut self, all: &HashSet<Arc<str>>) -> BTreeSet<Arc<str>> {
        let gone = super::missing(self.all.keys(), all).into_iter();
        gone.flat_map(|name| self.put(&name, None)).collect()
    }
}
