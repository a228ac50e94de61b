//! The call context: what layers of one call tell each other while they run.
//!
//! Facts about a call cannot all travel in the request's extensions, since the first insert costs
//! allocations that every call would pay. They travel in thread-local cells instead, set by a guard
//! around each `call` and each `poll` of an inner service, and put back when that returns. What is
//! spawned in between does not see them.
//!
//! The reasons, and the bounds of this back door, are in `docs/decisions/0002-call-context.md`.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::time::Instant;

use abate_core::deadline::Deadline;
use http::{Extensions, Request};

use crate::budget::{BudgetHandle, BudgetId};
use crate::clock;
use crate::report::Report;

thread_local! {
    static CELLS: Cells = const { Cells {
        calling: Cell::new(false),
        now: Cell::new(None),
        deadline: Cell::new(Deadline::NEVER),
        attempt: Cell::new(Attempt::NONE),
        sent: Cell::new(None),
        wake: Cell::new(Deadline::NEVER),
        collecting: Cell::new(false),
    } };

    /// The report of a call that was dropped while `collecting`. Apart from the cells, which need
    /// nothing done when a thread ends, and so no look at each access whether it has.
    static LOST: RefCell<Option<Report>> = const { RefCell::new(None) };
}

struct Cells {
    calling: Cell<bool>,
    now: Cell<Option<Instant>>,
    deadline: Cell<Deadline>,
    /// [`Attempt::NONE`] where no retry is above: so it is two words.
    attempt: Cell<Attempt>,
    sent: Cell<Option<Instant>>,
    wake: Cell<Deadline>,
    collecting: Cell<bool>,
}

/// A hash of method, authority and path: what a request is to a retry.
pub(crate) type Target = NonZeroU32;

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
    /// A hash of method, authority and path.
    target: Option<Target>,
    /// The budget that has counted the call, and was charged for the attempt if it is a repeat.
    budget: Option<BudgetId>,
}

impl Attempt {
    const NONE: Self = Self::new(0);

