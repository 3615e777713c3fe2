//! Lists that are the same for many, kept once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// The lists that are in use.
#[derive(Debug)]
pub(super) struct Interned<T> {
    lists: HashSet<Arc<[T]>>,
    /// How many there may be before those are looked for that nobody uses any more.
    most: usize,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            lists: HashSet::new(),
            most: LEAST,
        }
    }
}

/// How many there may always be.
const LEAST: usize = 64;

impl<T: Eq + Hash> Interned<T> {
    /// The list that is the same and in use, or else this one.
    pub(super) fn keep(&mut self, list: Arc<[T]>) -> Arc<[T]> {
        if let Some(known) = self.lists.get(&list) {
            return Arc::clone(known);
        }
        if self.lists.len() >= self.most {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.most = LEAST.max(self.lists.len().saturating_mul(2));
        }
        self.lists.insert(Arc::clone(&list));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_kept_once_and_no_longer_than_they_are_used() {
        let mut interned = Interned::default();
        let one = interned.keep([1, 2].into());
        assert!(Arc::ptr_eq(&one, &interned.keep([1, 2].into())));
        assert!(!Arc::ptr_eq(&one, &interned.keep([1].into())));
        for number in 0..10_000 {
            interned.keep([number, number].into());
        }
        assert!(interned.lists.len() <= LEAST, "{}", interned.lists.len());
        assert!(Arc::ptr_eq(&one, &interned.keep([1, 2].into())));
        let many: Vec<_> = (0..1_000).map(|number| interned.keep([number].into())).collect();
        assert!(
            many.iter()
                .all(|list| Arc::ptr_eq(list, &interned.keep(Arc::clone(list))))
        );
    }
}
