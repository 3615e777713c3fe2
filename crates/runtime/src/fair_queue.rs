//! A fair queue: tenants take turns, as do the clusters of one tenant; items of the same tenant and cluster are first in,
//! first out.
//!
//! A tenant with 100,000 items therefore delays another tenant's single item by one item, not by 100,000.

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

#[derive(Debug)]
pub struct FairQueue<T>(Turns<Turns<VecDeque<T>>>);

/// Lines that take turns: those of tenants, or of the clusters of a tenant.
#[derive(Debug)]
struct Turns<L> {
    lines: HashMap<Arc<str>, L>,
    /// The keys of the lines, each once; the first is next.
    order: VecDeque<Arc<str>>,
    len: usize,
}

impl<L> Default for Turns<L> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
            order: VecDeque::new(),
            len: 0,
        }
    }
}

impl<L: Default> Turns<L> {
    /// Returns the line with this key, to add one item.
    fn line(&mut self, key: &Arc<str>) -> &mut L {
        self.len = self.len.saturating_add(1);
        self.lines.entry(Arc::clone(key)).or_insert_with(|| {
            self.order.push_back(Arc::clone(key));
            L::default()
        })
    }

    /// Returns the first item that `pop` removes from a line, in the order of turns, and forgets lines that are empty.
    fn pop<T>(&mut self, is_empty: fn(&L) -> bool, mut pop: impl FnMut(&Arc<str>, &mut L) -> Option<T>) -> Option<T> {
        for _ in 0..self.order.len() {
            let key = self.order.pop_front()?;
            let line = self.lines.get_mut(&key)?;
            let item = pop(&key, line);
            if is_empty(line) {
                self.lines.remove(&key);
            } else {
                self.order.push_back(key);
            }
            if item.is_some() {
                self.len = self.len.saturating_sub(1);
                return item;
            }
        }
        None
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self(Turns::default())
    }
}

impl<T> FairQueue<T> {
    pub fn len(&self) -> usize {
        self.0.len
    }

    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    pub fn push(&mut self, flow: &FlowKey, item: T) {
        self.0.line(&flow.namespace).line(&flow.cluster).push_back(item);
    }

    /// Removes and returns the next item that both predicates accept: `may_tenant` decides by the namespace, `may_cluster` by
    /// both. Skipped tenants and clusters keep their items and the order.
    pub fn pop(
        &mut self,
        may_tenant: impl Fn(&Arc<str>) -> bool,
        may_cluster: impl Fn(&FlowKey) -> bool,
    ) -> Option<(FlowKey, T)> {
        let is_without_items = |tenant: &Turns<VecDeque<T>>| tenant.len == 0;
        self.0.pop(is_without_items, |namespace, tenant| {
            if !may_tenant(namespace) {
                return None;
            }
            tenant.pop(VecDeque::is_empty, |cluster, line| {
                let flow = FlowKey {
                    namespace: Arc::clone(namespace),
                    cluster: Arc::clone(cluster),
                };
                let item = if may_cluster(&flow) { line.pop_front() } else { None };
                item.map(|item| (flow, item))
            })
        })
    }

    /// Removes the last item of the tenant with most items, unless no tenant has more items than `namespace` would have with one
    /// more. Returns true if there is room now for an item of that tenant.
    pub fn make_room(&mut self, namespace: &Arc<str>) -> bool {
        let tenants = &mut self.0.lines;
        let size = tenants.get(namespace).map_or(0, |tenant| tenant.len);
        let largest = tenants.values_mut().max_by_key(|tenant| tenant.len);
        let Some(tenant) = largest.filter(|tenant| tenant.len > size.saturating_add(1)) else {
            return false;
        };
        let Some(line) = tenant.lines.values_mut().max_by_key(|line| line.len()) else {
            return false;
        };
        // The tenant has at least two items left, but maybe none in this line: `pop` skips an empty line.
        line.pop_back();
        tenant.len = tenant.len.saturating_sub(1);
        self.0.len = self.0.len.saturating_sub(1);
        true
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
        assert!(queue.is_empty() && queue.0.lines.is_empty() && queue.0.order.is_empty());
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
