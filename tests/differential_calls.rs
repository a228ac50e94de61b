//! Calls that nobody but their owner polls: each when its turn has come, so that what happens at one
//! moment happens in an order that is known.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::time::{Instant, sleep_until};

/// A call under way.
pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = T>>>;

/// Calls under way, by their numbers.
pub(crate) struct Calls<T> {
    pending: BTreeMap<u32, (Pending<T>, Waker)>,
    woken: Arc<Woken>,
}

/// Those that want to be polled.
#[derive(Default)]
struct Woken {
    calls: Mutex<BTreeSet<u32>>,
    owner: AtomicWaker,
}

/// Wakes one call.
struct Bell {
    call: u32,
    woken: Arc<Woken>,
}

impl<T> Calls<T> {
    pub(crate) fn new() -> Self {
        Self { pending: BTreeMap::new(), woken: Arc::default() }
    }

    pub(crate) fn begin(&mut self, call: u32, pending: Pending<T>) {
        let woken = Arc::clone(&self.woken);
        let waker = Waker::from(Arc::new(Bell { call, woken }));
        self.pending.insert(call, (pending, waker));
    }

    /// Polls a call, and tells what it came to if it has ended.
    pub(crate) fn poll(&mut self, call: u32) -> Option<T> {
        self.woken.take(call);
        let (pending, waker) = self.pending.get_mut(&call)?;
        let Poll::Ready(end) = pending.as_mut().poll(&mut Context::from_waker(waker)) else {
            return None;
        };
        self.pending.remove(&call);
        Some(end)
    }

    /// The first of those that want to be polled.
    pub(crate) fn first_woken(&self) -> Option<u32> {
        loop {
            let call = self.woken.first()?;
            if self.pending.contains_key(&call) {
                return Some(call);
            }
            self.woken.take(call);
        }
    }

    /// Waits for `moment`, or for a call that wants to be polled.
    pub(crate) async fn wait(&self, moment: Instant) {
        let mut sleep = pin!(sleep_until(moment));
        poll_fn(|cx| {
            self.woken.owner.register(cx.waker());
            if self.first_woken().is_some() { Poll::Ready(()) } else { sleep.as_mut().poll(cx) }
        })
        .await;
    }
}

impl Woken {
    fn first(&self) -> Option<u32> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).first().copied()
    }

    fn take(&self, call: u32) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&call);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(self.call);
        self.woken.owner.wake();
    }
}
