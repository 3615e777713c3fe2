//! An interner for lists: many objects share one copy of equal lists.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Interned<T> {
    lists: HashSet<Arc<[T]>>,
    /// The number of lists at which unused ones are removed.
    sweep_at: usize,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            lists: HashSet::new(),
            sweep_at: MIN_SWEEP_AT,
        }
    }
}

/// The minimum number of lists at which unused ones are removed.
const MIN_SWEEP_AT: usize = 64;

impl<T: Eq + Hash> Interned<T> {
    /// Returns the interned list that equals this one, or interns this one.
    pub(super) fn keep(&mut self, list: Arc<[T]>) -> Arc<[T]> {
        if let Some(known) = self.lists.get(&list) {
            return Arc::clone(known);
        }
        if self.lists.len() >= self.sweep_at {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.sweep_at = MIN_SWEEP_AT.max(self.lists.len().saturating_mul(2));
        }
        self.lists.insert(Arc::clone(&list));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interns_equal_lists_while_they_are_used() {
        let mut interned = Interned::default();
        let one = interned.keep([1, 2].into());
        assert!(Arc::ptr_eq(&one, &interned.keep([1, 2].into())));
        assert!(!Arc::ptr_eq(&one, &interned.keep([1].into())));
        for number in 0..10_000 {
            interned.keep([number, number].into());
        }
        assert!(interned.lists.len() <= MIN_SWEEP_AT, "{}", interned.lists.len());
        assert!(Arc::ptr_eq(&one, &interned.keep([1, 2].into())));
        let many: Vec<_> = (0..1_000).map(|number| interned.keep([number].into())).collect();
        assert!(
            many.iter()
                .all(|list| Arc::ptr_eq(list, &interned.keep(Arc::clone(list))))
        );
    }
}
