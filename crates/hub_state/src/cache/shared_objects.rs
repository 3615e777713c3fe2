//! The objects that several works deliver to one managed cluster. Counts them, because a search through all works of a cluster
//! for each change would cost more than the changed work.

use super::interned::Interned;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The number of works with an object, itself included, that decide what a work shows.
const SHOWN: u32 = 3;

/// The number of works that deliver each object.
#[derive(Debug, Default)]
pub(super) struct SharedObjects {
    /// The lists of objects, which are the same for the works of an Application on many clusters.
    lists: Interned<Box<str>>,
    /// The number of works with an object, by the hash of the cluster and of the name of the object.
    counts: HashMap<u64, u32>,
}

impl SharedObjects {
    pub(super) fn keep(&mut self, list: &mut Arc<[Box<str>]>) {
        *list = self.lists.keep(std::mem::take(list));
    }

    /// Returns true if several works may deliver this object to a cluster.
    pub(super) fn is_shared(&self, cluster: &str, object: &str) -> bool {
        self.counts.get(&key(cluster, object)).is_some_and(|count| *count > 1)
    }

    /// Counts the objects of a changed work, and returns those for which the other works with them show something else now, sorted. Works
    /// show the first two others, so a further one changes nothing, however many there are.
    pub(super) fn update(&mut self, cluster: &str, before: &[Box<str>], after: &[Box<str>]) -> Vec<Box<str>> {
        let mut concerned = Vec::new();
        for object in before.iter().filter(|object| after.binary_search(object).is_err()) {
            let key = key(cluster, object);
            match self.counts.get_mut(&key) {
                Some(count) if *count > 1 => {
                    *count = count.saturating_sub(1);
                    if *count < SHOWN {
                        concerned.push(object.clone());
                    }
                }
                _ => drop(self.counts.remove(&key)),
            }
        }
        for object in after.iter().filter(|object| before.binary_search(object).is_err()) {
            let count = self.counts.entry(key(cluster, object)).or_default();
            *count = count.saturating_add(1);
            if *count > 1 && *count <= SHOWN {
                concerned.push(object.clone());
            }
        }
        concerned.sort_unstable();
        concerned
    }
}

/// Returns the objects that are in both sorted lists. Searches the longer one for those of the shorter one: one work of a cluster may have
/// thousands of objects, and the others a few each.
pub(super) fn find_common<'o>(one: &'o [Box<str>], other: &'o [Box<str>]) -> impl Iterator<Item = &'o Box<str>> {
    let (shorter, longer) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    shorter.iter().filter(|object| longer.binary_search(object).is_ok())
}

fn key(cluster: &str, object: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (cluster, object).hash(&mut hasher);
    hasher.finish()
}
