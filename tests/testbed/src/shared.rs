//! A value that the tests of one program share.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The time for which an unused value is kept. The next test of the same module begins at once.
const KEPT: Duration = Duration::from_secs(60);

/// A value that tests share, such as a hub with its clusters. The first test that needs it starts it.
///
/// It is dropped after a minute without use, and a later test starts another: the processes of an idle hub with three clusters take
/// a third of a processor from the other tests.
#[derive(Debug)]
pub struct Shared<T> {
    /// Locked while the value is started.
    value: tokio::sync::Mutex<Option<Arc<T>>>,
    uses: Mutex<Uses>,
    kept: Duration,
}

#[derive(Debug)]
struct Uses {
    now: usize,
    /// The end of the last use.
    last: Option<Instant>,
}

impl<T: Send + Sync> Shared<T> {
    /// Creates it without a value.
    pub const fn new() -> Self {
        Self::kept_for(KEPT)
    }

    const fn kept_for(time: Duration) -> Self {
        Self {
            value: tokio::sync::Mutex::const_new(None),
            uses: Mutex::new(Uses { now: 0, last: None }),
            kept: time,
        }
    }

    /// Returns the value for the use by one test, after starting it if there is none.
    ///
    /// # Errors
    ///
    /// Returns the error of `start`.
    pub async fn borrow(&'static self, start: impl AsyncFnOnce() -> Result<T>) -> Result<Borrowed<T>> {
        self.borrow_if(async |_| true, start).await
    }

    /// Returns the value for the use by one test, after starting it if there is none, or if the last test has left one that is not
    /// usable, as a test that fails may do.
    ///
    /// # Errors
    ///
    /// Returns the error of `start`.
    pub async fn borrow_if(
        &'static self,
        is_usable: impl AsyncFnOnce(&T) -> bool,
        start: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<Borrowed<T>> {
        let mut shared = self.value.lock().await;
        if let Some(value) = &*shared
            && !is_usable(value).await
        {
            *shared = None;
        }
        let value = match &*shared {
            Some(value) => Arc::clone(value),
            None => Arc::clone(shared.insert(Arc::new(start().await?))),
        };
        self.uses().now += 1;
        Ok(Borrowed { value, owner: self })
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the value if no test has used it for the time for which it is kept.
    fn drop_unused(&self) {
        let mut shared = self.value.blocking_lock();
        let uses = self.uses();
        if uses.now == 0 && uses.last.is_some_and(|last| last.elapsed() >= self.kept) {
            *shared = None;
        }
    }
}

impl<T: Send + Sync> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The use of a [`Shared`] value by one test.
#[derive(Debug)]
pub struct Borrowed<T: Send + Sync + 'static> {
    value: Arc<T>,
    owner: &'static Shared<T>,
}

/// Gives access to the value.
impl<T: Send + Sync> Deref for Borrowed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Send + Sync> Drop for Borrowed<T> {
    fn drop(&mut self) {
        let owner = self.owner;
        let mut uses = owner.uses();
        uses.now -= 1;
        uses.last = Some(Instant::now());
        // A thread, because the runtime of the test ends with it.
        thread::spawn(move || {
            thread::sleep(owner.kept);
            owner.drop_unused();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Sends its number when it is dropped.
    struct Value(u32, Sender<u32>);

    impl Drop for Value {
        fn drop(&mut self) {
            self.1.send(self.0).unwrap();
        }
    }

    fn shared(time: Duration) -> (&'static Shared<Value>, Sender<u32>, Receiver<u32>) {
        let (sender, dropped) = channel();
        (Box::leak(Box::new(Shared::kept_for(time))), sender, dropped)
    }

    #[tokio::test]
    async fn is_started_once_while_it_is_used_and_again_after_it_was_dropped() {
        let (shared, sender, dropped) = shared(Duration::ZERO);
        let start = |number| {
            let value = Value(number, sender.clone());
            shared.borrow(async move || Ok(value))
        };
        let first = start(1).await.unwrap();
        let second = start(2).await.unwrap();
        assert_eq!((first.0, second.0), (1, 1));
        assert_eq!(dropped.recv(), Ok(2), "the value that was not needed");
        drop(first);
        assert_eq!(second.0, 1);
        assert!(dropped.try_recv().is_err(), "a test still uses it");
        drop(second);
        assert_eq!(dropped.recv(), Ok(1));
        assert_eq!(start(3).await.unwrap().0, 3);
    }

    #[tokio::test]
    async fn unusable_value_is_replaced() {
        let (shared, sender, dropped) = shared(Duration::from_secs(3600));
        let start = |number| {
            let value = Value(number, sender.clone());
            shared.borrow_if(async |value| value.0 != 1, async move || Ok(value))
        };
        let first = start(1).await.unwrap();
        assert_eq!(first.0, 1, "a value that was just started is not looked at");
        drop(first);
        assert_eq!(start(2).await.unwrap().0, 2);
        assert_eq!(dropped.recv(), Ok(1));
        assert_eq!(start(3).await.unwrap().0, 2);
    }
}
