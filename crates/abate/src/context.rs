//! The call context: what layers of one call tell each other while they run.
//!
//! Facts about a call cannot all travel in the request's extensions, since the first insert costs
//! allocations that every call would pay. They travel in thread-local cells instead, set by a guard
//! around each `call` and each `poll` of an inner service, and put back when that returns. What is
//! spawned in between does not see them.
//!
//! The reasons, and the bounds of this back door, are in `docs/decisions/0002-call-context.md`.

use std::cell::Cell;
use std::time::Instant;

use abate_core::deadline::Deadline;

use crate::clock;

thread_local! {
    static CELLS: Cells = const { Cells {
        depth: Cell::new(0),
        now: Cell::new(None),
        deadline: Cell::new(Deadline::NEVER),
        attempt: Cell::new(None),
        sent: Cell::new(None),
    } };
}

struct Cells {
    depth: Cell<u32>,
    now: Cell<Option<Instant>>,
    deadline: Cell<Deadline>,
    attempt: Cell<Option<Attempt>>,
    sent: Cell<Option<Instant>>,
}

/// The attempt that is being made, as the retry layer above counts it.
///
/// Repeats carry it in the request's extensions; on every attempt, the first included,
/// [`Attempt::current`] tells it to code that runs below the retry layer, in the same task.
///
/// # Examples
///
/// ```
/// fn describe(request: &http::Request<()>) -> &'static str {
///     match request.extensions().get::<abate::Attempt>() {
///         Some(_) => "a repeat",
///         None => "a first attempt",
///     }
/// }
/// # assert_eq!(describe(&http::Request::new(())), "a first attempt");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    target: u64,
}

impl Attempt {
    pub(crate) const fn new(number: u32, target: u64) -> Self {
        Self { number, target }
    }

    /// The attempt under way in this task, if a retry layer is above.
    #[must_use]
    pub fn current() -> Option<Self> {
        CELLS.with(|cells| cells.attempt.get())
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Whether it belongs to a call of the same method, authority and path.
    pub(crate) const fn has_target(self, target: u64) -> bool {
        self.target == target
    }
}

/// A stretch of synchronous work of ours: a `call` or a `poll`. All layers within the outermost
/// one read the clock together, once.
#[derive(Debug)]
pub(crate) struct Scope(());

impl Scope {
    #[inline]
    pub(crate) fn enter() -> Self {
        CELLS.with(|cells| cells.depth.set(cells.depth.get() + 1));
        Self(())
    }

    /// The time of this stretch of work.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        CELLS.with(|cells| {
            cells.now.get().unwrap_or_else(|| {
                let now = clock::now();
                cells.now.set(Some(now));
                now
            })
        })
    }

    /// The deadline set by the layers above.
    #[inline]
    pub(crate) fn deadline(&self) -> Deadline {
        CELLS.with(|cells| cells.deadline.get())
    }

    /// Sets the deadline for the layers below, until the guard goes.
    #[inline]
    pub(crate) fn set_deadline(&self, deadline: Deadline) -> DeadlineGuard {
        DeadlineGuard(CELLS.with(|cells| cells.deadline.replace(deadline)))
    }

    /// Tells the layers below which attempt this is, until the guard goes.
    #[inline]
    pub(crate) fn set_attempt(&self, attempt: Attempt) -> AttemptGuard {
        AttemptGuard(CELLS.with(|cells| cells.attempt.replace(Some(attempt))))
    }

    /// When the request was handed on; a layer that holds it back for a while clears this, and
    /// sets it when it does hand it on.
    #[inline]
    pub(crate) fn sent(&self) -> Option<Instant> {
        CELLS.with(|cells| cells.sent.get())
    }

    #[inline]
    pub(crate) fn set_sent(&self, sent: Option<Instant>) {
        CELLS.with(|cells| cells.sent.set(sent));
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        CELLS.with(|cells| {
            let depth = cells.depth.get() - 1;
            cells.depth.set(depth);
            if depth == 0 {
                cells.now.set(None);
            }
        });
    }
}

#[derive(Debug)]
pub(crate) struct DeadlineGuard(Deadline);

impl Drop for DeadlineGuard {
    #[inline]
    fn drop(&mut self) {
        CELLS.with(|cells| cells.deadline.set(self.0));
    }
}

#[derive(Debug)]
pub(crate) struct AttemptGuard(Option<Attempt>);

impl Drop for AttemptGuard {
    #[inline]
    fn drop(&mut self) {
        CELLS.with(|cells| cells.attempt.set(self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_set_is_put_back_even_by_a_panic() {
        let scope = Scope::enter();
        let deadline = Deadline::after(scope.now(), Duration::from_secs(1));
        let result = catch_unwind(AssertUnwindSafe(|| {
            let inner = Scope::enter();
            let _deadline = inner.set_deadline(deadline);
            let _attempt = inner.set_attempt(Attempt::new(2, 7));
            assert_eq!(inner.deadline(), deadline);
            assert_eq!(Attempt::current().map(Attempt::number), Some(2));
            panic!("as a service below might");
        }));
        assert!(result.is_err());
        assert_eq!(scope.deadline(), Deadline::NEVER);
        assert_eq!(Attempt::current(), None);
        assert_eq!(CELLS.with(|cells| cells.depth.get()), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_scope_has_one_time_and_the_next_one_another() {
        let outer = Scope::enter();
        let before = outer.now();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(Scope::enter().now(), before, "an inner scope shares the outer one's reading");
        drop(outer);
        assert_eq!(Scope::enter().now(), before + Duration::from_secs(1));
    }
}
