//! A timer that costs nothing until it has to be waited for.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use pin_project::pin_project;
use tokio::time::{Sleep, sleep_until};

use crate::context;

/// How many places for a running timer a thread keeps for reuse: 128 bytes each.
const POOLED: usize = 1024;

thread_local! {
    static POOL: RefCell<Vec<Pin<Box<Running>>>> = const { RefCell::new(Vec::new()) };
}

/// Ends at a deadline. It runs from its first poll on, which is when what it limits was pending; a
/// deadline of [`Deadline::NEVER`] never runs.
///
/// It is three words wide. tokio's timer is sixteen, which every future around it would carry and
/// move; it lives in a box of the thread's pool instead, and only while it runs.
pub(crate) struct Timer {
    end: Deadline,
    /// Empty when its own drop is done, so that there is nothing to look for once more.
    running: ManuallyDrop<Option<Pin<Box<Running>>>>,
}

#[pin_project]
struct Running {
    /// `None` in the pool.
    #[pin]
    sleep: Option<Sleep>,
}

impl Timer {
    pub(crate) const fn new(end: Deadline) -> Self {
        Self { end, running: ManuallyDrop::new(None) }
    }

    pub(crate) const fn end(&self) -> Deadline {
        self.end
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Ends at another deadline from now on.
    pub(crate) fn reset(&mut self, end: Deadline) {
        self.end = end;
        self.stop();
    }

    /// Ready once the deadline has passed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = self.end.instant() else { return Poll::Pending };
        let running = self.running.get_or_insert_with(|| start(sleep_until(end.into())));
        let Some(sleep) = running.as_mut().project().sleep.as_pin_mut() else {
            return Poll::Pending;
        };
        let ended = sleep.poll(cx);
        if ended.is_pending() {
            context::will_wake(self.end);
        }
        ended
    }

    #[cold]
    fn stop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        context::will_not_wake();
        running.as_mut().project().sleep.set(None);
        // A thread that is ending has no pool any more.
        let _ = POOL.try_with(|pool| {
            let pool = &mut *pool.borrow_mut();
            if pool.len() < POOLED {
                pool.push(running);
            }
        });
    }
}

fn start(sleep: Sleep) -> Pin<Box<Running>> {
    let pooled = POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten();
    let mut running = pooled.unwrap_or_else(|| Box::pin(Running { sleep: None }));
    running.as_mut().project().sleep.set(Some(sleep));
    running
}

impl Drop for Timer {
    #[inline]
    fn drop(&mut self) {
        if self.is_running() {
            self.stop();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timer").field(&self.end).finish()
    }
}
