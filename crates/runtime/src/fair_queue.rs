//! A fair queue: tenants take turns, as do the clusters of one tenant; items of the same tenant and cluster are first in,
//! first out.
//!
//! A tenant with 100,000 items therefore delays another tenant's single item by one item, not by 100,000.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The tenant and the cluster that work is done for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The namespace of the object: namespaces divide the hub's tenants.
    pub namespace: Arc<str>,
    /// The cluster that the object is about, or the user who requests; all unknown clusters share one value.
    pub cluster: Arc<str>,
}

impl FlowKey {
    /// Returns the share of a namespace whose objects are not divided by clusters.
    pub fn of_namespace(namespace: &Arc<str>) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            cluster: Arc::clone(namespace),
        }
    }
}

/// Items in fair order.
#[derive(Debug)]
pub struct FairQueue<T> {
    tenants: HashMap<Arc<str>, Tenant<T>>,
    /// The tenants with waiting items, each once; the first is next.
    order: VecDeque<Arc<str>>,
    len: usize,
}

#[derive(Debug)]
struct Tenant<T> {
    clusters: HashMap<Arc<str>, VecDeque<T>>,
    /// The clusters with waiting items, each once; the first is next.
    order: VecDeque<Arc<str>>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            order: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Returns the number of items that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item at the end of its line.
    pub fn push(&mut self, flow: &FlowKey, item: T) {
        let tenant = self.tenants.entry(Arc::clone(&flow.namespace)).or_insert_with(|| {
            self.order.push_back(Arc::clone(&flow.namespace));
            Tenant {
                clusters: HashMap::new(),
                order: VecDeque::new(),
                len: 0,
            }
        });
        let line = tenant.clusters.entry(Arc::clone(&flow.cluster)).or_insert_with(|| {
            tenant.order.push_back(Arc::clone(&flow.cluster));
            VecDeque::new()
        });
        line.push_back(item);
        tenant.len = tenant.len.saturating_add(1);
        self.len = self.len.saturating_add(1);
    }

    /// Removes and returns the next item that both predicates accept: `may_tenant` decides by the namespace, `may_cluster` by
    /// both. Skipped tenants and clusters keep their items and the order.
    pub fn pop(
        &mut self,
        may_tenant: impl Fn(&Arc<str>) -> bool,
        may_cluster: impl Fn(&FlowKey) -> bool,
    ) -> Option<(FlowKey, T)> {
        for _ in 0..self.order.len() {
            let namespace = self.order.pop_front()?;
            let tenant = self.tenants.get_mut(&namespace)?;
            let taken = may_tenant(&namespace)
                .then(|| tenant.pop(&namespace, &may_cluster))
                .flatten();
            if tenant.len == 0 {
                self.tenants.remove(&namespace);
            } else {
                self.order.push_back(namespace);
            }
            if taken.is_some() {
                self.len = self.len.saturating_sub(1);
                return taken;
            }
        }
        None
    }

    /// Removes the last item of the tenant with most items, unless no tenant has more items than `namespace` would have with one
    /// more. Returns true if there is room now for an item of that tenant.
    pub fn make_room(&mut self, namespace: &Arc<str>) -> bool {
        let size = self.tenants.get(namespace).map_or(0, |tenant| tenant.len);
        let largest = self.tenants.iter_mut().max_by_key(|(_, tenant)| tenant.len);
        let Some((_, tenant)) = largest.filter(|(_, tenant)| tenant.len > size.saturating_add(1)) else {
            return false;
        };
        let Some(line) = tenant.clusters.values_mut().max_by_key(|line| line.len()) else {
            return false;
        };
        // The tenant has at least two items left, but maybe none in this line: `pop` skips an empty line.
        line.pop_back();
        tenant.len = tenant.len.saturating_sub(1);
        self.len = self.len.saturating_sub(1);
        true
    }
}

impl<T> Tenant<T> {
    fn pop(&mut self, namespace: &Arc<str>, may: &impl Fn(&FlowKey) -> bool) -> Option<(FlowKey, T)> {
        for _ in 0..self.order.len() {
            let flow = FlowKey {
                namespace: Arc::clone(namespace),
                cluster: self.order.pop_front()?,
            };
            let line = self.clusters.get_mut(&flow.cluster)?;
            let item = if may(&flow) { line.pop_front() } else { None };
            if line.is_empty() {
                self.clusters.remove(&flow.cluster);
            } else {
                self.order.push_back(Arc::clone(&flow.cluster));
            }
            if let Some(item) = item {
                self.len = self.len.saturating_sub(1);
                return Some((flow, item));
            }
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn flow(namespace: &str, cluster: &str) -> FlowKey {
        FlowKey {
            namespace: namespace.into(),
            cluster: cluster.into(),
        }
    }

    fn all(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop(|_| true, |_| true))
            .map(|(_, item)| item)
            .collect()
    }

    #[test]
    fn tenants_alternate_regardless_of_queue_length() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3"] {
            queue.push(&flow("a", "one"), item);
        }
        queue.push(&flow("b", "one"), "b1");
        queue.push(&flow("c", "one"), "c1");
        assert_eq!(queue.len(), 5);
        assert_eq!(all(&mut queue), ["a1", "b1", "c1", "a2", "a3"]);
        assert!(queue.is_empty() && queue.tenants.is_empty() && queue.order.is_empty());
    }

    #[test]
    fn clusters_of_a_tenant_alternate_within_its_turns() {
        let mut queue = FairQueue::default();
        for (cluster, item) in [("one", "a1"), ("one", "a2"), ("two", "a3"), ("three", "a4")] {
            queue.push(&flow("a", cluster), item);
        }
        queue.push(&flow("b", "one"), "b1");
        queue.push(&flow("b", "one"), "b2");
        assert_eq!(all(&mut queue), ["a1", "b1", "a3", "b2", "a4", "a2"]);
    }

    #[test]
    fn skipped_tenant_keeps_the_order_of_its_items() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2"] {
            queue.push(&flow("a", "one"), item);
            queue.push(&flow("a", "two"), if item == "a1" { "x1" } else { "x2" });
        }
        queue.push(&flow("b", "one"), "b1");
        let taken = queue.pop(|namespace| &**namespace != "a", |_| true);
        assert_eq!(taken.map(|(_, item)| item), Some("b1"));
        assert_eq!(queue.pop(|namespace| &**namespace != "a", |_| true), None);
        let taken = queue.pop(|_| true, |flow| &*flow.cluster == "two");
        assert_eq!(taken.map(|(_, item)| item), Some("x1"));
        assert_eq!(all(&mut queue), ["a1", "x2", "a2"]);
    }

    #[test]
    fn largest_tenant_makes_room_for_others() {
        let mut queue = FairQueue::default();
        for item in ["a1", "a2", "a3"] {
            queue.push(&flow("a", "one"), item);
        }
        assert!(!queue.make_room(&"a".into()), "its own items stay");
        assert!(queue.make_room(&"b".into()));
        queue.push(&flow("b", "one"), "b1");
        assert!(!queue.make_room(&"b".into()), "it has as many by then");
        assert_eq!(all(&mut queue), ["a1", "b1", "a2"]);
    }
}