    /// Attempt number `number`, from 1, as a retry that is not ours counts it.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self { number, target: None, budget: None }
    }

    pub(crate) const fn of(number: u32, target: Target, budget: Option<BudgetId>) -> Self {
        Self { number, target: Some(target), budget }
    }

    /// Marks a request that is about to be repeated, by its extensions: the attempt after the one
    /// that they name, or the second.
    ///
    /// For retries that are not ours, so that [`RetryBudgetLayer`](crate::RetryBudgetLayer) below
    /// them knows a repeat when it sees one.
    pub fn mark_repeat(extensions: &mut Extensions) {
        let number = extensions.get::<Self>().map_or(1, |attempt| attempt.number);
        extensions.insert(Self::new(number.saturating_add(1)));
    }

    /// The attempt under way in this task, if a retry layer is above.
    #[inline]
    #[must_use]
    pub fn current() -> Option<Self> {
        Some(CELLS.with(|cells| cells.attempt.get())).filter(|attempt| attempt.number > 0)
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Whether it belongs to a call of the same method, authority and path.
    pub(crate) fn has_target(self, target: Target) -> bool {
        self.target == Some(target)
    }

    /// Attempt number `number` of the same call.
    pub(crate) const fn with_number(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// Whether `budget` has accounted for it already.
    pub(crate) fn is_charged_to(self, budget: &BudgetHandle) -> bool {
        self.budget == Some(budget.id())
    }
}

/// Ends a call by `drop`, and keeps what its retry layer had to report.
pub(crate) fn ending(drop: impl FnOnce()) -> Option<Report> {
    CELLS.with(|cells| cells.collecting.set(true));
    drop();
    CELLS.with(|cells| cells.collecting.set(false));
    LOST.take()
}

/// Leaves the report of a call that is being dropped to whoever ends it.
pub(crate) fn leave_report(report: impl FnOnce() -> Report) {
    if CELLS.with(|cells| cells.collecting.get()) {
        // A thread that is ending has no place for it any more.
        let _ = LOST.try_with(|lost| lost.replace(Some(report())));
    }
}

/// Tells the layers above that a timer below will have this task polled `at` a moment.
pub(crate) fn will_wake(at: Deadline) {
    CELLS.with(|cells| cells.wake.set(cells.wake.get().earlier(at)));
}

/// Takes such a word back: a timer is gone.
pub(crate) fn will_not_wake() {
    CELLS.with(|cells| cells.wake.set(Deadline::NEVER));
}

/// A stretch of synchronous work of ours, a `call` or a `poll`, with one reading of the clock.
///
/// Layers whose `call`s are nested read the clock together, and so do layers whose `poll`s end
/// together. A reading is never older than the last time that code of other people's ran below:
/// each `poll` forgets it on its way down, and so does a `call` that is not made by a `call`.
#[derive(Debug)]
pub(crate) struct Scope {
    was_calling: bool,
}

impl Scope {
    #[inline]
    pub(crate) fn call() -> Self {
        CELLS.with(|cells| {
            let was_calling = cells.calling.replace(true);
            if !was_calling {
                cells.now.set(None);
            }
            Self { was_calling }
        })
    }

    #[inline]
    pub(crate) fn poll() -> Self {
        CELLS.with(|cells| {
            cells.now.set(None);
            Self { was_calling: cells.calling.replace(false) }
        })
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

    /// The earlier of the deadline set by the layers above and the request's own.
    #[inline]
    pub(crate) fn earliest_deadline(&self, extensions: &Extensions) -> Deadline {
        deadline_above().earlier(own_deadline(extensions))
    }

    /// Whether a timer below is to have this task polled by `end`, so that another for `end` would
    /// be one too many. Asked for after the inner service was polled, which begins with
    /// [`will_not_wake`].
    #[inline]
    pub(crate) fn wakes_by(&self, end: Deadline) -> bool {
        CELLS.with(|cells| cells.wake.get().comes_by(end))
    }

    /// Sets the deadline for the layers below, until the guard goes.
    #[inline]
    pub(crate) fn set_deadline(&self, deadline: Deadline) -> DeadlineGuard {
        DeadlineGuard(CELLS.with(|cells| cells.deadline.replace(deadline)))
    }

    /// Tells the layers below the deadline and which attempt this is, until the guard goes.
    #[inline]
    pub(crate) fn set_attempt(&self, deadline: Deadline, attempt: Attempt) -> AttemptGuard {
        CELLS.with(|cells| AttemptGuard {
            deadline: cells.deadline.replace(deadline),
            attempt: cells.attempt.replace(attempt),
        })
    }

    /// When the request was handed on; a layer that holds it back for a while clears this, and
    /// sets it when it does hand it on.
    #[inline]
    pub(crate) fn sent(&self) -> Option<Instant> {
        CELLS.with(|cells| cells.sent.get())
    }

    /// Puts back what stands there now when the guard goes, if `apart`.
    #[inline]
    pub(crate) fn keep_sent(&self, apart: bool) -> SentGuard {
        SentGuard(apart.then(|| self.sent()))
    }

    #[inline]
    pub(crate) fn set_sent(&self, sent: Option<Instant>) {
        CELLS.with(|cells| cells.sent.set(sent));
    }
}

/// The deadline set by the layers above.
#[inline]
pub(crate) fn deadline_above() -> Deadline {
    CELLS.with(|cells| cells.deadline.get())
}

/// The deadline of a call: the one set by the layers above, which have looked at the request already,
/// or else the request's own.
#[inline]
pub(crate) fn deadline<B>(request: &Request<B>) -> Deadline {
    match deadline_above() {
        Deadline::NEVER => own_deadline(request.extensions()),
        deadline => deadline,
    }
}

#[inline]
fn own_deadline(extensions: &Extensions) -> Deadline {
    extensions.get().copied().unwrap_or(Deadline::NEVER)
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        CELLS.with(|cells| cells.calling.set(self.was_calling));
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
pub(crate) struct SentGuard(Option<Option<Instant>>);

impl Drop for SentGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(sent) = self.0 {
            CELLS.with(|cells| cells.sent.set(sent));
        }
    }
}

#[derive(Debug)]
pub(crate) struct AttemptGuard {
    deadline: Deadline,
    attempt: Attempt,
}

impl Drop for AttemptGuard {
    #[inline]
    fn drop(&mut self) {
        CELLS.with(|cells| {
            cells.deadline.set(self.deadline);
            cells.attempt.set(self.attempt);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    fn set_deadline() -> Deadline {
        CELLS.with(|cells| cells.deadline.get())
    }

    #[test]
    fn what_was_set_is_put_back_even_by_a_panic() {
        let scope = Scope::call();
        let deadline = Deadline::after(scope.now(), Duration::from_secs(1));
        let result = catch_unwind(AssertUnwindSafe(|| {
            let inner = Scope::poll();
            let _attempt = inner.set_attempt(deadline, Attempt::of(2, Target::MIN, None));
            assert_eq!(set_deadline(), deadline);
            assert_eq!(Attempt::current().map(Attempt::number), Some(2));
            panic!("as a service below might");
        }));
        assert!(result.is_err());
        assert_eq!(set_deadline(), Deadline::NEVER);
        assert_eq!(Attempt::current(), None);
        assert!(CELLS.with(|cells| cells.calling.get()));
    }

    #[test]
    fn a_request_brings_its_own_deadline_and_the_earlier_counts() {
        let scope = Scope::call();
        let soon = Deadline::after(scope.now(), Duration::from_secs(1));
        let late = Deadline::after(scope.now(), Duration::from_secs(2));
        let mut request = Request::new(());
        assert_eq!(deadline(&request), Deadline::NEVER);
        request.extensions_mut().insert(late);
        assert_eq!(deadline(&request), late);
        let _deadline = scope.set_deadline(soon);
        assert_eq!(deadline(&request), soon);
        assert_eq!(scope.earliest_deadline(request.extensions()), soon);
    }

    #[tokio::test(start_paused = true)]
    async fn nested_calls_share_a_reading_and_no_poll_sees_an_old_one() {
        const SECOND: Duration = Duration::from_secs(1);
        let outer = Scope::call();
        let before = outer.now();
        tokio::time::advance(SECOND).await;
        assert_eq!(Scope::call().now(), before, "a call within a call");
        let poll = Scope::poll();
        assert_eq!(poll.now(), before + SECOND);
        tokio::time::advance(SECOND).await;
        assert_eq!(Scope::call().now(), before + 2 * SECOND, "a call made by a poll");
        tokio::time::advance(SECOND).await;
        drop(Scope::poll());
        assert_eq!(poll.now(), before + 3 * SECOND, "after others were polled");
    }
}
