//! Permits that can be taken without waiting, waited for in order, and changed in number.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use abate_core::spare::Spare;
use abate_core::striped::{Stripe, Striped};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Some number of permits, around tokio's semaphore, which is fair and cancel-safe.
#[derive(Debug)]
pub(crate) struct Permits {
    /// What came back while nobody waited: taken first, and without the semaphore's lock.
    spare: Spare,
    queue: Semaphore,
    max: AtomicU32,
    /// Permits in use that are to go when they come back, since there are fewer now.
    debt: AtomicU32,
    /// Held while their number changes.
    changing: Mutex<()>,
}

impl Permits {
    pub(crate) fn new(max: u32) -> Self {
        Self {
            spare: Spare::default(),
            queue: Semaphore::new(max as usize),
            max: AtomicU32::new(max),
            debt: AtomicU32::new(0),
            changing: Mutex::new(()),
        }
    }

    /// A permit if one is free. The queue is fair: none is free while others wait.
    #[inline]
    pub(crate) fn try_acquire(own: &Striped<Self>) -> Option<Permit> {
        if own.spare.take() || own.try_queue() { Some(Permit(own.hold())) } else { None }
    }

    #[cold]
    fn try_queue(&self) -> bool {
        self.queue.try_acquire().map(SemaphorePermit::forget).is_ok()
    }

    /// A permit, once one is free. Dropped, this leaves the queue.
    pub(crate) async fn acquire(own: Stripe<Self>) -> Option<Permit> {
        let waits = Waits::new(&own);
        own.queue.acquire().await.ok()?.forget();
        drop(waits);
        Some(Permit(own))
    }

    pub(crate) fn max(&self) -> u32 {
        // Relaxed: a figure to look at.
        self.max.load(Relaxed)
    }

    pub(crate) fn in_use(&self) -> u32 {
        let queue = u32::try_from(self.queue.available_permits()).unwrap_or(u32::MAX);
        let free = queue.saturating_add(self.spare.free());
        // Relaxed: a figure to look at; the three may be of moments a little apart.
        self.max().saturating_add(self.debt.load(Relaxed)).saturating_sub(free)
    }

    /// Changes their number, at once for those that are free, and for those in use as they come
    /// back.
    pub(crate) fn set_max(&self, max: u32) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: changed under the lock alone.
        let before = self.max.swap(max, Relaxed);
        for _ in before..max {
            if !self.pay_debt() {
                self.queue.add_permits(1);
            }
        }
        let fewer = before.saturating_sub(max);
        // Relaxed: a count.
        self.debt.fetch_add(fewer, Relaxed);
        self.queue_spare();
        // What is free now, or has come back meanwhile, pays at once.
        while self.debt.load(Relaxed) > 0 && self.queue.forget_permits(1) == 1 {
            if !self.pay_debt() {
                self.queue.add_permits(1);
                break;
            }
        }
    }

    #[inline]
    fn give_back(&self) {
        match self.spare.put() {
            0 => {}
            waited_for => self.hand_on(waited_for),
        }
    }

    #[cold]
    fn hand_on(&self, waited_for: u32) {
        self.queue.add_permits(waited_for as usize);
    }

    fn queue_spare(&self) {
        self.queue.add_permits(self.spare.drain() as usize);
    }

    /// Takes one off the debt, if there is any.
    #[inline]
    fn pay_debt(&self) -> bool {
        // Relaxed: read first, since there is hardly ever any debt.
        if self.debt.load(Relaxed) == 0 {
            return false;
        }
        // Relaxed: each permit that goes is taken off once.
        self.debt.fetch_update(Relaxed, Relaxed, |debt| debt.checked_sub(1)).is_ok()
    }
}

/// A place in the queue, until it is dropped.
struct Waits<'a>(&'a Permits);

impl<'a> Waits<'a> {
    fn new(permits: &'a Permits) -> Self {
        permits.spare.begin_to_wait();
        permits.queue_spare();
        Self(permits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.spare.end_waiting();
    }
}

/// A permit, until it is dropped.
pub(crate) struct Permit(Stripe<Permits>);

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if !self.0.pay_debt() {
            self.0.give_back();
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready};

    use super::*;

    // TC-07
    #[test]
    fn their_number_changes_under_load_and_none_is_lost() {
        for _ in 0..1_000 {
            let permits = Striped::new(Permits::new(10));
            let mut held: Vec<_> =
                (0..8).map(|_| Permits::try_acquire(&permits).unwrap()).collect();
            permits.set_max(5);
            assert_eq!((permits.in_use(), permits.max()), (8, 5));
            assert!(Permits::try_acquire(&permits).is_none());
            held.truncate(5);
            assert!(Permits::try_acquire(&permits).is_none(), "five are in use");
            held.truncate(4);
            held.push(Permits::try_acquire(&permits).unwrap());
            assert!(Permits::try_acquire(&permits).is_none());
            permits.set_max(20);
            held.extend((0..15).map(|_| Permits::try_acquire(&permits).unwrap()));
            assert!(Permits::try_acquire(&permits).is_none());
            drop(held);
            assert_eq!((permits.in_use(), permits.max()), (0, 20));
        }
    }

    #[test]
    fn threads_that_take_and_change_leave_the_last_number() {
        let permits = Striped::new(Permits::new(10));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let permits = permits.clone();
                scope.spawn(move || {
                    for n in 0..20_000_u32 {
                        let held: Vec<_> =
                            (0..3).filter_map(|_| Permits::try_acquire(&permits)).collect();
                        if (n + thread) % 7 == 0 {
                            permits.set_max(1 + (n + thread) % 20);
                        }
                        drop(held);
                    }
                });
            }
        });
        permits.set_max(13);
        assert_eq!((permits.in_use(), permits.max()), (0, 13));
        let held: Vec<_> = (0..14).map_while(|_| Permits::try_acquire(&permits)).collect();
        assert_eq!(held.len(), 13);
    }

    #[test]
    fn those_who_wait_get_what_is_added_and_leave_when_dropped() {
        let permits = Striped::new(Permits::new(1));
        let held = Permits::try_acquire(&permits).unwrap();
        let mut first = spawn(Permits::acquire(permits.hold()));
        let mut second = spawn(Permits::acquire(permits.hold()));
        assert_pending!(first.poll());
        assert_pending!(second.poll());
        permits.set_max(2);
        assert!(first.is_woken());
        drop(first);
        assert!(assert_ready!(second.poll()).is_some());
        drop(held);
        assert_eq!(permits.in_use(), 0, "the permit went with the future that was polled");
    }
}
