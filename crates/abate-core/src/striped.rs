//! One value that many threads hold at once, without fighting over the count of its holders.
//!
//! A reference count is written twice by each call, and a cache line that several cores write is
//! fetched from core to core each time. Here each thread counts on a line that it shares with few others.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// In how many stripes it is counted: enough for eight cores, and a kilobyte.
#[cfg(not(all(test, loom)))]
pub(crate) const STRIPES: usize = 8;
#[cfg(all(test, loom))]
pub(crate) const STRIPES: usize = 1;

/// The number of the stripe of this thread.
#[inline]
pub(crate) fn stripe() -> usize {
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(STRIPES) };
    }
    STRIPE.with(|stripe| match stripe.get() {
        STRIPES => {
            static THREADS: AtomicUsize = AtomicUsize::new(0);
            // Relaxed: a number, and no matter if two threads have the same.
            let next = THREADS.fetch_add(1, Relaxed) % STRIPES;
            stripe.set(next);
            next
        }
        own => own,
    })
}

/// Alone on its cache line, and on the one that is fetched with it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A shared value; clones share it.
///
/// # Examples
///
/// ```
/// use abate_core::striped::Striped;
///
/// let shared = Striped::new(String::from("of all threads"));
/// let held = shared.hold();
/// drop(shared);
/// assert_eq!(held.as_str(), "of all threads");
/// ```
pub struct Striped<T>(Arc<[Stripe<T>; STRIPES]>);

/// A [`Striped`] value that is held.
pub struct Stripe<T>(Arc<Padded<Arc<T>>>);

impl<T> Striped<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        let value = Arc::new(value);
        Self(Arc::new(std::array::from_fn(|_| Stripe(Arc::new(Padded(Arc::clone(&value)))))))
    }

    /// Holds the value; it lives as long as anything that holds it.
    #[inline]
    #[must_use]
    pub fn hold(&self) -> Stripe<T> {
        Stripe(Arc::clone(&self.0[stripe()].0))
    }
}

impl<T> Deref for Striped<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0[0]
    }
}

impl<T> Deref for Stripe<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T> Clone for Striped<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Striped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Stripe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_spread_over_the_stripes_and_each_keeps_its_own() {
        let stripes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..STRIPES).map(|_| scope.spawn(|| (stripe(), stripe()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(stripes.iter().all(|(first, again)| first == again && *first < STRIPES));
        let different: std::collections::BTreeSet<_> = stripes.iter().collect();
        assert!(different.len() > 1, "{stripes:?}");
    }

    #[test]
    fn the_value_goes_with_the_last_that_holds_it() {
        let value = Arc::new(());
        let shared = Striped::new(Arc::clone(&value));
        let (held, clone) = (shared.hold(), shared.clone());
        drop((shared, clone));
        assert_eq!(Arc::strong_count(&value), 2);
        drop(held);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
