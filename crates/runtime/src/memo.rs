//! Values that are computed from other state once, and kept until a part of that state changes.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Computed values by key. The owner of the state forgets the values whose inputs change.
#[derive(Debug)]
pub struct Memo<K, V>(RefCell<HashMap<K, Arc<V>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Eq + Hash, V> Memo<K, V> {
    /// Returns the kept value, or computes and keeps it. `compute` may read other values of this memo, but not this one.
    pub fn get<Q>(&self, key: &Q, compute: impl FnOnce() -> V) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + Eq + Hash + ?Sized,
    {
        let known = self.0.borrow().get(key).map(Arc::clone);
        known.unwrap_or_else(|| {
            let value = Arc::new(compute());
            self.0.borrow_mut().insert(key.to_owned(), Arc::clone(&value));
            value
        })
    }

    pub fn forget<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.get_mut().remove(key);
    }

    pub fn forget_all(&mut self) {
        self.0.get_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn computes_a_value_again_only_after_it_was_forgotten() {
        let mut memo = Memo::<String, usize>::default();
        let computed = Cell::new(0);
        let get = |memo: &Memo<String, usize>, key: &str| {
            *memo.get(key, || {
                computed.set(computed.get() + 1);
                key.len()
            })
        };
        assert_eq!([get(&memo, "eu1"), get(&memo, "eu1"), get(&memo, "europe")], [3, 3, 6]);
        assert_eq!(computed.get(), 2);
        memo.forget("eu1");
        assert_eq!([get(&memo, "eu1"), get(&memo, "europe")], [3, 6]);
        assert_eq!(computed.get(), 3);
        memo.forget_all();
        assert_eq!([get(&memo, "eu1"), get(&memo, "europe")], [3, 6]);
        assert_eq!(computed.get(), 5);
    }
}
