//! The future of a call that ends by its deadline.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use http::Response;
use pin_project::pin_project;

use crate::body::{Answer, Carry, Slot, Wrap, poll_answer};
use crate::context::{self, Scope};
use crate::error::{Error, ErrorKind};
use crate::observe;
use crate::report::Report;
use crate::timer::Timer;

/// The future of [`Deadlined`](super::Deadlined).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
pub struct ResponseFuture<F, M = Wrap> {
    /// `None` when the deadline has passed.
    #[pin]
    inner: Option<F>,
    timer: Timer,
    covers_body: bool,
    carry: PhantomData<fn() -> M>,
}

impl<F, M> ResponseFuture<F, M> {
    #[inline]
    pub(super) const fn new(inner: F, end: Deadline, covers_body: bool) -> Self {
        Self { inner: Some(inner), timer: Timer::new(end), covers_body, carry: PhantomData }
    }

    pub(super) const fn passed(end: Deadline) -> Self {
        Self { inner: None, timer: Timer::new(end), covers_body: false, carry: PhantomData }
    }
}

impl<F, M: Carry<F>> Answer for ResponseFuture<F, M> {
    type Body = M::Body;

    #[inline]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<M::Body>) {
        let mut this = self.project();
        let end = this.timer.end();
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            let scope = Scope::poll();
            context::will_not_wake();
            let deadline = scope.set_deadline(end);
            M::poll_into(inner, cx, slot);
            drop(deadline);
            if slot.is_ready() {
                if *this.covers_body {
                    cover::<F, M>(slot, end);
                }
                return;
            }
            if scope.wakes_by(end) || this.timer.poll(cx).is_pending() {
                return;
            }
        }
        // The call ends here and now, also if this future is kept for a while.
        let report = context::ending(|| this.inner.set(None));
        *slot = Poll::Ready(Err(passed(report)));
    }
}

impl<F, M: Carry<F>> Future for ResponseFuture<F, M> {
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
    }
}

fn cover<F, M: Carry<F>>(slot: &mut Slot<M::Body>, end: Deadline) {
    if let Poll::Ready(Ok(response)) = slot
        && let Some(held) = M::held(response.body_mut())
    {
        held.keep_until(end, ErrorKind::Deadline);
    }
}

#[cold]
fn passed(report: Option<Report>) -> Error {
    let mut error = Error::new(ErrorKind::Deadline);
    if let Some(report) = report {
        error = error.with_report(report);
    }
    observe::ended(&error);
    error
}

impl<F: fmt::Debug, M> fmt::Debug for ResponseFuture<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("inner", &self.inner)
            .field("end", &self.timer.end())
            .finish_non_exhaustive()
    }
}
